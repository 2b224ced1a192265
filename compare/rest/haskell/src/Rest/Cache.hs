-- | The cache of users in Redis, which never stores an outdated user.
--
-- The bytes of a user are under @user:ID@. A reader that misses sets a fill word before it reads
-- the database, and stores the user only if the word is still there. A writer deletes both keys in
-- one command. So if a read and a write overlap, either the word is deleted before the store, and
-- the user is not stored, or the user is stored first and then deleted.
--
-- Redis may be away. Reads then continue without it: after a failure the service does not ask Redis
-- for a tenth of a second, so that requests do not queue up in front of it. A deletion that was not
-- confirmed makes its user /doubtful/: the user is neither read from the cache nor stored, until a
-- keeper has repeated the deletion with success.
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

-- | The address and settings of the cache.
data CacheConfig = CacheConfig
  { cacheHost :: ByteString,
    cachePort :: Word16,
    cacheIsCluster :: Bool,
    cachePolls :: Bool
  }

-- | The cache, which all threads share.
data Cache = Cache
  { cacheClient :: Client,
    -- | The beginning of this process's fill words.
    cachePrefix :: ByteString,
    cacheWords :: IORef Word64,
    -- | Redis is not asked before this time (ns).
    cacheAwayUntil :: IORef Word64,
    -- | The doubtful users, each with a number that changes with every failed deletion.
    cacheDoubtful :: IORef (IntMap Word64)
  }

-- | Opens the cache for the action. Connects when first needed. Throws only 'Redis.ConfigError'.
withCache :: CacheConfig -> (Cache -> IO a) -> IO a
withCache CacheConfig {cacheHost, cachePort, cacheIsCluster, cachePolls} action =
  withClient config $ \client -> do
    -- The process id distinguishes services that began in the same nanosecond.
    began <- getMonotonicTimeNSec
    process <- getProcessID
    cache <- Cache client (Char8.pack (show process <> "." <> show began <> ".")) <$> newIORef 0 <*> newIORef 0 <*> newIORef IntMap.empty
    withAsync (keep cache) (const (action cache))
  where
    -- Two attempts in total: enough to follow a redirect, and the client does not wait for a server
    -- that is away. A cluster that is changing may need a few more.
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

-- | The result of a look-up in the cache.
data Lookup
  = Hit ByteString
  | -- | A miss; a user that is read now may be stored with this word.
    Fill ByteString
  | -- | Do not use the cache, and store nothing.
    Bypass

-- | Looks up a user, and sets a fill word if it is not there. One round trip, or two for a miss;
-- none while Redis is away.
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

-- | Records that Redis has failed, so that it is not asked for a while.
away' :: Cache -> IO ()
away' cache = getMonotonicTimeNSec >>= atomicWriteIORef (cacheAwayUntil cache) . (+ 100000000)

-- | Stores a user for 60 s if the fill word is still there. Does not wait for the reply.
store :: Cache -> Int64 -> ByteString -> ByteString -> IO ()
store cache number word bytes = do
  doubtful <- readIORef (cacheDoubtful cache)
  unless (IntMap.member (fromIntegral number) doubtful)
    . void
    $ submit (cacheClient cache) (Redis.eval storeScript [userKey number, fillKey number] [word, bytes])

storeScript :: ByteString
storeScript =
  "if redis.call('GET', KEYS[2]) == ARGV[1] then redis.call('SET', KEYS[1], ARGV[2], 'PX', 60000) redis.call('DEL', KEYS[2]) end"

-- | Deletes a user from the cache, and the fill word of any reader that is about to store it. One
-- round trip. If it fails, the user is doubtful from now on.
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

-- | Repeats the deletions that failed. If a deletion fails again in the meantime, its user has
-- another number and stays doubtful.
keep :: Cache -> IO ()
keep cache = forever $ do
  threadDelay 250000
  doubtful <- readIORef (cacheDoubtful cache)
  forM_ (IntMap.toList doubtful) $ \(number, count) -> do
    result <- tryRun (cacheClient cache) (deletion (fromIntegral number))
    when (either (const False) (const True) result) $
      atomicModifyIORef' (cacheDoubtful cache) $ \known ->
        (IntMap.update (\now -> if now == count then Nothing else Just now) number known, ())
