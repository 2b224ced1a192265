-- | The position of a walk, as text that another process can read.
module Redis.Internal.Routing.Position
  ( Position (..),
    Standing (..),
    ItemsWalk (..),
    positionText,
    positionFromText,
  )
where

import Control.Monad (foldM, guard)
import Data.ByteString (ByteString)
import Data.ByteString qualified as ByteString
import Data.ByteString.Builder qualified as Builder
import Data.ByteString.Char8 qualified as Char8
import Data.ByteString.Lazy qualified as Lazy
import Data.Char (isAlphaNum, isAscii, isDigit)
import Data.IntMap.Strict qualified as IntMap
import Data.IntSet qualified as IntSet
import Data.Map.Strict qualified as Map
import Data.Maybe (fromMaybe)
import Data.Word (Word8)
import Redis.Error (Endpoint (..))
import Redis.Internal.Protocol.Slot (slotCount)
import Redis.Internal.Routing.Walk

-- | The position at which a walk goes on.
data Position = Position
  { -- | The subject of the walk: a command, and a key if the command has one.
    positionOf :: [ByteString],
    positionStanding :: Standing
  }
  deriving stock (Eq)

-- | Shows the position's text.
instance Show Position where
  showsPrec level = showsPrec level . positionText

-- | The progress of a walk.
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
runsOf = \case
  [] -> []
  first : rest -> go first first rest
  where
    go first final = \case
      next : rest | next == final + 1 -> go first next rest
      rest -> (first, final) : runsOf rest

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
  records <- traverse (traverse unescaped . Char8.split ' ') (Char8.split ',' text)
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

    -- Carries along the node of the leg that the records belong to.
    walkRecord (walk, current) = \case
      ["c", first, final] -> do
        slots <- range first final
        pure (walk {walkCovered = walkCovered walk <> slots}, current)
      ["h", slot, halfSource, halfTarget, halfIdentity, stamp, both] -> do
        at <- slotFrom slot
        halfStamp <- wholeNumber stamp
        let half = Half {halfSource, halfTarget, halfIdentity, halfStamp, halfBoth = both == "1"}
        pure (walk {walkHalf = IntMap.insert at half (walkHalf walk)}, current)
      "l" : identity : cursor : endpoint -> do
        place <- endpointFrom endpoint
        let scan = NodeScan {scanIdentity = identity, scanCursor = filled cursor, scanOwned = IntSet.empty, scanLeaving = IntSet.empty, scanComing = IntMap.empty}
        pure (walk {walkScans = Map.insert place scan (walkScans walk)}, Just place)
      ["o", first, final] -> do
        slots <- range first final
        changed walk current (\scan -> scan {scanOwned = scanOwned scan <> slots})
      ["g", first, final] -> do
        slots <- range first final
        changed walk current (\scan -> scan {scanLeaving = scanLeaving scan <> slots})
      ["i", slot, stampText] -> do
        at <- slotFrom slot
        stamp <- wholeNumber stampText
        changed walk current (\scan -> scan {scanComing = IntMap.insert at stamp (scanComing scan)})
      _ -> Nothing
    changed walk current change = do
      place <- current
      pure (walk {walkScans = Map.adjust change place (walkScans walk)}, current)
    range first final = do
      from <- slotFrom first
      to <- slotFrom final
      pure (IntSet.fromDistinctAscList [from .. to])

slotFrom :: ByteString -> Maybe Int
slotFrom text = do
  slot <- wholeNumber text
  slot <$ guard (slot < slotCount)

-- A number that is not negative, of few enough digits for an 'Int'.
wholeNumber :: ByteString -> Maybe Int
wholeNumber text = do
  guard (ByteString.length text <= 18 && Char8.all isDigit text)
  fst <$> Char8.readInt text

endpointFrom :: [ByteString] -> Maybe Endpoint
endpointFrom = \case
  ["tcp", host, portText] -> do
    port <- wholeNumber portText
    guard (port <= 65535)
    pure (TcpEndpoint host (fromIntegral port))
  ["unix", path] -> UnixEndpoint <$> traverse character (filter (not . ByteString.null) (Char8.split '.' path))
  _ -> Nothing
  where
    character text = do
      code <- wholeNumber text
      toEnum code <$ guard (code <= fromEnum (maxBound :: Char))

-- Writes each byte that is not plain as a per cent sign and two digits.
escaped :: ByteString -> ByteString
escaped = Lazy.toStrict . Builder.toLazyByteString . foldMap byte . ByteString.unpack
  where
    byte code
      | plain (toEnum (fromIntegral code)) = Builder.word8 code
      | otherwise = Builder.char7 '%' <> Builder.word8HexFixed code
    plain character = isAscii character && (isAlphaNum character || character `elem` (":/._-" :: String))

unescaped :: ByteString -> Maybe ByteString
unescaped text = case Char8.break (== '%') text of
  (plain, rest)
    | ByteString.null rest -> Just plain
    | otherwise -> do
      let (digits, more) = ByteString.splitAt 2 (ByteString.drop 1 rest)
      code <- case map digit (Char8.unpack digits) of
        [Just high, Just low] -> Just (high * 16 + low)
        _ -> Nothing
      ((plain <> ByteString.singleton code) <>) <$> unescaped more
  where
    digit :: Char -> Maybe Word8
    digit character = fromIntegral <$> lookup character (zip "0123456789abcdef" [0 :: Int ..])
