-- | Users in Redis, and how none is stored that should be gone.
--
-- The bytes of a user are under @user:ID@. Who finds nothing there takes a fill
-- word before reading the database, and stores what was read only if the word is
-- still there; who writes deletes both keys in one command. So of a read and a
-- write that overlap, either the word is deleted before the value arrives, and
-- the value is not stored, or the value is stored first, and deleted.
--
-- Redis may be away. Reads then go on without it: after a failure it is not
-- asked for a tenth of a second, so that requests do not queue up in front of
-- it. A deletion that was not confirmed makes its user /doubtful/: not read from
-- the cache nor stored, until a keeper has repeated the deletion with success.
module Rest.Cache
  ( Cache,
    withCache,
    CacheConfig (..),
    Lookup (..),
    lookupUser,
    store,
    invalidate,
  )
where

import Control.Concurrent (threadDelay)
import Control.Concurrent.Async (withAsync)
import Control.Monad (forM_, forever, unless, void, when)
import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Data.IORef (IORef, atomicModifyIORef', atomicWriteIORef, newIORef, readIORef)
import Data.Int (Int64)
import Data.IntMap.Strict (IntMap)
import Data.IntMap.Strict qualified as IntMap
import Data.List.NonEmpty (NonEmpty (..))
import Data.Word (Word16, Word64)
import GHC.Clock (getMonotonicTimeNSec)
import Redis
  ( Client,
    Command,
    Endpoint (..),
    Polling (..),
    clusterConfig,
    seconds,
    setClientName,
    setCommandTimeout,
    setConnectTimeout,
    setMaxAttempts,
    setPolling,
    standaloneConfig,
    submit,
    tryRun,
    withClient,
  )
import Redis.Commands qualified as Redis
import System.Posix.Process (getProcessID)

-- | Where the cache is.
data CacheConfig = CacheConfig
  { cacheHost :: ByteString,
    cachePort :: Word16,
    cacheIsCluster :: Bool,
    cachePolls :: Bool
  }

-- | The cache, for all threads.
data Cache = Cache
  { cacheClient :: Client,
    -- | What the fill words of this process begin with.
    cachePrefix :: ByteString,
    cacheWords :: IORef Word64,
    -- | Not to be asked before this time (ns).
    cacheAwayUntil :: IORef Word64,
    -- | The doubtful users, each with a number that changes with every failure.
    cacheDoubtful :: IORef (IntMap Word64)
  }

-- | Connects when first needed. Throws 'Redis.ConfigError' only.
withCache :: CacheConfig -> (Cache -> IO a) -> IO a
withCache CacheConfig {cacheHost, cachePort, cacheIsCluster, cachePolls} action =
  withClient config $ \client -> do
    -- Services that began in the same nanosecond are told apart by their pids.
    began <- getMonotonicTimeNSec
    process <- getProcessID
    cache <- Cache client (Char8.pack (show process <> "." <> show began <> ".")) <$> newIORef 0 <*> newIORef 0 <*> newIORef IntMap.empty
    withAsync (keep cache) (const (action cache))
  where
    -- Two attempts in all: a redirect is followed, and a server that is away is
    -- not waited for. A cluster that changes may need a few more.
    config =
      setClientName (Just "rest-service")
        . setCommandTimeout (Just (seconds 1))
        . setConnectTimeout (seconds 1)
        . setMaxAttempts (if cacheIsCluster then 4 else 2)
        . (if cachePolls then id else setPolling NeverPoll)
        $ if cacheIsCluster
          then clusterConfig (TcpEndpoint cacheHost cachePort :| [])
          else standaloneConfig cacheHost cachePort

userKey, fillKey :: Int64 -> ByteString
userKey number = "user:" <> Char8.pack (show number)
fillKey number = "{user:" <> Char8.pack (show number) <> "}:fill"

-- | What the cache has of a user.
data Lookup
  = Hit ByteString
  | -- | Nothing; what is read now may be stored with this word.
    Fill ByteString
  | -- | Nothing, and nothing is to be stored.
    Bypass

-- | Looks a user up, and prepares to store it if it is not there. One round
-- trip, or two for a miss; none while Redis is away.
lookupUser :: Cache -> Int64 -> IO Lookup
lookupUser cache number = do
  doubtful <- readIORef (cacheDoubtful cache)
  away <- readIORef (cacheAwayUntil cache)
  present <- if away == 0 then pure True else (> away) <$> getMonotonicTimeNSec
  if not present || IntMap.member (fromIntegral number) doubtful
    then pure Bypass
    else
      tryRun (cacheClient cache) (Redis.get (userKey number)) >>= \case
        Right (Just bytes) -> pure (Hit bytes)
        Right Nothing -> do
          count <- atomicModifyIORef' (cacheWords cache) (\old -> (old + 1, old))
          let word = cachePrefix cache <> Char8.pack (show count)
          set <- tryRun (cacheClient cache) (Redis.setWith Redis.setDefaults {Redis.setExpiry = Redis.ExpireIn (seconds 10)} (fillKey number) word)
          either (const (Bypass <$ away' cache)) (const (pure (Fill word))) set
        Left _ -> Bypass <$ away' cache

-- | Redis has failed: not to be asked for a while.
away' :: Cache -> IO ()
away' cache = getMonotonicTimeNSec >>= atomicWriteIORef (cacheAwayUntil cache) . (+ 100000000)

-- | Stores a user for 60 s if the word is still there. Does not wait.
store :: Cache -> Int64 -> ByteString -> ByteString -> IO ()
store cache number word bytes = do
  doubtful <- readIORef (cacheDoubtful cache)
  unless (IntMap.member (fromIntegral number) doubtful)
    . void
    $ submit (cacheClient cache) (Redis.eval storeScript [userKey number, fillKey number] [word, bytes])

storeScript :: ByteString
storeScript =
  "if redis.call('GET', KEYS[2]) == ARGV[1] then redis.call('SET', KEYS[1], ARGV[2], 'PX', 60000) redis.call('DEL', KEYS[2]) end"

-- | Takes a user out of the cache, and the right to store it from whoever reads
-- it now. One round trip. If it fails, the user is doubtful from now on.
invalidate :: Cache -> Int64 -> IO ()
invalidate cache number =
  tryRun (cacheClient cache) (deletion number) >>= \case
    Right _ -> pure ()
    Left _ -> doubt
  where
    doubt = do
      count <- atomicModifyIORef' (cacheWords cache) (\old -> (old + 1, old))
      atomicModifyIORef' (cacheDoubtful cache) (\known -> (IntMap.insert (fromIntegral number) count known, ()))

deletion :: Int64 -> Command Int64
deletion number = Redis.del (userKey number :| [fillKey number])

-- | Repeats the deletions that failed. One that fails anew in the meantime has
-- another number by then, and stays.
keep :: Cache -> IO ()
keep cache = forever $ do
  threadDelay 250000
  doubtful <- readIORef (cacheDoubtful cache)
  forM_ (IntMap.toList doubtful) $ \(number, count) -> do
    result <- tryRun (cacheClient cache) (deletion (fromIntegral number))
    when (either (const False) (const True) result) $
      atomicModifyIORef' (cacheDoubtful cache) $ \known ->
        (IntMap.update (\now -> if now == count then Nothing else Just now) number known, ())
