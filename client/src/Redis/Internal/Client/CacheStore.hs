{-# LANGUAGE MagicHash #-}
{-# LANGUAGE UnboxedTuples #-}

-- | The cache of one client: "Redis.Internal.Client.Cache" in a cell that any thread steps.
--
-- A hit reads the cell, the clock and the reply's mark, and adds to a count that few
-- threads share. It waits for no thread and makes no system call.
module Redis.Internal.Client.CacheStore
  ( CacheStore,
    newCacheStore,
    Kept (..),
    Fetch (..),

    -- * Reading
    Asked (..),
    Source (..),
    hashFor,
    lookFor,
    CacheLookup (..),
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
import Redis.Internal.Client.Compact
import Redis.Internal.Config
import Redis.Internal.Network.InFlight (orderKeyOf)
import Redis.Internal.Network.Runtime
import Redis.Internal.Protocol.Encode (Request, requestHash, requestSize)
import Redis.Internal.Protocol.Slot (allSlots, keySlot, slotNumber)
import Redis.Internal.Routing.SlotMap
import Redis.Value
import System.Random (randomIO)

-- | A kept reply.
data Kept = Kept
  { keptReply :: Compact,
    -- | When the command began: the server has not read earlier than that.
    keptBegan :: Nanos,
    -- | Whether the reply was used since eviction last looked at it.
    keptUsed :: IORef Bool
  }

-- | A reply that is on its way to be kept.
data Fetch = Fetch
  { fetchDeadline :: Deadline,
    -- | Whether the retry engine has taken over the command.
    fetchStrayed :: IORef Bool,
    fetchResult :: MVar (Either Error Value)
  }

-- | The cache of a client.
data CacheStore = CacheStore
  { storeCache :: IORef (Cache Kept Fetch),
    storeTracking :: Tracking,
    storeLimit :: Int,
    -- | A secret seed for the hashes, so that nobody outside can choose keys that collide.
    storeSeed :: Int,
    storeOwners :: IORef SlotMap,
    storeCounters :: CacheCounters
  }

-- | An empty cache.
newCacheStore :: Caching -> IO CacheStore
newCacheStore Caching {cachingBytes, cachingTracking} = do
  storeCache <- newIORef (newCache cachingBytes)
  storeSeed <- randomIO
  storeOwners <- newIORef emptySlotMap
  storeCounters <- newCacheCounters
  pure CacheStore {storeCache, storeTracking = cachingTracking, storeLimit = cachingBytes, storeSeed, storeOwners, storeCounters}

-- | Runs one step of the machine.
stepping :: CacheStore -> (Cache Kept Fetch -> (Cache Kept Fetch, a)) -> IO a
stepping = atomicModifyIORef' . storeCache

stepping_ :: CacheStore -> (Cache Kept Fetch -> Cache Kept Fetch) -> IO ()
stepping_ store step = stepping store (\cache -> (step cache, ()))

-- | A node, and the command whose reply is looked for there.
data Source = Source
  { sourceNode :: Endpoint,
    sourceHash :: Hash,
    sourceRequest :: Request
  }

-- | The number under which the replies to a command are kept. \(O(n)\).
hashFor :: CacheStore -> Request -> Hash
hashFor store = requestHash (storeSeed store)
{-# INLINE hashFor #-}

-- | The result of a look-up.
data CacheLookup
  = -- | A kept reply that is fresh enough.
    Hit Value
  | Miss

-- | When a command asks, and for a reply of which greatest age.
data Asked = Asked
  { askedAt :: {-# UNPACK #-} !Nanos,
    askedAge :: {-# UNPACK #-} !Nanos
  }

willDo :: Asked -> Kept -> Bool
willDo Asked {askedAt, askedAge} Kept {keptBegan} = askedAt - keptBegan <= askedAge
{-# INLINE willDo #-}

-- | Looks for a kept reply that is not too old. \(O(\log n)\), never blocks.
lookFor :: CacheStore -> Source -> Asked -> IO CacheLookup
lookFor store Source {sourceNode, sourceHash, sourceRequest} asked = do
  cache <- readIORef (storeCache store)
  case find sourceNode sourceHash sourceRequest cache of
    Here kept@Kept {keptReply, keptUsed}
      | willDo asked kept -> do
        used <- readIORef keptUsed
        -- An unneeded write would take the cache line from the other cores.
        unless used (writeIORef keptUsed True)
        counters (storeCounters store) countersHits
        pure (Hit (expanded keptReply))
    _ -> pure Miss
{-# INLINE lookFor #-}

-- | Places a placeholder for a command on this key, unless another caller has.
placeFor :: CacheStore -> Source -> ByteString -> Asked -> Fetch -> IO (Placed Kept Fetch)
placeFor store Source {sourceNode, sourceHash, sourceRequest} key asked fetch = do
  placed <- stepping store (place wanted (willDo asked) fetch)
  case placed of
    Joins _ -> counters (storeCounters store) countersWaits
    Has _ -> counters (storeCounters store) countersHits
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

-- | Keeps the reply to the read behind a placeholder, if the placeholder still stands. The
-- connection's reader calls it, in the order in which replies and pushes come. Takes at
-- most a few evictions' time.
keep :: CacheStore -> Source -> EntryVersion -> Fetch -> Value -> IO ()
keep store source@Source {sourceNode, sourceHash, sourceRequest} entryVersion fetch value
  | bytes > storeLimit store = forgetAll store source
  | otherwise = do
    used <- newIORef False
    let filling =
          Filling
            { fillingFrom = sourceNode,
              fillingHash = sourceHash,
              fillingRequest = sourceRequest,
              fillingVersion = entryVersion,
              fillingBytes = bytes,
              fillingKept = Kept {keptReply = compact, keptBegan = deadlineBegan (fetchDeadline fetch), keptUsed = used}
            }
        go spares =
          stepping store (fill filling) >>= \case
            NoRoom -> makeRoom spares >>= go
            Filled -> pure ()
            Late -> pure ()
    go mostSpared
  where
    compact = compacted value
    -- The words, which contain the key, and the key once more.
    bytes = entryBytes + 2 * requestSize sourceRequest + compactBytes compact

    -- The argument is how many more replies may be spared.
    makeRoom spares =
      readIORef (storeCache store) >>= \cache -> case oldest cache of
        -- Other threads have made room.
        Nothing -> pure spares
        Just first -> do
          used <- maybe (pure False) (readIORef . keptUsed) (oldestKept first)
          if used && spares > (0 :: Int)
            then do
              for_ (oldestKept first) $ \kept -> writeIORef (keptUsed kept) False
              stepping_ store (spare first)
              pure (spares - 1)
            else spares <$ stepping_ store (evict first)

-- | How many used replies are spared before one is evicted in any case.
mostSpared :: Int
mostSpared = 16

-- | Takes a placeholder away.
forget :: CacheStore -> Source -> EntryVersion -> IO ()
forget store Source {sourceNode, sourceHash} entryVersion = stepping_ store (abandon sourceNode sourceHash entryVersion)

-- | Takes away the entry of a command whose caller has an answer that was not kept.
forgetAll :: CacheStore -> Source -> IO ()
forgetAll store Source {sourceNode, sourceHash, sourceRequest} = stepping_ store (supersede sourceNode sourceHash sourceRequest)

-- | Whether servers report changes to this key after it was read.
mayBeKept :: CacheStore -> ByteString -> Bool
mayBeKept store key = case storeTracking store of
  TrackReads -> True
  TrackPrefixes prefixes -> any (`ByteString.isPrefixOf` key) prefixes

-- | The bytes for keeping a reply besides its own: the size of the objects on a 64-bit heap.
entryBytes :: Int
entryBytes = 420

-- | Handles a push of a server: drops the entries that it invalidates. Quick, never blocks.
heardPush :: CacheStore -> Endpoint -> Value -> IO ()
heardPush store from = \case
  Push [kind, what]
    | isInvalidate kind -> case what of
      Array names -> do
        let keys = [name | BulkString name <- names]
        -- A placeholder placed after this look belongs to a read behind this change.
        concerned <- readsOf from keys <$> readIORef (storeCache store)
        when concerned (stepping_ store (invalidate from keys))
      _ -> stepping_ store (flush from)
  _ -> pure ()
  where
    isInvalidate kind = kind == BulkString "invalidate" || kind == SimpleString "invalidate"

-- | Drops everything from a node, because a connection on which it reported changes has ended.
lostConnection :: CacheStore -> Endpoint -> IO ()
lostConnection store from = stepping_ store (flush from)

-- | Drops the entries of slots that have other owners in the new slot map.
ownersChanged :: CacheStore -> SlotMap -> IO ()
ownersChanged store owners = do
  before <- atomicModifyIORef' (storeOwners store) ((,) owners)
  unless (sameOwners before owners) $ do
    let changed = [slotNumber slot | slot <- allSlots, Just owner <- [slotOwner before slot], slotOwner owners slot /= Just owner]
    unless (null changed) (stepping_ store (moved changed))

-- | Counts that threads add to with little contention.
newtype CacheCounters = CacheCounters (MutableByteArray RealWorld)

-- | Each stripe is two cache lines of the processor.
stripes, stripeWords :: Int
stripes = 16
stripeWords = 16

countersHits, countersWaits, countersUncached :: Int
countersHits = 0
countersWaits = 1
countersUncached = 2

newCacheCounters :: IO CacheCounters
newCacheCounters = do
  counts <- newAlignedPinnedByteArray (stripes * stripeWords * 8) 128
  setByteArray counts 0 (stripes * stripeWords) (0 :: Int)
  pure (CacheCounters counts)

counters :: CacheCounters -> Int -> IO ()
counters (CacheCounters (MutableByteArray counts)) which = do
  thread <- myThreadId
  let !(I# at) = (orderKeyOf thread .&. (stripes - 1)) * stripeWords + which
  IO $ \world -> case fetchAddIntArray# counts at 1# world of (# world', _ #) -> (# world', () #)
{-# INLINE counters #-}

tallied :: CacheCounters -> Int -> IO Int
tallied (CacheCounters counts) which = sum <$> mapM (\stripe -> readByteArray counts (stripe * stripeWords + which)) [0 .. stripes - 1]

-- | Counts a read that ran as it is, past the cache.
noteUncached :: CacheStore -> IO ()
noteUncached store = counters (storeCounters store) countersUncached

-- | The gauges and counters of a client's cache. Counters are since the client was made.
data CacheGauges = CacheGauges
  { -- | Reads that were answered without asking the server.
    cacheHits :: Int,
    -- | Reads that were sent to the server, to be kept.
    cacheMisses :: Int,
    -- | Reads that waited for a reply that another caller had requested.
    cacheWaits :: Int,
    -- | Reads that ran as they are, past the cache, because their replies cannot be kept.
    cacheUncached :: Int,
    -- | Replies, kept or on their way, that were dropped because their key had changed.
    cacheInvalidated :: Int,
    -- | How often everything from a node was dropped: the node said so, or a connection ended.
    cacheFlushes :: Int,
    -- | Replies that were evicted to make room.
    cacheEvicted :: Int,
    -- | Replies that were not kept, because a change was reported before they came.
    cacheLate :: Int,
    -- | Replies that are kept now.
    cacheKept :: Int,
    -- | The bytes of the kept replies, as they count towards the limit.
    cacheKeptBytes :: Int
  }
  deriving stock (Eq, Show)

-- | The gauges of a client without a cache.
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

-- | The gauges and counters now. \(O(nodes)\), never blocks.
storeGauges :: CacheStore -> IO CacheGauges
storeGauges CacheStore {storeCache, storeCounters} = do
  cache <- readIORef storeCache
  hits <- tallied storeCounters countersHits
  waits <- tallied storeCounters countersWaits
  uncached <- tallied storeCounters countersUncached
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
