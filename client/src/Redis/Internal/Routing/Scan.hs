-- | The walks of scans: over all keys of a server or a cluster, as a state and a step, and over the
-- elements of one key; and the position of a walk, as text that another process can read.
--
-- A cursor means something to one process only, and slots move between nodes during a walk.
-- So the walk counts slots: a slot is /covered/ when everything that was in it throughout the
-- walk has been seen.
--
-- A /scan/ walks the keys of one node from cursor 0 to its end. Before and after the scan the
-- node is asked for its identity and its slots: a /status/. Both must show the same identity: the
-- same process, a primary, in the same epoch of the cluster. Then the node did not restart and was not
-- demoted in between, and no slot that it owns in both statuses was away in between, because taking a
-- slot back gives it a new epoch.
--
-- > status shows          scan here        done with it
-- > --------------------------------------------------------------------------------
-- > the scan's identity  has a cursor    goes on from there
-- > the scan's identity  at its end      each of its slots:
-- >                                       owned in both statuses, at rest       covered
-- >                                       owned, on its way to another node  half seen
-- >                                       half seen when the scan began, and
-- >                                         on its way here                  seen at both
-- >                                       else                               as it was
-- >                                     then a new scan, if it has slots for one
-- > another identity    any             dropped; a new scan, if it has slots for one
-- > any                 none            a new scan, if it has slots for one
-- >
-- > Any status at a source settles what was half seen there: if it has the same identity, and
-- > the slot is on the same way still, a slot that was seen at both is covered, and another
-- > stays half seen; else the slot is as if it had not been seen.
--
-- A new scan is for the slots that are not covered and that the node owns, or that are on
-- their way to it and half seen at their source. The caller does not get keys of other slots.
--
-- Keys of a slot that moves key by key go one way: a key that the scan at the source did not see had
-- gone to the target before, so a scan at the target that begins later sees it, unless the slot came
-- back meanwhile. To exclude that, the source is looked at once more. No server reports keys that are
-- moved back, against the direction of a slot's move, between two statuses.
--
-- When a node does not answer, its scan waits for a status that shows whether it can go on. If another
-- node owns the slots meanwhile, they get a scan there.
module Redis.Internal.Routing.Scan
  ( KeysWalk (..),
    newKeysWalk,
    walkIsOver,
    slotsToCover,
    Event (..),
    Task (..),
    NodeStatus (..),
    step,
    KeyFilter (..),
    keyFilterOf,
    Position (..),
    Standing (..),
    ItemsWalk (..),
    positionText,
    positionFromText,
  )
where

import Control.Monad (foldM, guard, mfilter)
import Data.ByteString (ByteString)
import Data.ByteString qualified as ByteString
import Data.ByteString.Builder qualified as Builder
import Data.ByteString.Char8 qualified as Char8
import Data.ByteString.Lazy qualified as Lazy
import Data.Char (isAlphaNum, isAscii, isDigit)
import Data.IntMap.Strict (IntMap)
import Data.IntMap.Strict qualified as IntMap
import Data.IntSet (IntSet)
import Data.IntSet qualified as IntSet
import Data.Map.Strict (Map)
import Data.Map.Strict qualified as Map
import Data.Maybe (fromMaybe)
import Redis.Error (Endpoint (..))
import Redis.Internal.ConfigUrl (percentDecoded)
import Redis.Internal.Protocol.Slot (slotCount)

-- | A node's description of itself at one moment.
data NodeStatus = NodeStatus
  { -- | The node's name in its cluster; empty for a standalone server.
    statusNode :: ByteString,
    -- | Equal in two statuses if nothing happened in between that makes a scan worthless.
    statusIdentity :: ByteString,
    -- | The slots that it owns as a primary.
    statusOwned :: IntSet,
    -- | The owned slots that are on their way to another node, and that node's name.
    statusLeaving :: IntMap ByteString,
    -- | The slots that are on their way here, and the name of the node that they come from.
    statusComing :: IntMap ByteString
  }
  deriving stock (Eq, Show)

-- | A walk over one node's keys.
data NodeScan = NodeScan
  { scanIdentity :: ByteString,
    -- | The cursor at which it goes on; 'Nothing' at its end, when a status must follow.
    scanCursor :: Maybe ByteString,
    -- | The slots that the node owned when the scan began, and that the scan is for.
    scanOwned :: IntSet,
    -- | The slots among these that were leaving when the scan began.
    scanLeaving :: IntSet,
    -- | The slots that were on their way here and half seen at their source, each with its
    -- stamp.
    scanComing :: IntMap Int
  }
  deriving stock (Eq, Show)

