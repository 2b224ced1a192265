-- | The cache of one client: the replies that are kept, and when they are dropped, as a pure machine;
-- the cell in which any thread steps it; and the form in which a reply is kept.
--
-- A reply is kept under the words of its command, in the part of the node that it came
-- from. A caller that finds nothing places a /placeholder/ there, reads, and fills it;
-- callers that come meanwhile join. The server reports a change of what was read on the
-- connection that read it, behind the reply. So there is one rule: __a reply is kept only
-- if its placeholder is still there__, and every event that could make a reply stale takes
-- placeholders away as well as kept replies.
--
-- | Event | What is dropped |
-- | --- | --- |
-- | 'invalidate' | what was read of these keys from that node |
-- | 'flush' | everything from that node: it has forgotten its data, or who reads them (a connection has ended) |
-- | 'moved' | everything of these slots: other nodes serve them |
-- | 'abandon' | one placeholder: its result is no reply to keep |
-- | 'supersede' | the entry of one command: its caller has an answer from elsewhere, which may be newer |
-- | 'fill' | the entry of that command, if the reply comes late and its caller has it all the same |
-- | 'place' | a reply that is too old for the caller |
-- | 'evict' | one reply, for room |
--
-- Each placeholder has a /version/, a number that is used once. So if a placeholder is
-- taken away and placed again, the reply to the first read does not fill the second.
--
-- While the message about a change is on its way, the kept reply may be older than an answer that a
-- caller got without the cache. That caller must not get the older reply next: so an answer that
-- was not kept takes the kept one away.
--
-- Every step takes at most \(O(\log n)\) in what is kept, except that 'invalidate' visits
-- each entry of the key, and 'oldest' each part. A part is dropped as a whole. A slot that moves leaves a
-- /minimal version/: entries of the slot with lower versions count as gone, and their room is freed
-- when their turn to be evicted comes.
--
-- Eviction: the part that holds the most bytes gives up its oldest reply. If that reply was
-- used since the last look at it, it becomes the youngest instead ('spare').
--
-- A hit reads the cell, the clock and the reply's mark, and adds to a count that few threads share.
--
-- A string that comes from a connection is pinned: it keeps alive the block of memory in
-- which it was allocated, so every string that is kept could hold 4 KiB. So short strings are kept
-- where the collector can move them, and copied at each use. Long strings have memory of their own.
module Redis.Internal.Client.Cache
  ( -- * The machine
    Cache,
    newCache,
    Source (..),
    Hash,
    EntryVersion,
    Found (..),
    find,
    Placed (..),
    place,
    Filled (..),
    fill,
    abandon,
    supersede,
    invalidate,
    flush,
    moved,
    Oldest (..),
    oldest,
    evict,
    spare,
    Counts (countEvicted),
    cacheCounts,
    cacheBytes,
    cacheEntries,
    CacheState (..),
    cacheState,

    -- * The client's cache
    CacheStore,
    newCacheStore,
    Kept (..),
    Fetch (..),
    Asked (..),
    hashFor,
    lookFor,
    placeFor,
    keep,
    forget,
    forgetAll,
    mayBeKept,
    noteUncached,
    heardPush,
    lostConnection,
    heardSlots,
    CacheGauges (..),
    noCacheGauges,
    storeGauges,

    -- * Compact replies
    Compact,
    compacted,
    expanded,
    compactBytes,
  )
where

