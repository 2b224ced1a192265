-- | What is kept of what was read, and when it goes: a pure machine.
--
-- A reply is kept under the words of its command, in the part of the node that it came
-- from. Who finds nothing places a /placeholder/ there, reads, and fills it; who comes
-- meanwhile joins him. The server tells of a change of what was read on the connection
-- that read it, behind the reply. So the rule is one: __a reply is kept only if its
-- placeholder is still there__, and all that could make it stale takes the placeholder
-- away, as it takes away what is kept.
--
-- +----------------------+---------------------------------------------------------+
-- | Event                | What goes                                               |
-- +======================+=========================================================+
-- | 'invalidate'         | what was read of these keys from that node              |
-- +----------------------+---------------------------------------------------------+
-- | 'flush'              | all from that node: it has forgotten its data, or who   |
-- |                      | reads them (a connection has ended)                     |
-- +----------------------+---------------------------------------------------------+
-- | 'moved'              | all of these slots: others answer for them              |
-- +----------------------+---------------------------------------------------------+
-- | 'abandon'            | one placeholder: what came is no reply to keep          |
-- +----------------------+---------------------------------------------------------+
-- | 'supersede'          | what there is of one command: its caller has had an     |
-- |                      | answer from elsewhere, which may be newer               |
-- +----------------------+---------------------------------------------------------+
-- | 'fill'               | the same, if it comes late, and was had all the same    |
-- +----------------------+---------------------------------------------------------+
-- | 'place'              | what is there and too old for who wants it              |
-- +----------------------+---------------------------------------------------------+
-- | 'evict'              | one reply, for room                                     |
-- +----------------------+---------------------------------------------------------+
--
-- Each placeholder has a /ticket/, a number that is used once. So one that was taken away
-- and placed again is not filled with the reply to the first.
--
-- A node has several connections, and their messages come in no order. So what is kept may
-- be older, for as long as the message about that is on its way, than what a caller has
-- had that was not kept. It must not have the older one next: what is not kept takes away
-- what is.
--
-- Nothing here is slower than \(O(\log n)\) in what is kept, but in the readings of the
-- one key that is invalidated. A part is dropped as a whole. A slot that moves leaves a
-- /floor/: readings of it with lower tickets count as gone, and their room is taken back
-- when their turn comes to be evicted.
--
-- Who is evicted: the part that holds the most bytes gives up its oldest, unless that has
-- been used since it was looked at last; then it becomes the youngest ('spare').
module Redis.Internal.Client.Cache
  ( Cache,
    newCache,
    Wanted (..),
    Hash,
    Ticket,

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

-- | Of the words of a command.
type Hash = Int

-- | The number of a placeholder, and of a place in the queue.
type Ticket = Int

-- | All that is kept: @kept@ of each reply, and @fetch@ for those who wait for one.
data Cache kept fetch = Cache
  { cacheParts :: Map Endpoint (Part kept fetch),
    -- | Tickets of these slots below this are of readings that are gone.
    cacheFloors :: IntMap Ticket,
    cacheNext :: Ticket,
    -- | Of all parts.
    cacheBytes :: Int,
    cacheLimit :: Int,
    cacheCounts :: Counts
  }

-- | What came from one node.
data Part kept fetch = Part
  { partReadings :: IntMap [Reading kept fetch],
    -- | The readings of each key, and where they are.
    partKeys :: Map ShortByteString (IntMap Hash),
    -- | What is kept, the oldest first.
    partQueue :: IntMap (Hash, Ticket),
    partBytes :: Int,
    partEntries :: Int
  }

-- | One command that was read. Its words are where the collector can move them: a small
-- string that is pinned would hold all that was made around it.
data Reading kept fetch = Reading
  { readingTicket :: Ticket,
    readingWords :: ShortByteString,
    readingKey :: ShortByteString,
    readingSlot :: Int,
    readingState :: State kept fetch
  }

data State kept fetch
  = Fetching fetch
  | -- | Its place in the queue, and its bytes.
    Kept Int Int kept

-- | What has happened so far.
data Counts = Counts
  { -- | Placeholders.
    countMisses :: Int,
    -- | Readings that went with their key.
    countInvalidated :: Int,
    -- | Times that a part was dropped.
    countFlushes :: Int,
    countEvicted :: Int,
    -- | Replies that came when their placeholder had gone.
    countLate :: Int
  }
  deriving stock (Eq, Ord, Show)

-- | Nothing, with room for so many bytes.
newCache :: Int -> Cache kept fetch
newCache limit =
  Cache
    { cacheParts = Map.empty,
      cacheFloors = IntMap.empty,
      cacheNext = 0,
      cacheBytes = 0,
      cacheLimit = limit,
      cacheCounts = Counts {countMisses = 0, countInvalidated = 0, countFlushes = 0, countEvicted = 0, countLate = 0}
    }

emptyPart :: Part kept fetch
emptyPart = Part {partReadings = IntMap.empty, partKeys = Map.empty, partQueue = IntMap.empty, partBytes = 0, partEntries = 0}

-- | Replies that are kept.
cacheEntries :: Cache kept fetch -> Int
cacheEntries = foldl' (\count part -> count + partEntries part) 0 . cacheParts

-- | All that decides what comes of further steps, for one command: two caches with the same
-- are the same.
data CacheState kept fetch = CacheState
  { stateReadings :: [(Endpoint, Ticket, Either fetch (Int, kept))],
    stateFloors :: [(Int, Ticket)],
    stateNext :: Ticket
  }
  deriving stock (Eq, Ord, Show)

-- | \(O(n)\), for tests.
cacheState :: Cache kept fetch -> CacheState kept fetch
cacheState Cache {cacheParts, cacheFloors, cacheNext} =
  CacheState
    { stateReadings =
        [ (from, readingTicket reading, state)
          | (from, part) <- Map.toList cacheParts,
            readings <- IntMap.elems (partReadings part),
            reading <- readings,
            let state = case readingState reading of
                  Fetching fetch -> Left fetch
                  Kept position _ kept -> Right (position, kept)
        ],
      stateFloors = IntMap.toList cacheFloors,
      stateNext = cacheNext
    }

-- | What a caller wants.
data Wanted = Wanted
  { wantedFrom :: Endpoint,
    wantedHash :: Hash,
    wantedRequest :: Request,
    wantedKey :: ByteString,
    wantedSlot :: Int
  }

-- | What a look finds.
data Found kept fetch
  = Nowhere
  | Here kept
  | OnItsWay fetch

-- | What there is of a command, from a node.
find :: Endpoint -> Hash -> Request -> Cache kept fetch -> Found kept fetch
find from hash wanted cache = case Map.lookup from (cacheParts cache) of
  Nothing -> Nowhere
  Just part -> maybe Nowhere go (IntMap.lookup hash (partReadings part))
  where
    go = \case
      [] -> Nowhere
      reading : rest
        | requestIs (readingWords reading) wanted ->
          if isGone cache reading
            then Nowhere
            else case readingState reading of
              Kept _ _ kept -> Here kept
              Fetching fetch -> OnItsWay fetch
        | otherwise -> go rest
{-# INLINE find #-}

-- | Whether its slot has moved since it was placed.
isGone :: Cache kept fetch -> Reading kept fetch -> Bool
isGone cache reading
  | IntMap.null (cacheFloors cache) = False
  | otherwise = maybe False (readingTicket reading <) (IntMap.lookup (readingSlot reading) (cacheFloors cache))
{-# INLINE isGone #-}

-- | Whether there is anything from a node of one of these keys.
readsOf :: Endpoint -> [ByteString] -> Cache kept fetch -> Bool
readsOf from keys cache = case Map.lookup from (cacheParts cache) of
  Nothing -> False
  Just part -> any ((`Map.member` partKeys part) . toShort) keys

-- | What comes of wanting to place.
data Placed kept fetch
  = -- | Somebody else has filled it meanwhile.
    Has kept
  | -- | Somebody else reads it.
    Joins fetch
  | Leads Ticket

-- | Places a placeholder, unless there is one, or what is kept will do.
place :: Wanted -> (kept -> Bool) -> fetch -> Cache kept fetch -> (Cache kept fetch, Placed kept fetch)
place Wanted {wantedFrom, wantedHash, wantedRequest, wantedKey, wantedSlot} willDo fetch cache =
  case find wantedFrom wantedHash wantedRequest cache of
    Here kept | willDo kept -> (cache, Has kept)
    OnItsWay other -> (cache, Joins other)
    _ -> (counted (onPart wantedFrom added (withoutOld cache)) {cacheNext = ticket + 1}, Leads ticket)
  where
    ticket = cacheNext cache
    key = toShort wantedKey
    withoutOld = supersede wantedFrom wantedHash wantedRequest
    reading =
      Reading
        { readingTicket = ticket,
          readingWords = requestKept wantedRequest,
          readingKey = key,
          readingSlot = wantedSlot,
          readingState = Fetching fetch
        }
    added part =
      part
        { partReadings = IntMap.insertWith (<>) wantedHash [reading] (partReadings part),
          partKeys = Map.insertWith IntMap.union key (IntMap.singleton ticket wantedHash) (partKeys part)
        }
    counted = counting (\counts -> counts {countMisses = countMisses counts + 1})

-- | A reply, for the placeholder of this ticket.
data Filling kept = Filling
  { fillingFrom :: Endpoint,
    fillingHash :: Hash,
    fillingRequest :: Request,
    fillingTicket :: Ticket,
    -- | With what keeping it takes.
    fillingBytes :: Int,
    fillingKept :: kept
  }

-- | What became of a reply.
data Filled
  = Filled
  | -- | Its placeholder has gone, and it is not kept.
    Late
  | -- | Others must go first; its placeholder stands.
    NoRoom
  deriving stock (Eq, Show)

-- | Keeps a reply.
fill :: Filling kept -> Cache kept fetch -> (Cache kept fetch, Filled)
fill Filling {fillingFrom, fillingHash, fillingRequest, fillingTicket, fillingBytes, fillingKept} cache =
  case List.find isFetching (readingsAt fillingFrom fillingHash cache) of
    Just reading
      | isGone cache reading -> (late, Late)
      | cacheBytes cache + fillingBytes > cacheLimit cache -> (cache, NoRoom)
      | otherwise -> ((onPart fillingFrom kept cache) {cacheBytes = cacheBytes cache + fillingBytes, cacheNext = position + 1}, Filled)
    Nothing -> (late, Late)
  where
    position = cacheNext cache
    isIt reading = readingTicket reading == fillingTicket
    isFetching reading =
      isIt reading && case readingState reading of
        Fetching _ -> True
        Kept {} -> False
    late = counting (\counts -> counts {countLate = countLate counts + 1}) (supersede fillingFrom fillingHash fillingRequest cache)
    kept part =
      part
        { partReadings = IntMap.adjust (eachNow become) fillingHash (partReadings part),
          partQueue = IntMap.insert position (fillingHash, fillingTicket) (partQueue part),
          partBytes = partBytes part + fillingBytes,
          partEntries = partEntries part + 1
        }
    become reading
      | isIt reading = reading {readingState = Kept position fillingBytes fillingKept}
      | otherwise = reading

-- | Takes a placeholder away.
abandon :: Endpoint -> Hash -> Ticket -> Cache kept fetch -> Cache kept fetch
abandon from hash ticket = dropReading from hash ((== ticket) . readingTicket)

-- | Takes away what there is of a command.
supersede :: Endpoint -> Hash -> Request -> Cache kept fetch -> Cache kept fetch
supersede from hash wanted = dropReading from hash ((`requestIs` wanted) . readingWords)

-- | These keys have changed, says a node.
invalidate :: Endpoint -> [ByteString] -> Cache kept fetch -> Cache kept fetch
invalidate from keys cache = foldl' changed cache keys
  where
    changed before key = case Map.lookup from (cacheParts before) >>= Map.lookup (toShort key) . partKeys of
      Nothing -> before
      Just readings ->
        counting (\counts -> counts {countInvalidated = countInvalidated counts + IntMap.size readings}) $
          IntMap.foldlWithKey' (\rest ticket hash -> dropReading from hash ((== ticket) . readingTicket) rest) before readings

-- | Whatever came from a node has changed, or may have.
flush :: Endpoint -> Cache kept fetch -> Cache kept fetch
flush from cache = case Map.lookup from (cacheParts cache) of
  Nothing -> cache
  Just part ->
    counting
      (\counts -> counts {countFlushes = countFlushes counts + 1})
      cache {cacheParts = Map.delete from (cacheParts cache), cacheBytes = cacheBytes cache - partBytes part}

-- | These slots have other owners now.
moved :: [Int] -> Cache kept fetch -> Cache kept fetch
moved slots cache = cache {cacheFloors = foldl' (\floors slot -> IntMap.insert slot (cacheNext cache) floors) (cacheFloors cache) slots}

-- | A reply whose turn it is to go.
data Oldest kept = Oldest
  { oldestFrom :: Endpoint,
    oldestHash :: Hash,
    oldestTicket :: Ticket,
    -- | 'Nothing' if it is gone already, and only takes room.
    oldestKept :: Maybe kept
  }

-- | 'Nothing' if nothing is kept.
oldest :: Cache kept fetch -> Maybe (Oldest kept)
oldest cache = do
  (from, part) <- largest
  ((hash, ticket), _) <- IntMap.minView (partQueue part)
  let kept = case List.find ((== ticket) . readingTicket) (IntMap.findWithDefault [] hash (partReadings part)) of
        Just reading | not (isGone cache reading), Kept _ _ one <- readingState reading -> Just one
        _ -> Nothing
  pure Oldest {oldestFrom = from, oldestHash = hash, oldestTicket = ticket, oldestKept = kept}
  where
    largest = case Map.toList (cacheParts cache) of
      [] -> Nothing
      parts -> Just (List.maximumBy (comparing (partBytes . snd)) parts)

-- | Gives its room to others.
evict :: Oldest kept -> Cache kept fetch -> Cache kept fetch
evict Oldest {oldestFrom, oldestHash, oldestTicket} cache
  | cacheBytes after == cacheBytes cache = cache
  | otherwise = counting (\counts -> counts {countEvicted = countEvicted counts + 1}) after
  where
    after = dropReading oldestFrom oldestHash (\reading -> readingTicket reading == oldestTicket && isKept reading) cache

-- | Makes it the youngest.
spare :: Oldest kept -> Cache kept fetch -> Cache kept fetch
spare Oldest {oldestFrom, oldestHash, oldestTicket} cache =
  case [position | Reading {readingTicket, readingState = Kept position _ _} <- readingsAt oldestFrom oldestHash cache, readingTicket == oldestTicket] of
    position : _ -> (onPart oldestFrom (requeued position) cache) {cacheNext = youngest + 1}
    [] -> cache
  where
    youngest = cacheNext cache
    requeued position part =
      part
        { partQueue = IntMap.insert youngest (oldestHash, oldestTicket) (IntMap.delete position (partQueue part)),
          partReadings = IntMap.adjust (eachNow become) oldestHash (partReadings part)
        }
    become reading = case readingState reading of
      Kept _ size kept | readingTicket reading == oldestTicket -> reading {readingState = Kept youngest size kept}
      _ -> reading

-- | The same for each, done now: what is still to be done would hold the fetch, and with
-- that the reply as it came.
eachNow :: (a -> a) -> [a] -> [a]
eachNow change = foldr (\one rest -> let one' = change one in one' `seq` rest `seq` (one' : rest)) []

isKept :: Reading kept fetch -> Bool
isKept reading = case readingState reading of
  Kept {} -> True
  Fetching _ -> False

readingsAt :: Endpoint -> Hash -> Cache kept fetch -> [Reading kept fetch]
readingsAt from hash cache = maybe [] (IntMap.findWithDefault [] hash . partReadings) (Map.lookup from (cacheParts cache))

counting :: (Counts -> Counts) -> Cache kept fetch -> Cache kept fetch
counting count cache = cache {cacheCounts = count (cacheCounts cache)}

onPart :: Endpoint -> (Part kept fetch -> Part kept fetch) -> Cache kept fetch -> Cache kept fetch
onPart from change cache = cache {cacheParts = Map.alter (Just . change . fromPart) from (cacheParts cache)}
  where
    fromPart = \case
      Just part -> part
      Nothing -> emptyPart

-- | Drops the readings at a hash of which something is true, with all that leads to
-- them.
dropReading :: Endpoint -> Hash -> (Reading kept fetch -> Bool) -> Cache kept fetch -> Cache kept fetch
dropReading from hash unwanted cache = case List.partition unwanted (readingsAt from hash cache) of
  ([], _) -> cache
  (gone, stay) ->
    let size = sum [bytes | Reading {readingState = Kept _ bytes _} <- gone]
        without part =
          Part
            { partReadings = if null stay then IntMap.delete hash (partReadings part) else IntMap.insert hash stay (partReadings part),
              partKeys = foldl' unlisted (partKeys part) gone,
              partQueue = foldl' (flip IntMap.delete) (partQueue part) [position | Reading {readingState = Kept position _ _} <- gone],
              partBytes = partBytes part - size,
              partEntries = partEntries part - length (filter isKept gone)
            }
     in (onPart from without cache) {cacheBytes = cacheBytes cache - size}
  where
    unlisted keys Reading {readingKey, readingTicket} = Map.update (nonEmpty . IntMap.delete readingTicket) readingKey keys
    nonEmpty tickets = if IntMap.null tickets then Nothing else Just tickets