data KeysWalk = KeysWalk
  { walkCovered :: IntSet,
    walkHalf :: IntMap Half,
    -- | How many scans have ended, each of which may have half seen slots.
    walkHalves :: Int,
    walkScans :: Map Endpoint NodeScan
  }
  deriving stock (Eq, Show)

-- | A slot that a scan has seen at its source while the slot was leaving.
data Half = Half
  { halfSource :: ByteString,
    halfTarget :: ByteString,
    -- | The identity of the source.
    halfIdentity :: ByteString,
    -- | Tells this half from others of the same slot.
    halfStamp :: Int,
    -- | Whether a scan at the target has seen the rest, as far as the target can tell.
    halfBoth :: Bool
  }
  deriving stock (Eq, Show)

newKeysWalk :: KeysWalk
newKeysWalk = KeysWalk {walkCovered = IntSet.empty, walkHalf = IntMap.empty, walkHalves = 0, walkScans = Map.empty}

walkIsOver :: KeysWalk -> Bool
walkIsOver walk = IntSet.size (walkCovered walk) == slotCount

-- | The slots that are not covered. \(O(slots)\).
slotsToCover :: KeysWalk -> IntSet
slotsToCover walk = IntSet.fromDistinctAscList [0 .. slotCount - 1] `IntSet.difference` walkCovered walk

-- | An event that a driver reports.
data Event
  = -- | A status at the node. It was requested after all pages of the node's scan that were
    -- reported before. Looks are reported in the order in which they were requested.
    Saw Endpoint NodeStatus
  | -- | A page of the scan there was read, and where the next page begins, if there is one.
    Turned Endpoint (Maybe ByteString)
  deriving stock (Eq, Show)

-- | The next request to the node of the event.
data Task
  = -- | Request the page at this cursor.
    AskPage ByteString
  | -- | Request a status.
    AskStatus
  deriving stock (Eq, Show)

-- | The walk after an event, and the next request. 'Nothing' if there is nothing to do at that
-- node as things stand. \(O(slots)\) for a status, \(O(\log n)\) in nodes for a page.
step :: Event -> KeysWalk -> (KeysWalk, Maybe Task)
step event walk = case event of
  Turned endpoint cursor -> case Map.lookup endpoint (walkScans walk) of
    Nothing -> (walk, Nothing)
    Just scan -> (withScan endpoint scan {scanCursor = cursor} walk, Just (maybe AskStatus AskPage cursor))
  Saw endpoint status -> saw endpoint status (settled status walk)

saw :: Endpoint -> NodeStatus -> KeysWalk -> (KeysWalk, Maybe Task)
saw endpoint status walk = case Map.lookup endpoint (walkScans walk) of
  Just scan
    | scanIdentity scan == statusIdentity status,
      serves walk scan -> case scanCursor scan of
      Just cursor -> (walk, Just (AskPage cursor))
      Nothing -> begin endpoint status (conclude status scan walk)
  _ -> begin endpoint status walk

-- Settles the slots that were half seen at this node, which is looked at again.
settled :: NodeStatus -> KeysWalk -> KeysWalk
settled status walk =
  walk
    { walkCovered = walkCovered walk <> IntMap.keysSet (IntMap.filter halfBoth standing),
      walkHalf = IntMap.filter (not . halfBoth) standing <> elsewhere
    }
  where
    (here, elsewhere) = IntMap.partition ((== statusNode status) . halfSource) (walkHalf walk)
    standing = IntMap.filterWithKey stands here
    stands slot half = halfIdentity half == statusIdentity status && IntMap.lookup slot (statusLeaving status) == Just (halfTarget half)

withScan :: Endpoint -> NodeScan -> KeysWalk -> KeysWalk
withScan endpoint scan walk = walk {walkScans = Map.insert endpoint scan (walkScans walk)}

-- Whether the scan is for a slot that no other scan has made covered meanwhile.
serves :: KeysWalk -> NodeScan -> Bool
serves walk scan = not (scanSlots scan `IntSet.isSubsetOf` walkCovered walk)

scanSlots :: NodeScan -> IntSet
scanSlots scan = scanOwned scan <> IntMap.keysSet (scanComing scan)

-- Ends a scan, given a status that shows the same identity.
conclude :: NodeStatus -> NodeScan -> KeysWalk -> KeysWalk
conclude status scan walk =
  walk
    { walkCovered = covered,
      walkHalf = IntMap.withoutKeys (IntMap.map half leavingSince <> IntMap.mapWithKey arrived (walkHalf walk)) covered,
      walkHalves = stamp
    }
  where
    covered = walkCovered walk <> atRest
    owned = IntSet.intersection (scanOwned scan) (statusOwned status)
    leavingSince = IntMap.restrictKeys (statusLeaving status) owned
    -- A slot that was leaving when the scan began, and rests now, was taken back: with keys, perhaps.
    atRest = owned `IntSet.difference` scanLeaving scan `IntSet.difference` IntMap.keysSet leavingSince
    stamp = walkHalves walk + 1
    half target = Half {halfSource = statusNode status, halfTarget = target, halfIdentity = statusIdentity status, halfStamp = stamp, halfBoth = False}
    arrived slot known
      | IntMap.lookup slot (scanComing scan) == Just (halfStamp known), IntMap.lookup slot (statusComing status) == Just (halfSource known) = known {halfBoth = True}
      | otherwise = known

