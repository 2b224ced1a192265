-- | The replies that are kept, and when they are dropped: a pure machine.
--
-- A reply is kept under the words of its command, in the part of the node that it came
-- from. A caller that finds nothing places a /placeholder/ there, reads, and fills it;
-- callers that come meanwhile join. The server reports a change of what was read on the
-- connection that read it, behind the reply. So there is one rule: __a reply is kept only
-- if its placeholder is still there__, and every event that could make a reply stale takes
-- placeholders away as well as kept replies.
--
-- +----------------------+---------------------------------------------------------+
-- | Event                | What is dropped                                         |
-- +======================+=========================================================+
-- | 'invalidate'         | what was read of these keys from that node              |
-- +----------------------+---------------------------------------------------------+
-- | 'flush'              | everything from that node: it has forgotten its data,   |
-- |                      | or who reads them (a connection has ended)              |
-- +----------------------+---------------------------------------------------------+
-- | 'moved'              | everything of these slots: other nodes serve them       |
-- +----------------------+---------------------------------------------------------+
-- | 'abandon'            | one placeholder: its result is no reply to keep         |
-- +----------------------+---------------------------------------------------------+
-- | 'supersede'          | the entry of one command: its caller has an answer      |
-- |                      | from elsewhere, which may be newer                      |
-- +----------------------+---------------------------------------------------------+
-- | 'fill'               | the entry of that command, if the reply comes late      |
-- |                      | and its caller has it all the same                      |
-- +----------------------+---------------------------------------------------------+
-- | 'place'              | a reply that is too old for the caller                  |
-- +----------------------+---------------------------------------------------------+
-- | 'evict'              | one reply, for room                                     |
-- +----------------------+---------------------------------------------------------+
--
-- Each placeholder has a /version/, a number that is used once. So if a placeholder is
-- taken away and placed again, the reply to the first read does not fill the second.
--
-- A node has several connections, and their messages come in no order. While the message
-- about a change is on its way, the kept reply may be older than an answer that a caller
-- got without the cache. That caller must not get the older reply next: so an answer that
-- was not kept takes the kept one away.
--
-- Every step takes at most \(O(\log n)\) in what is kept, except that 'invalidate' visits
-- each entry of the key. A part is dropped as a whole. A slot that moves leaves a
-- /minimal version/: entries of the slot with lower versions count as gone, and their room is freed
-- when their turn to be evicted comes.
--
-- Eviction: the part that holds the most bytes gives up its oldest reply. If that reply was
-- used since the last look at it, it becomes the youngest instead ('spare').
module Redis.Internal.Client.Cache
  ( Cache,
    newCache,
    Wanted (..),
    Hash,
    EntryVersion,

    -- * Looking
    Found (..),
    find,
    readsOf,

    -- * Reading
    Placed (..),
    place,
    Filling (..),
    Filled (..),
    fill,
    abandon,
    supersede,

    -- * Losing
    invalidate,
    flush,
    moved,

    -- * Making room
    Oldest (..),
    oldest,
    evict,
    spare,

    -- * Looking at it
    Counts (..),
    cacheCounts,
    cacheBytes,
    cacheEntries,
    CacheState (..),
    cacheState,
  )
where