import Control.Concurrent (myThreadId)
import Control.Concurrent.MVar (MVar)
import Control.Monad (unless, when)
import Control.Monad.Primitive (RealWorld)
import Data.Bits (shiftR, (.&.))
import Data.ByteString (ByteString)
import Data.ByteString qualified as ByteString
import Data.ByteString.Short (ShortByteString, fromShort, toShort)
import Data.ByteString.Short qualified as Short
import Data.Foldable (foldl', for_)
import Data.IORef
import Data.IntMap.Strict (IntMap)
import Data.IntMap.Strict qualified as IntMap
import Data.List qualified as List
import Data.Map.Strict (Map)
import Data.Map.Strict qualified as Map
import Data.Maybe (fromMaybe)
import Data.Ord (comparing)
import Data.Primitive.ByteArray
import Redis.Error
import Redis.Internal.Config
import Redis.Internal.Network.Counters (addTo)
import Redis.Internal.Network.InFlight (orderKeyOf)
import Redis.Internal.Network.Runtime
import Redis.Internal.Protocol.Encode (Request, requestHash, requestIs, requestKept, requestSize)
import Redis.Internal.Protocol.Slot (allSlots, keySlot, slotNumber)
import Redis.Internal.Routing.Cluster (SlotNews (..))
import Redis.Internal.Routing.SlotMap
import Redis.Value
import System.Random (randomIO)

-- | A hash of the words of a command.
type Hash = Int

-- | The number of a placeholder, and of a place in the queue.
type EntryVersion = Int

-- | All entries: a @kept@ for each reply, and a @fetch@ for the callers that wait for one.
data Cache kept fetch = Cache
  { cacheParts :: Map Endpoint (Part kept fetch),
    -- | For each slot that moved: entries with versions below this one are gone.
    cacheMinimalVersions :: IntMap EntryVersion,
    cacheNext :: EntryVersion,
    -- | The bytes of all parts.
    cacheBytes :: Int,
    cacheLimit :: Int,
    cacheCounts :: Counts
  }

-- | The entries that came from one node.
data Part kept fetch = Part
  { partEntryMap :: IntMap [CacheEntry kept fetch],
    -- | The entries of each key: their versions, and the hashes that they are found under.
    partKeys :: Map ShortByteString (IntMap Hash),
    -- | The kept replies, the oldest first.
    partQueue :: IntMap (Hash, EntryVersion),
    partBytes :: Int,
    partEntries :: Int
  }

-- | One command that was read.
data CacheEntry kept fetch = CacheEntry
  { entryOwnVersion :: EntryVersion,
    entryArguments :: ShortByteString,
    entryKey :: ShortByteString,
    entrySlot :: Int,
    entryState :: State kept fetch
  }

data State kept fetch
  = Fetching fetch
  | -- | The position in the queue, and the bytes.
    Stored Int Int kept

data Counts = Counts
  { -- | Placeholders that were placed.
    countMisses :: Int,
    -- | Readings that were dropped because their key changed.
    countInvalidated :: Int,
    -- | How often a part was dropped.
    countFlushes :: Int,
    countEvicted :: Int,
    -- | Replies that came after their placeholder was taken away.
    countLate :: Int
  }
  deriving stock (Eq, Ord, Show)

newCache :: Int -> Cache kept fetch
newCache limit =
  Cache
    { cacheParts = Map.empty,
      cacheMinimalVersions = IntMap.empty,
      cacheNext = 0,
      cacheBytes = 0,
      cacheLimit = limit,
      cacheCounts = Counts {countMisses = 0, countInvalidated = 0, countFlushes = 0, countEvicted = 0, countLate = 0}
    }

emptyPart :: Part kept fetch
emptyPart = Part {partEntryMap = IntMap.empty, partKeys = Map.empty, partQueue = IntMap.empty, partBytes = 0, partEntries = 0}

cacheEntries :: Cache kept fetch -> Int
cacheEntries = foldl' (\sum' part -> sum' + partEntries part) 0 . cacheParts

-- | Everything that further steps depend on, for one command.
data CacheState kept fetch = CacheState
  { stateEntries :: [(Endpoint, EntryVersion, Either fetch (Int, kept))],
    stateMinimalVersions :: [(Int, EntryVersion)],
    stateNext :: EntryVersion
  }
  deriving stock (Eq, Ord, Show)

-- | \(O(n)\), for tests.
cacheState :: Cache kept fetch -> CacheState kept fetch
cacheState Cache {cacheParts, cacheMinimalVersions, cacheNext} =
  CacheState
    { stateEntries =
        [ (from, entryOwnVersion entry, state)
          | (from, part) <- Map.toList cacheParts,
            entries <- IntMap.elems (partEntryMap part),
            entry <- entries,
            let state = case entryState entry of
                  Fetching fetch -> Left fetch
                  Stored position _ kept -> Right (position, kept)
        ],
      stateMinimalVersions = IntMap.toList cacheMinimalVersions,
      stateNext = cacheNext
    }

-- | A node, and the command on one key whose reply is looked for there.
data Source = Source
  { sourceNode :: Endpoint,
    sourceHash :: Hash,
    sourceRequest :: Request,
    sourceKey :: ByteString
  }

data Found kept fetch
  = Nowhere
  | Here kept
  | OnItsWay fetch

-- | Looks up the entry of a command from a node.
find :: Source -> Cache kept fetch -> Found kept fetch
find Source {sourceNode, sourceHash, sourceRequest} cache = go (entriesAt sourceNode sourceHash cache)
  where
    go = \case
      [] -> Nowhere
      entry : rest
        | not (requestIs (entryArguments entry) sourceRequest) -> go rest
        | isGone cache entry -> Nowhere
        | otherwise -> case entryState entry of
          Stored _ _ kept -> Here kept
          Fetching fetch -> OnItsWay fetch
{-# INLINE find #-}

-- | Whether the entry's slot has moved since it was placed.
isGone :: Cache kept fetch -> CacheEntry kept fetch -> Bool
isGone cache entry = maybe False (entryOwnVersion entry <) (IntMap.lookup (entrySlot entry) (cacheMinimalVersions cache))
{-# INLINE isGone #-}

-- | Whether there is any entry of these keys from a node.
readsOf :: Endpoint -> [ByteString] -> Cache kept fetch -> Bool
readsOf from keys cache = any (\part -> any ((`Map.member` partKeys part) . toShort) keys) (Map.lookup from (cacheParts cache))

data Placed kept fetch
  = -- | Another caller has filled it meanwhile.
    Has kept
  | -- | Another caller reads it.
    Joins fetch
  | Leads EntryVersion

-- | Places a placeholder, unless there is one, or a kept reply will do.
place :: Source -> (kept -> Bool) -> fetch -> Cache kept fetch -> (Cache kept fetch, Placed kept fetch)
place source@Source {sourceNode, sourceHash, sourceRequest, sourceKey} suits fetch cache =
  case find source cache of
    Here kept | suits kept -> (cache, Has kept)
    OnItsWay other -> (cache, Joins other)
    _ -> (counted (onPart sourceNode added (supersede source cache)) {cacheNext = entryVersion + 1}, Leads entryVersion)
  where
    entryVersion = cacheNext cache
    key = toShort sourceKey
    entry =
      CacheEntry
        { entryOwnVersion = entryVersion,
          entryArguments = requestKept sourceRequest,
          entryKey = key,
          entrySlot = slotNumber (keySlot sourceKey),
          entryState = Fetching fetch
        }
    added part =
      part
        { partEntryMap = IntMap.insertWith (<>) sourceHash [entry] (partEntryMap part),
          partKeys = Map.insertWith IntMap.union key (IntMap.singleton entryVersion sourceHash) (partKeys part)
        }
    counted = counting (\counts -> counts {countMisses = countMisses counts + 1})

data Filled
  = Filled
  | -- | The placeholder is gone, so the reply is not kept.
    Late
  | -- | Other replies must be evicted first; the placeholder stands.
    NoRoom
  deriving stock (Eq, Show)

-- | Keeps a reply of so many bytes, overhead included, if the placeholder with this version stands and
-- there is room.
fill :: Source -> EntryVersion -> Int -> kept -> Cache kept fetch -> (Cache kept fetch, Filled)
fill source@Source {sourceNode, sourceHash} entryVersion bytes reply cache =
  case List.find isFetching (entriesAt sourceNode sourceHash cache) of
    Just entry
      | isGone cache entry -> (late, Late)
      | cacheBytes cache + bytes > cacheLimit cache -> (cache, NoRoom)
      | otherwise -> ((onPart sourceNode kept cache) {cacheBytes = cacheBytes cache + bytes, cacheNext = position + 1}, Filled)
    Nothing -> (late, Late)
  where
    position = cacheNext cache
    isIt entry = entryOwnVersion entry == entryVersion
    isFetching entry = isIt entry && not (isKept entry)
    late = counting (\counts -> counts {countLate = countLate counts + 1}) (supersede source cache)
    kept part =
      part
        { partEntryMap = IntMap.adjust (eachNow become) sourceHash (partEntryMap part),
          partQueue = IntMap.insert position (sourceHash, entryVersion) (partQueue part),
          partBytes = partBytes part + bytes,
          partEntries = partEntries part + 1
        }
    become entry = if isIt entry then entry {entryState = Stored position bytes reply} else entry

abandon :: Source -> EntryVersion -> Cache kept fetch -> Cache kept fetch
abandon Source {sourceNode, sourceHash} entryVersion = dropEntry sourceNode sourceHash ((== entryVersion) . entryOwnVersion)

supersede :: Source -> Cache kept fetch -> Cache kept fetch
supersede Source {sourceNode, sourceHash, sourceRequest} = dropEntry sourceNode sourceHash ((`requestIs` sourceRequest) . entryArguments)

-- | Drops the entries of these keys, which have changed according to the node.
invalidate :: Endpoint -> [ByteString] -> Cache kept fetch -> Cache kept fetch
invalidate from keys cache = foldl' changed cache keys
  where
    changed before key = case Map.lookup from (cacheParts before) >>= Map.lookup (toShort key) . partKeys of
      Nothing -> before
      Just entries ->
        counting (\counts -> counts {countInvalidated = countInvalidated counts + IntMap.size entries}) $
          IntMap.foldlWithKey' (\rest entryVersion hash -> dropEntry from hash ((== entryVersion) . entryOwnVersion) rest) before entries

flush :: Endpoint -> Cache kept fetch -> Cache kept fetch
flush from cache = case Map.lookup from (cacheParts cache) of
  Nothing -> cache
  Just part ->
    counting
      (\counts -> counts {countFlushes = countFlushes counts + 1})
      cache {cacheParts = Map.delete from (cacheParts cache), cacheBytes = cacheBytes cache - partBytes part}

-- | Drops the entries of these slots, which have other owners now.
moved :: [Int] -> Cache kept fetch -> Cache kept fetch
moved slots cache = cache {cacheMinimalVersions = foldl' (\minimalVersions slot -> IntMap.insert slot (cacheNext cache) minimalVersions) (cacheMinimalVersions cache) slots}

-- | The reply whose turn to be evicted has come.
data Oldest kept = Oldest
  { oldestFrom :: Endpoint,
    oldestHash :: Hash,
    oldestVersion :: EntryVersion,
    -- | 'Nothing' if the entry is gone already and only takes room.
    oldestKept :: Maybe kept
  }

-- | The next reply to evict. 'Nothing' if nothing is kept.
oldest :: Cache kept fetch -> Maybe (Oldest kept)
oldest cache = do
  (from, part) <- largest
  ((hash, entryVersion), _) <- IntMap.minView (partQueue part)
  let kept = case List.find ((== entryVersion) . entryOwnVersion) (entriesAt from hash cache) of
        Just entry | not (isGone cache entry), Stored _ _ one <- entryState entry -> Just one
        _ -> Nothing
  pure Oldest {oldestFrom = from, oldestHash = hash, oldestVersion = entryVersion, oldestKept = kept}
  where
    largest = case Map.toList (cacheParts cache) of
      [] -> Nothing
      parts -> Just (List.maximumBy (comparing (partBytes . snd)) parts)

evict :: Oldest kept -> Cache kept fetch -> Cache kept fetch
evict Oldest {oldestFrom, oldestHash, oldestVersion} cache
  | cacheBytes after == cacheBytes cache = cache
  | otherwise = counting (\counts -> counts {countEvicted = countEvicted counts + 1}) after
  where
    after = dropEntry oldestFrom oldestHash (\entry -> entryOwnVersion entry == oldestVersion && isKept entry) cache

-- | Makes a reply the youngest instead of evicting it.
spare :: Oldest kept -> Cache kept fetch -> Cache kept fetch
spare Oldest {oldestFrom, oldestHash, oldestVersion} cache =
  case [position | CacheEntry {entryOwnVersion, entryState = Stored position _ _} <- entriesAt oldestFrom oldestHash cache, entryOwnVersion == oldestVersion] of
    position : _ -> (onPart oldestFrom (requeued position) cache) {cacheNext = youngest + 1}
    [] -> cache
  where
    youngest = cacheNext cache
    requeued position part =
      part
        { partQueue = IntMap.insert youngest (oldestHash, oldestVersion) (IntMap.delete position (partQueue part)),
          partEntryMap = IntMap.adjust (eachNow become) oldestHash (partEntryMap part)
        }
    become entry = case entryState entry of
      Stored _ size kept | entryOwnVersion entry == oldestVersion -> entry {entryState = Stored youngest size kept}
      _ -> entry

-- | Maps over a list and evaluates every element at once: an unevaluated element would hold
-- the fetch, or the reply as it came.
eachNow :: (a -> b) -> [a] -> [b]
eachNow change = foldr (\one rest -> let one' = change one in one' `seq` rest `seq` (one' : rest)) []

isKept :: CacheEntry kept fetch -> Bool
isKept entry = case entryState entry of
  Stored {} -> True
  Fetching _ -> False

entriesAt :: Endpoint -> Hash -> Cache kept fetch -> [CacheEntry kept fetch]
entriesAt from hash cache = maybe [] (IntMap.findWithDefault [] hash . partEntryMap) (Map.lookup from (cacheParts cache))

counting :: (Counts -> Counts) -> Cache kept fetch -> Cache kept fetch
counting change cache = cache {cacheCounts = change (cacheCounts cache)}

onPart :: Endpoint -> (Part kept fetch -> Part kept fetch) -> Cache kept fetch -> Cache kept fetch
onPart from change cache = cache {cacheParts = Map.alter (Just . change . fromMaybe emptyPart) from (cacheParts cache)}

-- | Drops the entries at a hash that satisfy the predicate, and all references to them.
dropEntry :: Endpoint -> Hash -> (CacheEntry kept fetch -> Bool) -> Cache kept fetch -> Cache kept fetch
dropEntry from hash unwanted cache = case List.partition unwanted (entriesAt from hash cache) of
  ([], _) -> cache
  (gone, stay) ->
    let size = sum [bytes | CacheEntry {entryState = Stored _ bytes _} <- gone]
        without part =
          Part
            { partEntryMap = if null stay then IntMap.delete hash (partEntryMap part) else IntMap.insert hash stay (partEntryMap part),
              partKeys = foldl' unlisted (partKeys part) gone,
              partQueue = foldl' (flip IntMap.delete) (partQueue part) [position | CacheEntry {entryState = Stored position _ _} <- gone],
              partBytes = partBytes part - size,
              partEntries = partEntries part - length (filter isKept gone)
            }
     in (onPart from without cache) {cacheBytes = cacheBytes cache - size}
  where
    unlisted keys CacheEntry {entryKey, entryOwnVersion} = Map.update (nonEmpty . IntMap.delete entryOwnVersion) entryKey keys
    nonEmpty entryVersions = if IntMap.null entryVersions then Nothing else Just entryVersions

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

data CacheStore = CacheStore
  { storeCache :: IORef (Cache Kept Fetch),
    storeTracking :: Tracking,
    storeLimit :: Int,
    -- | A secret seed for the hashes, so that nobody outside can choose keys that collide.
    storeSeed :: Int,
    storeOwners :: IORef SlotMap,
    storeCounters :: CacheCounters
  }

newCacheStore :: Caching -> IO CacheStore
newCacheStore Caching {cachingBytes, cachingTracking} = do
  cache <- newIORef (newCache cachingBytes)
  CacheStore cache cachingTracking cachingBytes <$> randomIO <*> newIORef emptySlotMap <*> newCacheCounters

stepping :: CacheStore -> (Cache Kept Fetch -> (Cache Kept Fetch, a)) -> IO a
stepping = atomicModifyIORef' . storeCache

stepping_ :: CacheStore -> (Cache Kept Fetch -> Cache Kept Fetch) -> IO ()
stepping_ store step = stepping store (\cache -> (step cache, ()))

-- | The number under which the replies to a command are kept. \(O(n)\).
hashFor :: CacheStore -> Request -> Hash
hashFor store = requestHash (storeSeed store)
{-# INLINE hashFor #-}

-- | When a command asks, and for a reply of which greatest age.
data Asked = Asked
  { askedAt :: {-# UNPACK #-} !Nanos,
    askedAge :: {-# UNPACK #-} !Nanos
  }

willDo :: Asked -> Kept -> Bool
willDo Asked {askedAt, askedAge} Kept {keptBegan} = askedAt - keptBegan <= askedAge
{-# INLINE willDo #-}

-- | Looks for a kept reply that is fresh enough. \(O(\log n)\), never blocks.
lookFor :: CacheStore -> Source -> Asked -> IO (Maybe Value)
lookFor store source asked = do
  cache <- readIORef (storeCache store)
  case find source cache of
    Here kept@Kept {keptReply, keptUsed}
      | willDo asked kept -> do
        used <- readIORef keptUsed
        -- An unneeded write would take the cache line from the other cores.
        unless used (writeIORef keptUsed True)
        count (storeCounters store) countersHits
        pure (Just (expanded keptReply))
    _ -> pure Nothing
{-# INLINE lookFor #-}

-- | Places a placeholder, unless another caller has.
placeFor :: CacheStore -> Source -> Asked -> Fetch -> IO (Placed Kept Fetch)
placeFor store source asked fetch = do
  placed <- stepping store (place source (willDo asked) fetch)
  placed <$ case placed of
    Joins _ -> count (storeCounters store) countersWaits
    Has _ -> count (storeCounters store) countersHits
    Leads _ -> pure ()

-- | Keeps the reply to the read behind a placeholder, if the placeholder still stands. The
-- connection's reader calls it, in the order in which replies and pushes come.
keep :: CacheStore -> Source -> EntryVersion -> Fetch -> Value -> IO ()
keep store source@Source {sourceRequest} entryVersion fetch value
  | bytes > storeLimit store = forgetAll store source
  | otherwise = do
    keptUsed <- newIORef False
    let kept = Kept {keptReply = compact, keptBegan = deadlineBegan (fetchDeadline fetch), keptUsed}
        go spares =
          stepping store (fill source entryVersion bytes kept) >>= \case
            NoRoom -> makeRoom spares >>= go
            _ -> pure ()
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

forget :: CacheStore -> Source -> EntryVersion -> IO ()
forget store source = stepping_ store . abandon source

-- | Takes away the entry of a command whose caller has an answer that was not kept.
forgetAll :: CacheStore -> Source -> IO ()
forgetAll store = stepping_ store . supersede

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
  Push [kind, what] | kind `elem` [BulkString "invalidate", SimpleString "invalidate"] -> case what of
    Array names -> do
      let keys = [name | BulkString name <- names]
      -- A placeholder placed after this look belongs to a read behind this change.
      concerned <- readsOf from keys <$> readIORef (storeCache store)
      when concerned (stepping_ store (invalidate from keys))
    _ -> stepping_ store (flush from)
  _ -> pure ()

-- | Drops everything from a node, because a connection on which it reported changes has ended.
lostConnection :: CacheStore -> Endpoint -> IO ()
lostConnection store from = stepping_ store (flush from)

-- | Drops the entries of slots that have other owners in the new slot map, or of a slot for which a command
-- was redirected: the node that the map names does not report what is written to a key that it does not have.
heardSlots :: CacheStore -> SlotNews -> IO ()
heardSlots store = \case
  SlotRedirected slot -> stepping_ store (moved [slotNumber slot])
  MapPublished owners -> do
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

-- | Adds one to the count at this position, in the stripe of this thread.
count :: CacheCounters -> Int -> IO ()
count (CacheCounters counts) which = do
  thread <- myThreadId
  addTo counts ((orderKeyOf thread .&. (stripes - 1)) * stripeWords + which) 1
{-# INLINE count #-}

tallied :: CacheCounters -> Int -> IO Int
tallied (CacheCounters counts) which = sum <$> mapM (\stripe -> readByteArray counts (stripe * stripeWords + which)) [0 .. stripes - 1]

-- | Counts a read that ran as it is, past the cache.
noteUncached :: CacheStore -> IO ()
noteUncached store = count (storeCounters store) countersUncached

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

noCacheGauges :: CacheGauges
noCacheGauges = CacheGauges 0 0 0 0 0 0 0 0 0 0

-- | The gauges and counters now. \(O(nodes)\), never blocks.
storeGauges :: CacheStore -> IO CacheGauges
storeGauges CacheStore {storeCache, storeCounters} = do
  cache <- readIORef storeCache
  cacheHits <- tallied storeCounters countersHits
  cacheWaits <- tallied storeCounters countersWaits
  cacheUncached <- tallied storeCounters countersUncached
  let Counts {countMisses, countInvalidated, countFlushes, countEvicted, countLate} = cacheCounts cache
  pure
    CacheGauges
      { cacheHits,
        cacheMisses = countMisses,
        cacheWaits,
        cacheUncached,
        cacheInvalidated = countInvalidated,
        cacheFlushes = countFlushes,
        cacheEvicted = countEvicted,
        cacheLate = countLate,
        cacheKept = cacheEntries cache,
        cacheKeptBytes = cacheBytes cache
      }

data Compact
  = -- | A reply without strings, or with a long one.
    AsItIs Value
  | CompactBulk ShortByteString
  | CompactSimple ShortByteString
  | CompactVerbatim ShortByteString Compact
  | CompactArray [Compact]
  | CompactSet [Compact]
  | CompactMap [(Compact, Compact)]

-- | Turns a reply into the form for keeping. \(O(n)\).
compacted :: Value -> Compact
compacted value = case value of
  BulkString bytes | isShort bytes -> CompactBulk (toShort bytes)
  SimpleString bytes | isShort bytes -> CompactSimple (toShort bytes)
  VerbatimString format bytes -> CompactVerbatim (toShort format) (compacted (BulkString bytes))
  Array elements -> CompactArray (eachNow compacted elements)
  Set elements -> CompactSet (eachNow compacted elements)
  Map pairs -> CompactMap (eachNow (\(key, element) -> let !one = compacted key; !other = compacted element in (one, other)) pairs)
  _ -> AsItIs value
  where
    isShort bytes = ByteString.length bytes < ownMemory

-- | The bytes from which an object has memory of its own.
ownMemory :: Int
ownMemory = 3277

-- | Turns a kept reply back into a value. \(O(n)\).
expanded :: Compact -> Value
expanded = \case
  AsItIs value -> value
  CompactBulk bytes -> BulkString (fromShort bytes)
  CompactSimple bytes -> SimpleString (fromShort bytes)
  CompactVerbatim format text -> VerbatimString (fromShort format) (case expanded text of BulkString bytes -> bytes; _ -> "")
  CompactArray elements -> Array (map expanded elements)
  CompactSet elements -> Set (map expanded elements)
  CompactMap pairs -> Map [(expanded key, expanded element) | (key, element) <- pairs]

-- | The memory that a kept reply takes on a 64-bit heap. \(O(n)\) in its elements.
compactBytes :: Compact -> Int
compactBytes = \case
  AsItIs value -> 16 + ofValue value
  CompactBulk bytes -> 16 + short bytes
  CompactSimple bytes -> 16 + short bytes
  CompactVerbatim format text -> 24 + short format + compactBytes text
  CompactArray elements -> 16 + each elements
  CompactSet elements -> 16 + each elements
  CompactMap pairs -> 16 + sum [48 + compactBytes key + compactBytes element | (key, element) <- pairs]
  where
    short bytes = 40 + Short.length bytes
    each elements = sum [24 + compactBytes element | element <- elements]
    ofValue = \case
      BulkString bytes -> own bytes
      SimpleString bytes -> own bytes
      BigNumber number -> 32 + 8 * length (takeWhile (/= 0) (iterate (`shiftR` 64) (abs number)))
      _ -> 16
    -- A long string occupies whole blocks of memory.
    own bytes = 4096 + ByteString.length bytes
