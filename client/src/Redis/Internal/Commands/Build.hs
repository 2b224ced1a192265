-- | What the modules of "Redis.Commands" build their commands from.
--
-- A command is a name, a request, a route, facts and a decoder; most share
-- all but two of these, and the functions here fill in the rest.
module Redis.Internal.Commands.Build
  ( -- * Commands by what they touch
    keyRead,
    keyWrite,
    keysRead,
    keysWrite,
    anyRead,
    anyWrite,
    connectionState,
    blockingOn,
    blockingSeconds,

    -- * Several keys
    routeOfKeys,
    summed,
    splitBy,

    -- * Arguments
    int,
    seconds,
    flag,
    option,
  )
where

import Data.ByteString (ByteString)
import Data.ByteString.Builder qualified as Builder
import Data.ByteString.Lazy qualified as Lazy
import Data.Int (Int64)
import Data.List.NonEmpty (NonEmpty ((:|)))
import Data.List.NonEmpty qualified as NonEmpty
import Data.Primitive.SmallArray qualified as SmallArray
import Numeric (showFFloat)
import Redis.Command
import Redis.Decode (Decoder)
import Redis.Internal.Protocol.Encode (Request)

-- | A command that reads one key: name, key, request, decoder.
keyRead :: ByteString -> ByteString -> Request -> Decoder a -> Command a
keyRead name key = build name (OneKey key) readFacts

-- | A command that writes one key.
keyWrite :: ByteString -> ByteString -> Request -> Decoder a -> Command a
keyWrite name key = build name (OneKey key) writeFacts

-- | A command that reads keys of one slot.
keysRead :: ByteString -> [ByteString] -> Request -> Decoder a -> Command a
keysRead name keys = build name (routeOfKeys keys) readFacts

-- | A command that writes keys of one slot.
keysWrite :: ByteString -> [ByteString] -> Request -> Decoder a -> Command a
keysWrite name keys = build name (routeOfKeys keys) writeFacts

-- | A command without keys that changes nothing.
anyRead :: ByteString -> Request -> Decoder a -> Command a
anyRead name = build name AnyNode readFacts

-- | A command without keys that changes something.
anyWrite :: ByteString -> Request -> Decoder a -> Command a
anyWrite name = build name AnyNode writeFacts

-- | A command that concerns its connection.
connectionState :: ByteString -> Request -> Decoder a -> Command a
connectionState name = build name AnyNode writeFacts {factScope = ConnectionState}

-- | The same command, known to keep its caller waiting.
blockingOn :: Blocking -> Command a -> Command a
blockingOn blocking command =
  command {commandFacts = (commandFacts command) {factBlocking = blocking}}

-- | What a timeout in seconds means to a server: zero is for ever.
blockingSeconds :: Double -> Blocking
blockingSeconds timeout
  | timeout == 0 = BlocksForever
  | otherwise = BlocksFor timeout

build :: ByteString -> Route a -> Facts -> Request -> Decoder a -> Command a
build name route facts encoded decoder =
  Command
    { commandName = name,
      commandRequest = encoded,
      commandRoute = route,
      commandFacts = facts,
      commandDecode = decoder
    }

-- | Keys that must share a slot.
routeOfKeys :: [ByteString] -> Route a
routeOfKeys = \case
  [] -> AnyNode
  [key] -> OneKey key
  key : rest -> SameSlot (key :| rest)

-- | A command over keys whose answer is the sum of its parts' answers.
summed :: (NonEmpty ByteString -> Command Int64) -> NonEmpty ByteString -> Route Int64
summed part = splitBy id part (sum . map snd)

-- | How a command over several things, each with its key, falls into parts.
-- Given are the key of a thing, the command for some of them, and how the
-- parts' answers become one. One thing alone needs no splitting.
splitBy ::
  (item -> ByteString) ->
  (NonEmpty item -> Command b) ->
  ([(NonEmpty Int, b)] -> a) ->
  NonEmpty item ->
  Route a
splitBy keyOf part merge things@(thing :| others)
  | null others = OneKey (keyOf thing)
  | otherwise =
    Splittable
      SplitPlan
        { splitKeys = NonEmpty.map keyOf things,
          splitPart = part . NonEmpty.map thingAt,
          splitMerge = merge
        }
  where
    table = SmallArray.smallArrayFromList (NonEmpty.toList things)
    size = SmallArray.sizeofSmallArray table
    -- Positions are those of 'splitKeys'; there are no others.
    thingAt position
      | position >= 0 && position < size = SmallArray.indexSmallArray table position
      | otherwise = thing

-- | Decimal digits.
int :: Int64 -> ByteString
int = Lazy.toStrict . Builder.toLazyByteString . Builder.int64Dec

-- | A number of seconds as servers read it: digits and a point, no exponent.
-- A timeout of less than two milliseconds becomes that: zero would wait for ever,
-- and servers before 7.0.8 take a millisecond for zero.
seconds :: Double -> ByteString
seconds timeout = Lazy.toStrict (Builder.toLazyByteString (Builder.string7 text))
  where
    text
      | timeout == fromIntegral whole = show whole
      | otherwise = showFFloat (Just 6) (if timeout > 0 then max 0.002 timeout else timeout) ""
    whole = truncate timeout :: Int64

-- | A word that is there or not.
flag :: ByteString -> Bool -> [ByteString]
flag word present = [word | present]

-- | A word and its argument, or neither.
option :: ByteString -> (a -> ByteString) -> Maybe a -> [ByteString]
option word render = maybe [] (\argument -> [word, render argument])