-- Begins a new scan there, if the node has slots for one; drops an old scan.
begin :: Endpoint -> NodeStatus -> KeysWalk -> (KeysWalk, Maybe Task)
begin endpoint status walk
  | IntSet.null owned && IntMap.null coming = (walk {walkScans = Map.delete endpoint (walkScans walk)}, Nothing)
  | otherwise = (withScan endpoint scan walk, Just (AskPage beginning))
  where
    scan =
      NodeScan
        { scanIdentity = statusIdentity status,
          scanCursor = Just beginning,
          scanOwned = owned,
          scanLeaving = IntSet.intersection (IntMap.keysSet (statusLeaving status)) owned,
          scanComing = coming
        }
    beginning = "0"
    halfHere = IntMap.keysSet (IntMap.filter ((== statusNode status) . halfSource) (walkHalf walk))
    owned = statusOwned status `IntSet.difference` walkCovered walk `IntSet.difference` halfHere
    coming = IntMap.map halfStamp (IntMap.filterWithKey halfThere (walkHalf walk))
    halfThere slot half =
      halfTarget half == statusNode status && not (halfBoth half) && IntMap.lookup slot (statusComing status) == Just (halfSource half)

-- | The slots whose keys the caller gets.
data KeyFilter
  = TellAll
  | TellOf IntSet
  deriving stock (Eq, Show)

-- | The slots whose keys the caller gets while this node is walked. \(O(slots)\).
keyFilterOf :: Endpoint -> KeysWalk -> KeyFilter
keyFilterOf endpoint walk = if IntSet.size slots == slotCount then TellAll else TellOf slots
  where
    slots = maybe IntSet.empty scanSlots (Map.lookup endpoint (walkScans walk))

-- | The position at which a walk goes on.
data Position = Position
  { -- | The subject of the walk: a command, and a key if the command has one.
    positionOf :: [ByteString],
    positionStanding :: Standing
  }
  deriving stock (Eq)

instance Show Position where
  showsPrec level = showsPrec level . positionText

data Standing
  = OverKeys KeysWalk
  | OverItems ItemsWalk
  deriving stock (Eq, Show)

-- | The progress of a walk over the elements of one key.
data ItemsWalk
  = Unbegun
  | -- | The walk is at this node, whose process has this identity, and goes on at the cursor.
    -- Without a cursor it is at the end, and the identity has yet to be checked.
    Within Endpoint ByteString (Maybe ByteString)
  | Finished
  deriving stock (Eq, Show)

-- | The position as text: ASCII letters, digits, spaces and a few other signs. \(O(n)\) in
-- the ranges of slots and in the nodes.
positionText :: Position -> ByteString
positionText Position {positionOf, positionStanding} = Char8.intercalate "," (map record records)
  where
    record = Char8.unwords . map escaped
    records =
      ("walk1" : positionOf) : case positionStanding of
        OverKeys walk ->
          ["keys", number (walkHalves walk)] :
          ranges "c" (walkCovered walk)
            <> [["h", number slot, halfSource half, halfTarget half, halfIdentity half, number (halfStamp half), if halfBoth half then "1" else "0"] | (slot, half) <- IntMap.toList (walkHalf walk)]
            <> concatMap scan (Map.toList (walkScans walk))
        OverItems Unbegun -> [["unbegun"]]
        OverItems Finished -> [["finished"]]
        OverItems (Within endpoint identity cursor) -> [["within", identity, fromMaybe "" cursor] <> endpointArguments endpoint]
    scan (endpoint, NodeScan {scanIdentity, scanCursor, scanOwned, scanLeaving, scanComing}) =
      (["l", scanIdentity, fromMaybe "" scanCursor] <> endpointArguments endpoint) :
      ranges "o" scanOwned
        <> ranges "g" scanLeaving
        <> [["i", number slot, number stamp] | (slot, stamp) <- IntMap.toList scanComing]
    ranges name slots = [[name, number first, number final] | (first, final) <- runsOf (IntSet.toAscList slots)]

number :: Int -> ByteString
number = Char8.pack . show

