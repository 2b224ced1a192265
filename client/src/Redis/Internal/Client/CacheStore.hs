{-# LANGUAGE MagicHash #-}
{-# LANGUAGE UnboxedTuples #-}

-- | The cache of one client: "Redis.Internal.Client.Cache" in a cell, which threads step.
--
-- A hit reads the cell, the clock and the reply's mark, and adds to a count of its
-- thread's. It waits for nobody, and asks the kernel nothing.
module Redis.Internal.Client.CacheStore
  ( CacheStore,
    newCacheStore,
    Kept (..),
    Fetch (..),

    -- * Reading
    Source (..),
    hashFor,
    lookFor,
    Look (..),
    placeFor,
    keep,
    forget,
    forgetAll,
    mayBeKept,
    noteUncached,

    -- * What servers say
    heardPush,
    lostConnection,
    ownersChanged,

    -- * Looking
    CacheGauges (..),
    noCacheGauges,
    storeGauges,
  )
where

import Control.Concurrent (myThreadId)
import Control.Concurrent.MVar (MVar)
import Control.Monad (unless, when)
import Control.Monad.Primitive (RealWorld)
import Data.Bits ((.&.))
import Data.ByteString (ByteString)
import Data.ByteString qualified as ByteString
import Data.Foldable (for_)
import Data.IORef
import Data.Primitive.ByteArray
import GHC.Exts (Int (I#), fetchAddIntArray#)
import GHC.IO (IO (IO))
import Redis.Error
import Redis.Internal.Client.Cache
import Redis.Internal.Client.Frozen
import Redis.Internal.Config
import Redis.Internal.Network.Clock
import Redis.Internal.Network.OrderCounts (orderKeyOf)
import Redis.Internal.Protocol.Encode (Request, requestHash, requestSize)
import Redis.Internal.Protocol.Slot (allSlots, keySlot, slotNumber)
import Redis.Internal.Routing.SlotMap
import Redis.Value
import System.Random (randomIO)

-- | What is kept of a reply.
data Kept = Kept
  { keptReply :: Frozen,
    -- | When its command was begun: the server has read no earlier.
    keptBegan :: Nanos,
    -- | Whether it has been used since it was last asked about.
    keptUsed :: IORef Bool
  }

-- | A reply that is on its way.
data Fetch = Fetch
  { fetchBegan :: Nanos,
    -- | Seconds that its command was given, if they are limited.
    fetchPatience :: Maybe Double,
    -- | Whether it has taken the way of trouble.
    fetchStrayed :: IORef Bool,
    fetchResult :: MVar (Either Error Value)
  }

-- | The cache of a client.
data CacheStore = CacheStore
  { storeCache :: IORef (Cache Kept Fetch),
    storeTracking :: Tracking,
    storeLimit :: Int,
    -- | Makes hashes such that nobody outside can choose keys that share one.
    storeSeed :: Int,
    storeOwners :: IORef SlotMap,
    storeTallies :: Tallies
  }

-- | An empty one.
newCacheStore :: Caching -> IO CacheStore
newCacheStore Caching {cachingBytes, cachingTracking} = do
  storeCache <- newIORef (newCache cachingBytes)
  storeSeed <- randomIO
  storeOwners <- newIORef emptySlotMap
  storeTallies <- newTallies
  pure CacheStore {storeCache, storeTracking = cachingTracking, storeLimit = cachingBytes, storeSeed, storeOwners, storeTallies}

-- | One step of the machine.
stepping :: CacheStore -> (Cache Kept Fetch -> (Cache Kept Fetch, a)) -> IO a
stepping = atomicModifyIORef' . storeCache

stepping_ :: CacheStore -> (Cache Kept Fetch -> Cache Kept Fetch) -> IO ()
stepping_ store step = stepping store (\cache -> (step cache, ()))

-- | Where a command's reply is looked for.
data Source = Source
  { sourceNode :: Endpoint,
    sourceHash :: Hash,
    sourceRequest :: Request
  }

-- | The number under which the replies to a command are kept. \(O(n)\).
hashFor :: CacheStore -> Request -> Hash
hashFor store = requestHash (storeSeed store)
{-# INLINE hashFor #-}

-- | What a look comes to.
data Look
  = -- | A reply that is fresh enough.
    Hit Value
  | Miss

-- | Looks for a reply that was begun to be read no longer ago than this.
-- \(O(\log n)\), never blocks.
lookFor :: CacheStore -> Source -> Nanos -> IO Look
lookFor store Source {sourceNode, sourceHash, sourceRequest} age = do
  cache <- readIORef (storeCache store)
  case find sourceNode sourceHash sourceRequest cache of
    Here Kept {keptReply, keptBegan, keptUsed} -> do
      now <- coarseNanos
      if now - keptBegan <= age
        then do
          used <- readIORef keptUsed
          -- A write would take the line from the other cores.
          unless used (writeIORef keptUsed True)
          tally (storeTallies store) tallyHits
          pure (Hit (thaw keptReply))
        else pure Miss
    _ -> pure Miss
{-# INLINE lookFor #-}

-- | Places a placeholder for a command on this key, unless somebody else has.
placeFor :: CacheStore -> Source -> ByteString -> Nanos -> Fetch -> IO (Placed Kept Fetch)
placeFor store Source {sourceNode, sourceHash, sourceRequest} key age fetch = do
  placed <- stepping store (place wanted willDo fetch)
  case placed of
    Joins _ -> tally (storeTallies store) tallyWaits
    Has _ -> tally (storeTallies store) tallyHits
    Leads _ -> pure ()
  pure placed
  where
    wanted =
      Wanted
        { wantedFrom = sourceNode,
          wantedHash = sourceHash,
          wantedRequest = sourceRequest,
          wantedKey = key,
          wantedSlot = slotNumber (keySlot key)
        }
    willDo kept = fetchBegan fetch - keptBegan kept <= age

-- | Keeps the reply that has come for a placeholder, if it still stands. To be called by
-- who hands replies and pushes of the connection out, in their order. Takes time for at
-- most a few evictions.
keep :: CacheStore -> Source -> Ticket -> Fetch -> Value -> IO ()
keep store source@Source {sourceNode, sourceHash, sourceRequest} ticket fetch value
  | bytes > storeLimit store = forgetAll store source
  | otherwise = do
    used <- newIORef False
    let filling =
          Filling
            { fillingFrom = sourceNode,
              fillingHash = sourceHash,
              fillingRequest = sourceRequest,
              fillingTicket = ticket,
              fillingBytes = bytes,
              fillingKept = Kept {keptReply = frozen, keptBegan = fetchBegan fetch, keptUsed = used}
            }
        go spares =
          stepping store (fill filling) >>= \case
            NoRoom -> makeRoom spares >>= go
            Filled -> pure ()
            Late -> pure ()
    go mostSpared
  where
    frozen = freeze value
    -- Its words, and again its key.
    bytes = entryBytes + 2 * requestSize sourceRequest + frozenBytes frozen

    -- How many more may be spared.
    makeRoom spares =
      readIORef (storeCache store) >>= \cache -> case oldest cache of
        -- Others have made room.
        Nothing -> pure spares
        Just first -> do
          used <- maybe (pure False) (readIORef . keptUsed) (oldestKept first)
          if used && spares > (0 :: Int)
            then do
              for_ (oldestKept first) $ \kept -> writeIORef (keptUsed kept) False
              stepping_ store (spare first)
              pure (spares - 1)
            else spares <$ stepping_ store (evict first)

-- | How many are spared, because they were used, before one goes in any case.
mostSpared :: Int
mostSpared = 16

-- | Takes a placeholder away.
forget :: CacheStore -> Source -> Ticket -> IO ()
forget store Source {sourceNode, sourceHash} ticket = stepping_ store (abandon sourceNode sourceHash ticket)

-- | Takes away what there is of a command whose caller has an answer that was not kept.
forgetAll :: CacheStore -> Source -> IO ()
forgetAll store Source {sourceNode, sourceHash, sourceRequest} = stepping_ store (supersede sourceNode sourceHash sourceRequest)

-- | Whether servers tell of changes to this key, when it is read.
mayBeKept :: CacheStore -> ByteString -> Bool
mayBeKept store key = case storeTracking store of
  TrackReads -> True
  TrackPrefixes prefixes -> any (`ByteString.isPrefixOf` key) prefixes

-- | What keeping a reply takes besides its own bytes: counted on a heap of 64 bits.
entryBytes :: Int
entryBytes = 420

-- | A push of a server: takes away what it says has changed. Quick, and never blocks.
heardPush :: CacheStore -> Endpoint -> Value -> IO ()
heardPush store from = \case
  Push [kind, what]
    | isInvalidate kind -> case what of
      Array names -> do
        let keys = [name | BulkString name <- names]
        -- What is placed from here on is read behind this change.
        concerned <- readsOf from keys <$> readIORef (storeCache store)
        when concerned (stepping_ store (invalidate from keys))
      _ -> stepping_ store (flush from)
  _ -> pure ()
  where
    isInvalidate kind = kind == BulkString "invalidate" || kind == SimpleString "invalidate"

-- | A connection has ended whose server told of changes.
lostConnection :: CacheStore -> Endpoint -> IO ()
lostConnection store from = stepping_ store (flush from)

-- | Another slot map is in use.
ownersChanged :: CacheStore -> SlotMap -> IO ()
ownersChanged store owners = do
  before <- atomicModifyIORef' (storeOwners store) ((,) owners)
  unless (sameOwners before owners) $ do
    let changed = [slotNumber slot | slot <- allSlots, Just owner <- [slotOwner before slot], slotOwner owners slot /= Just owner]
    unless (null changed) (stepping_ store (moved changed))

-- | Counts that threads add to without meeting each other.
newtype Tallies = Tallies (MutableByteArray RealWorld)

-- | Each stripe is two lines of the processor's cache.
stripes, stripeWords :: Int
stripes = 16
stripeWords = 16

tallyHits, tallyWaits, tallyUncached :: Int
tallyHits = 0
tallyWaits = 1
tallyUncached = 2

newTallies :: IO Tallies
newTallies = do
  counts <- newAlignedPinnedByteArray (stripes * stripeWords * 8) 128
  setByteArray counts 0 (stripes * stripeWords) (0 :: Int)
  pure (Tallies counts)

tally :: Tallies -> Int -> IO ()
tally (Tallies (MutableByteArray counts)) which = do
  thread <- myThreadId
  let !(I# at) = (orderKeyOf thread .&. (stripes - 1)) * stripeWords + which
  IO $ \world -> case fetchAddIntArray# counts at 1# world of (# world', _ #) -> (# world', () #)
{-# INLINE tally #-}

tallied :: Tallies -> Int -> IO Int
tallied (Tallies counts) which = sum <$> mapM (\stripe -> readByteArray counts (stripe * stripeWords + which)) [0 .. stripes - 1]

-- | A read was run as it is, past the cache.
noteUncached :: CacheStore -> IO ()
noteUncached store = tally (storeTallies store) tallyUncached

-- | A look at a client's cache. Counts are since the client was made.
--
-- @since 0.1.0.0
data CacheGauges = CacheGauges
  { -- | Answered without asking the server.
    cacheHits :: Int,
    -- | Asked of the server, to be kept.
    cacheMisses :: Int,
    -- | Waited for a reply that another caller had asked for.
    cacheWaits :: Int,
    -- | Run as they are, past the cache, because their replies cannot be kept.
    cacheUncached :: Int,
    -- | Replies that went because their key had changed, or was to.
    cacheInvalidated :: Int,
    -- | Times that all from a node went: it said so, or a connection ended.
    cacheFlushes :: Int,
    -- | Replies that went for room.
    cacheEvicted :: Int,
    -- | Replies that were not kept, because a change was told before they came.
    cacheLate :: Int,
    -- | Replies that are kept.
    cacheKept :: Int,
    -- | The bytes of those, as they are counted towards the limit.
    cacheKeptBytes :: Int
  }
  deriving stock (Eq, Show)

-- | Of a client that keeps nothing.
noCacheGauges :: CacheGauges
noCacheGauges =
  CacheGauges
    { cacheHits = 0,
      cacheMisses = 0,
      cacheWaits = 0,
      cacheUncached = 0,
      cacheInvalidated = 0,
      cacheFlushes = 0,
      cacheEvicted = 0,
      cacheLate = 0,
      cacheKept = 0,
      cacheKeptBytes = 0
    }

-- | \(O(nodes)\), never blocks.
storeGauges :: CacheStore -> IO CacheGauges
storeGauges CacheStore {storeCache, storeTallies} = do
  cache <- readIORef storeCache
  hits <- tallied storeTallies tallyHits
  waits <- tallied storeTallies tallyWaits
  uncached <- tallied storeTallies tallyUncached
  let Counts {countMisses, countInvalidated, countFlushes, countEvicted, countLate} = cacheCounts cache
  pure
    CacheGauges
      { cacheHits = hits,
        cacheMisses = countMisses,
        cacheWaits = waits,
        cacheUncached = uncached,
        cacheInvalidated = countInvalidated,
        cacheFlushes = countFlushes,
        cacheEvicted = countEvicted,
        cacheLate = countLate,
        cacheKept = cacheEntries cache,
        cacheKeptBytes = cacheBytes cache
      }