import Data.ByteString (ByteString)
import Data.ByteString.Short (ShortByteString, toShort)
import Data.Foldable (foldl')
import Data.IntMap.Strict (IntMap)
import Data.IntMap.Strict qualified as IntMap
import Data.List qualified as List
import Data.Map.Strict (Map)
import Data.Map.Strict qualified as Map
import Data.Ord (comparing)
import Redis.Error (Endpoint)
import Redis.Internal.Protocol.Encode (Request, requestIs, requestKept)

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

-- | One command that was read. Its words are unpinned memory, which the collector can
-- move: a small pinned string would keep alive everything that was allocated around it.
data CacheEntry kept fetch = CacheEntry
  { entryTicket :: EntryVersion,
    entryArguments :: ShortByteString,
    entryKey :: ShortByteString,
    entrySlot :: Int,
    entryState :: State kept fetch
  }

data State kept fetch
  = Fetching fetch
  | -- | The position in the queue, and the bytes.
    Kept Int Int kept

-- | The counts of what has happened so far.
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

-- | An empty cache with room for so many bytes.
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

-- | How many replies are kept.
cacheEntries :: Cache kept fetch -> Int
cacheEntries = foldl' (\count part -> count + partEntries part) 0 . cacheParts

-- | Everything that further steps depend on, for one command: two caches with equal states
-- behave alike.
data CacheState kept fetch = CacheState
  { stateEntryMap :: [(Endpoint, EntryVersion, Either fetch (Int, kept))],
    stateMinimalVersions :: [(Int, EntryVersion)],
    stateNext :: EntryVersion
  }
  deriving stock (Eq, Ord, Show)

-- | \(O(n)\), for tests.
cacheState :: Cache kept fetch -> CacheState kept fetch
cacheState Cache {cacheParts, cacheMinimalVersions, cacheNext} =
  CacheState
    { stateEntryMap =
        [ (from, entryTicket entry, state)
          | (from, part) <- Map.toList cacheParts,
            entries <- IntMap.elems (partEntryMap part),
            entry <- entries,
            let state = case entryState entry of
                  Fetching fetch -> Left fetch
                  Kept position _ kept -> Right (position, kept)
        ],
      stateMinimalVersions = IntMap.toList cacheMinimalVersions,
      stateNext = cacheNext
    }

-- | A command that a caller wants the reply to.
data Wanted = Wanted
  { wantedFrom :: Endpoint,
    wantedHash :: Hash,
    wantedRequest :: Request,
    wantedKey :: ByteString,
    wantedSlot :: Int
  }

-- | The result of a look-up.
data Found kept fetch
  = Nowhere
  | Here kept
  | OnItsWay fetch

-- | Looks up the entry of a command from a node.
find :: Endpoint -> Hash -> Request -> Cache kept fetch -> Found kept fetch
find from hash wanted cache = case Map.lookup from (cacheParts cache) of
  Nothing -> Nowhere
  Just part -> maybe Nowhere go (IntMap.lookup hash (partEntryMap part))
  where
    go = \case
      [] -> Nowhere
      entry : rest
        | requestIs (entryArguments entry) wanted ->
          if isGone cache entry
            then Nowhere
            else case entryState entry of
              Kept _ _ kept -> Here kept
              Fetching fetch -> OnItsWay fetch
        | otherwise -> go rest
{-# INLINE find #-}

-- | Whether the entry's slot has moved since it was placed.
isGone :: Cache kept fetch -> CacheEntry kept fetch -> Bool
isGone cache entry
  | IntMap.null (cacheMinimalVersions cache) = False
  | otherwise = maybe False (entryTicket entry <) (IntMap.lookup (entrySlot entry) (cacheMinimalVersions cache))
{-# INLINE isGone #-}

-- | Whether there is any reading of these keys from a node.
readsOf :: Endpoint -> [ByteString] -> Cache kept fetch -> Bool
readsOf from keys cache = case Map.lookup from (cacheParts cache) of
  Nothing -> False
  Just part -> any ((`Map.member` partKeys part) . toShort) keys

-- | The result of 'place'.
data Placed kept fetch
  = -- | Another caller has filled it meanwhile.
    Has kept
  | -- | Another caller reads it.
    Joins fetch
  | Leads EntryVersion

-- | Places a placeholder, unless there is one, or a kept reply will do.
place :: Wanted -> (kept -> Bool) -> fetch -> Cache kept fetch -> (Cache kept fetch, Placed kept fetch)
place Wanted {wantedFrom, wantedHash, wantedRequest, wantedKey, wantedSlot} willDo fetch cache =
  case find wantedFrom wantedHash wantedRequest cache of
    Here kept | willDo kept -> (cache, Has kept)
    OnItsWay other -> (cache, Joins other)
    _ -> (counted (onPart wantedFrom added (withoutOld cache)) {cacheNext = entryVersion + 1}, Leads entryVersion)
  where
    entryVersion = cacheNext cache
    key = toShort wantedKey
    withoutOld = supersede wantedFrom wantedHash wantedRequest
    entry =
      CacheEntry
        { entryTicket = entryVersion,
          entryArguments = requestKept wantedRequest,
          entryKey = key,
          entrySlot = wantedSlot,
          entryState = Fetching fetch
        }
    added part =
      part
        { partEntryMap = IntMap.insertWith (<>) wantedHash [entry] (partEntryMap part),
          partKeys = Map.insertWith IntMap.union key (IntMap.singleton entryVersion wantedHash) (partKeys part)
        }
    counted = counting (\counts -> counts {countMisses = countMisses counts + 1})

-- | A reply for the placeholder with this version.
data Filling kept = Filling
  { fillingFrom :: Endpoint,
    fillingHash :: Hash,
    fillingRequest :: Request,
    fillingVersion :: EntryVersion,
    -- | The reply's bytes, including the overhead of keeping it.
    fillingBytes :: Int,
    fillingKept :: kept
  }

-- | The result of 'fill'.
data Filled
  = Filled
  | -- | The placeholder is gone, so the reply is not kept.
    Late
  | -- | Other replies must be evicted first; the placeholder stands.
    NoRoom
  deriving stock (Eq, Show)

-- | Keeps a reply, if its placeholder stands and there is room.
fill :: Filling kept -> Cache kept fetch -> (Cache kept fetch, Filled)
fill Filling {fillingFrom, fillingHash, fillingRequest, fillingVersion, fillingBytes, fillingKept} cache =
  case List.find isFetching (entriesAt fillingFrom fillingHash cache) of
    Just entry
      | isGone cache entry -> (late, Late)
      | cacheBytes cache + fillingBytes > cacheLimit cache -> (cache, NoRoom)
      | otherwise -> ((onPart fillingFrom kept cache) {cacheBytes = cacheBytes cache + fillingBytes, cacheNext = position + 1}, Filled)
    Nothing -> (late, Late)
  where
    position = cacheNext cache
    isIt entry = entryTicket entry == fillingVersion
    isFetching entry =
      isIt entry && case entryState entry of
        Fetching _ -> True
        Kept {} -> False
    late = counting (\counts -> counts {countLate = countLate counts + 1}) (supersede fillingFrom fillingHash fillingRequest cache)
    kept part =
      part
        { partEntryMap = IntMap.adjust (eachNow become) fillingHash (partEntryMap part),
          partQueue = IntMap.insert position (fillingHash, fillingVersion) (partQueue part),
          partBytes = partBytes part + fillingBytes,
          partEntries = partEntries part + 1
        }
    become entry
      | isIt entry = entry {entryState = Kept position fillingBytes fillingKept}
      | otherwise = entry

-- | Takes a placeholder away.
abandon :: Endpoint -> Hash -> EntryVersion -> Cache kept fetch -> Cache kept fetch
abandon from hash entryVersion = dropEntry from hash ((== entryVersion) . entryTicket)

-- | Takes away the entry of a command.
supersede :: Endpoint -> Hash -> Request -> Cache kept fetch -> Cache kept fetch
supersede from hash wanted = dropEntry from hash ((`requestIs` wanted) . entryArguments)

-- | Drops the entries of these keys, which have changed according to the node.
invalidate :: Endpoint -> [ByteString] -> Cache kept fetch -> Cache kept fetch
invalidate from keys cache = foldl' changed cache keys
  where
    changed before key = case Map.lookup from (cacheParts before) >>= Map.lookup (toShort key) . partKeys of
      Nothing -> before
      Just entries ->
        counting (\counts -> counts {countInvalidated = countInvalidated counts + IntMap.size entries}) $
          IntMap.foldlWithKey' (\rest entryVersion hash -> dropEntry from hash ((== entryVersion) . entryTicket) rest) before entries

-- | Drops everything from a node: all of it has changed, or may have.
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
  let kept = case List.find ((== entryVersion) . entryTicket) (IntMap.findWithDefault [] hash (partEntryMap part)) of
        Just entry | not (isGone cache entry), Kept _ _ one <- entryState entry -> Just one
        _ -> Nothing
  pure Oldest {oldestFrom = from, oldestHash = hash, oldestVersion = entryVersion, oldestKept = kept}
  where
    largest = case Map.toList (cacheParts cache) of
      [] -> Nothing
      parts -> Just (List.maximumBy (comparing (partBytes . snd)) parts)

-- | Evicts a reply, to make room for others.
evict :: Oldest kept -> Cache kept fetch -> Cache kept fetch
evict Oldest {oldestFrom, oldestHash, oldestVersion} cache
  | cacheBytes after == cacheBytes cache = cache
  | otherwise = counting (\counts -> counts {countEvicted = countEvicted counts + 1}) after
  where
    after = dropEntry oldestFrom oldestHash (\entry -> entryTicket entry == oldestVersion && isKept entry) cache

-- | Makes a reply the youngest instead of evicting it.
spare :: Oldest kept -> Cache kept fetch -> Cache kept fetch
spare Oldest {oldestFrom, oldestHash, oldestVersion} cache =
  case [position | CacheEntry {entryTicket, entryState = Kept position _ _} <- entriesAt oldestFrom oldestHash cache, entryTicket == oldestVersion] of
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
      Kept _ size kept | entryTicket entry == oldestVersion -> entry {entryState = Kept youngest size kept}
      _ -> entry

-- | Maps over a list and evaluates every element at once: an unevaluated element would hold
-- the fetch, and with it the reply as it came.
eachNow :: (a -> a) -> [a] -> [a]
eachNow change = foldr (\one rest -> let one' = change one in one' `seq` rest `seq` (one' : rest)) []

isKept :: CacheEntry kept fetch -> Bool
isKept entry = case entryState entry of
  Kept {} -> True
  Fetching _ -> False

entriesAt :: Endpoint -> Hash -> Cache kept fetch -> [CacheEntry kept fetch]
entriesAt from hash cache = maybe [] (IntMap.findWithDefault [] hash . partEntryMap) (Map.lookup from (cacheParts cache))

counting :: (Counts -> Counts) -> Cache kept fetch -> Cache kept fetch
counting count cache = cache {cacheCounts = count (cacheCounts cache)}

onPart :: Endpoint -> (Part kept fetch -> Part kept fetch) -> Cache kept fetch -> Cache kept fetch
onPart from change cache = cache {cacheParts = Map.alter (Just . change . fromPart) from (cacheParts cache)}
  where
    fromPart = \case
      Just part -> part
      Nothing -> emptyPart

-- | Drops the entries at a hash that satisfy the predicate, and all references to them.
dropEntry :: Endpoint -> Hash -> (CacheEntry kept fetch -> Bool) -> Cache kept fetch -> Cache kept fetch
dropEntry from hash unwanted cache = case List.partition unwanted (entriesAt from hash cache) of
  ([], _) -> cache
  (gone, stay) ->
    let size = sum [bytes | CacheEntry {entryState = Kept _ bytes _} <- gone]
        without part =
          Part
            { partEntryMap = if null stay then IntMap.delete hash (partEntryMap part) else IntMap.insert hash stay (partEntryMap part),
              partKeys = foldl' unlisted (partKeys part) gone,
              partQueue = foldl' (flip IntMap.delete) (partQueue part) [position | CacheEntry {entryState = Kept position _ _} <- gone],
              partBytes = partBytes part - size,
              partEntries = partEntries part - length (filter isKept gone)
            }
     in (onPart from without cache) {cacheBytes = cacheBytes cache - size}
  where
    unlisted keys CacheEntry {entryKey, entryTicket} = Map.update (nonEmpty . IntMap.delete entryTicket) entryKey keys
    nonEmpty entryVersions = if IntMap.null entryVersions then Nothing else Just entryVersions