-- The first and last slot of each range.
runsOf :: [Int] -> [(Int, Int)]
runsOf = foldr extend []
  where
    extend slot ((first, final) : others) | first == slot + 1 = (slot, final) : others
    extend slot others = (slot, slot) : others

endpointArguments :: Endpoint -> [ByteString]
endpointArguments = \case
  TcpEndpoint host port -> ["tcp", host, number (fromIntegral port)]
  UnixEndpoint path -> ["unix", encodedPath path]

-- Each character as its number.
encodedPath :: FilePath -> ByteString
encodedPath = Char8.intercalate "." . map (number . fromEnum)

-- | Reads a position. 'Nothing' if 'positionText' did not make the text. \(O(n)\).
positionFromText :: ByteString -> Maybe Position
positionFromText text = do
  records <- traverse (traverse percentDecoded . Char8.split ' ') (Char8.split ',' text)
  case records of
    ("walk1" : positionOf) : ["keys", count] : rest -> do
      walkHalves <- wholeNumber count
      (walk, _) <- foldM walkRecord (newKeysWalk {walkHalves}, Nothing) rest
      pure Position {positionOf, positionStanding = OverKeys walk}
    ["walk1" : positionOf, ["unbegun"]] -> pure Position {positionOf, positionStanding = OverItems Unbegun}
    ["walk1" : positionOf, ["finished"]] -> pure Position {positionOf, positionStanding = OverItems Finished}
    ["walk1" : positionOf, "within" : identity : cursor : endpoint] -> do
      place <- endpointFrom endpoint
      pure Position {positionOf, positionStanding = OverItems (Within place identity (filled cursor))}
    _ -> Nothing
  where
    filled cursor = if ByteString.null cursor then Nothing else Just cursor

    -- Carries along the node of the scan that the records belong to.
    walkRecord (walk, current) = \case
      ["c", first, final] -> (\slots -> (walk {walkCovered = walkCovered walk <> slots}, current)) <$> range first final
      ["h", slot, halfSource, halfTarget, halfIdentity, stamp, both] -> do
        at <- slotFrom slot
        halfStamp <- wholeNumber stamp
        let half = Half {halfSource, halfTarget, halfIdentity, halfStamp, halfBoth = both == "1"}
        pure (walk {walkHalf = IntMap.insert at half (walkHalf walk)}, current)
      "l" : identity : cursor : endpoint -> do
        place <- endpointFrom endpoint
        let scan = NodeScan {scanIdentity = identity, scanCursor = filled cursor, scanOwned = IntSet.empty, scanLeaving = IntSet.empty, scanComing = IntMap.empty}
        pure (walk {walkScans = Map.insert place scan (walkScans walk)}, Just place)
      ["o", first, final] -> range first final >>= \slots -> changed walk current (\scan -> scan {scanOwned = scanOwned scan <> slots})
      ["g", first, final] -> range first final >>= \slots -> changed walk current (\scan -> scan {scanLeaving = scanLeaving scan <> slots})
      ["i", slot, stampText] -> do
        at <- slotFrom slot
        stamp <- wholeNumber stampText
        changed walk current (\scan -> scan {scanComing = IntMap.insert at stamp (scanComing scan)})
      _ -> Nothing
    changed walk current change = (\place -> (walk {walkScans = Map.adjust change place (walkScans walk)}, current)) <$> current
    range first final = (\from to -> IntSet.fromDistinctAscList [from .. to]) <$> slotFrom first <*> slotFrom final

slotFrom :: ByteString -> Maybe Int
slotFrom = mfilter (< slotCount) . wholeNumber

-- A number that is not negative, of few enough digits for an 'Int'.
wholeNumber :: ByteString -> Maybe Int
wholeNumber text = do
  guard (ByteString.length text <= 18 && Char8.all isDigit text)
  fst <$> Char8.readInt text

endpointFrom :: [ByteString] -> Maybe Endpoint
endpointFrom = \case
  ["tcp", host, port] -> TcpEndpoint host . fromIntegral <$> mfilter (<= 65535) (wholeNumber port)
  ["unix", path] -> UnixEndpoint <$> traverse character (filter (not . ByteString.null) (Char8.split '.' path))
  _ -> Nothing
  where
    character = fmap toEnum . mfilter (<= fromEnum (maxBound :: Char)) . wholeNumber

-- Writes each byte that is not plain as a per cent sign and two digits.
escaped :: ByteString -> ByteString
escaped = Lazy.toStrict . Builder.toLazyByteString . foldMap byte . ByteString.unpack
  where
    byte code
      | plain (toEnum (fromIntegral code)) = Builder.word8 code
      | otherwise = Builder.char7 '%' <> Builder.word8HexFixed code
    plain character = isAscii character && (isAlphaNum character || character `elem` (":/._-" :: String))
