{-# LANGUAGE MultiWayIf #-}

-- | Decodes replies from bytes: RESP2 and RESP3, in place, resumable at any byte.
--
-- 'decode' looks at received bytes where they lie and copies only the strings that become part of a
-- 'Value'. Aggregates that are not complete are kept in 'Frames', an explicit stack, so that no element is
-- looked at twice however the bytes were cut into segments: the cost is \(O(n)\) in the bytes of a reply.
-- What is unfinished when the bytes end is at most one element, from the offset that 'NeedMore' names. Of a
-- long string, what has come is moved to its place at once, so each byte is copied once.
--
-- A peer may be hostile or broken. Sizes, counts and depth are limited, and a count or the size of a string
-- allocates nothing before a part of what it announces has come. Streamed strings and aggregates (@$?@,
-- @*?@ …), which no server sends to clients, are refused. So is a size that is not plain digits, or has more
-- digits than it needs (@$+3@, @$03@, @*-01@), because it is what is left of something else. Integers
-- themselves (@:@) may have both, because modules and proxies write those as they like.
module Redis.Internal.Protocol.Decode
  ( decode,
    decodeWhile,
    Step (..),
    Frames,
    startFrames,
    leastBuffer,
    betweenReplies,
    placeOfRest,
    placed,
    Limits (..),
    limitsDefaults,
    decodeBytes,
  )
where

import Data.ByteString (ByteString)
import Data.ByteString qualified as ByteString
import Data.ByteString.Internal qualified as ByteString.Internal
import Data.ByteString.Unsafe qualified as ByteString.Unsafe
import Data.Int (Int64)
import Data.Word (Word64, Word8)
import Foreign.ForeignPtr (ForeignPtr, plusForeignPtr, withForeignPtr)
import Foreign.Marshal.Utils (copyBytes)
import Foreign.Ptr (Ptr, castPtr, plusPtr)
import Foreign.Storable (peekByteOff)
import Redis.Internal.Config (Limits (..), limitsDefaults)
import Redis.Internal.Protocol.Double (parseDouble, parseInteger)
import Redis.Value (NullForm (..), Value (..))
import System.IO.Unsafe (unsafeDupablePerformIO)

-- | The result of decoding the bytes.
data Step
  = -- | A whole value, and the offset behind it.
    Done Value Int
  | -- | Everything before the offset is used up; call again with these frames,
    -- from that offset, when at least so many bytes follow it. (A lower bound.)
    NeedMore Frames Int Int
  | -- | Not RESP, or beyond a limit. The stream cannot be used any more.
    Malformed String

-- | The state between two calls: the string that has begun, if one has, and the open aggregates. It
-- is for one call only, because the memory of the string is written to.
data Frames = Frames Begun Stack

-- | The string of which the beginning has come, and is used up.
data Begun
  = NothingBegun
  | BulkBegun BulkStart
  | LineBegun LineStart

-- | The beginning of a bulk string: its type byte, its memory, its size, and how much is there.
data BulkStart = BulkStart Word8 (ForeignPtr Word8) Int Int

-- | The beginning of a line: its type byte, the number of bytes, and the bytes, last piece first.
data LineStart = LineStart Word8 Int [ByteString]

-- | The aggregates that are open, innermost first.
data Stack
  = Bottom
  | -- | The kind of aggregate, its depth, how many elements are missing (at least one), and those
    -- that are there, last first.
    Frame Aggregate Int Int [Value] Stack

data Aggregate
  = ArrayOf
  | SetOf
  | PushOf
  | MapOf
  | -- | Metadata; the value that it belongs to follows.
    AttributesOf
  | -- | The one value that this metadata belongs to.
    AttributedBy [(Value, Value)]

-- | Nothing is open: the state between two replies.
startFrames :: Frames
startFrames = Frames NothingBegun Bottom

-- | Whether nothing is open: what comes next begins a reply. \(O(1)\).
betweenReplies :: Frames -> Bool
betweenReplies = \case
  Frames NothingBegun Bottom -> True
  _ -> False

-- | The place for the bytes that come next, and how many belong there, if they are the rest of a long bulk string:
-- say with 'placed' how many were written there. \(O(1)\).
placeOfRest :: Frames -> Maybe (ForeignPtr Word8, Int)
placeOfRest = \case
  Frames (BulkBegun (BulkStart _ memory size filled)) _ | filled < size -> Just (memory `plusForeignPtr` filled, size - filled)
  _ -> Nothing

-- | The state after so many bytes were written to their place. \(O(1)\).
placed :: Int -> Frames -> Frames
placed count = \case
  Frames (BulkBegun (BulkStart tag memory size filled)) stack -> Frames (BulkBegun (BulkStart tag memory size (filled + count))) stack
  other -> other

-- | The signs that a number may have.
data Signs
  = AnySign
  | -- | For a size: -1 stands for a null.
    OnlyMinusOne

-- | How much of an unfinished string must be there before memory is taken for it.
leastBegun :: Int
leastBegun = 1024

-- | The size of a receive buffer that always has room for more behind what 'NeedMore' leaves in it:
-- a length and a little less than 'leastBegun'.
leastBuffer :: Int
leastBuffer = 4 * leastBegun

-- | Reads from @base + offset@ up to @base + end@ until one value is complete or the bytes are used up. Touches no
-- memory outside of that range and keeps no pointer to it.
decode :: Limits -> Ptr Word8 -> Int -> Int -> Frames -> IO Step
decode limits base = decodeWhile limits base (\_ -> pure False)

-- | Like 'decode', but hands every complete value to the action and goes on while that returns
-- 'True'. 'Done' holds the value for which it returned 'False'. An invalidation within another value
-- is handed to it first, and is a part of that value only if it returns 'False'.
--
-- For a connection's reader: what this function allocates for itself is more than a short reply
-- takes, and is paid once per read instead of once per reply.
decodeWhile :: Limits -> Ptr Word8 -> (Value -> IO Bool) -> Int -> Int -> Frames -> IO Step
decodeWhile limits base onValue = \at end (Frames begun stack) -> case begun of
  NothingBegun -> element at end stack
  BulkBegun start -> bulkOn start at end stack
  LineBegun start -> line start at end stack
  where
    element :: Int -> Int -> Stack -> IO Step
    element !at !end frames
      | at >= end = pure (unfinished frames at 1)
      | otherwise = do
        tag <- byteAt at
        case tag of
          36 {- '$' -} -> bulk tag at end frames
          58 {- ':' -} -> number AnySign at end frames (\n next -> complete (Integer n) next end frames)
          43 {- '+' -} -> simple at end frames
          42 {- '*' -} -> aggregate at end frames ArrayOf 1
          45 {- '-' -} -> newLine tag at end frames
          95 {- '_' -} -> newLine tag at end frames
          37 {- '%' -} -> aggregate at end frames MapOf 2
          62 {- '>' -} -> aggregate at end frames PushOf 1
          126 {- '~' -} -> aggregate at end frames SetOf 1
          44 {- ',' -} -> newLine tag at end frames
          35 {- '#' -} -> newLine tag at end frames
          40 {- '(' -} -> newLine tag at end frames
          61 {- '=' -} -> bulk tag at end frames
          33 {- '!' -} -> bulk tag at end frames
          124 {- '|' -} -> aggregate at end frames AttributesOf 2
          59 {- ';' -} -> malformed "streamed strings are not supported"
          46 {- '.' -} -> malformed "streamed aggregates are not supported"
          _ -> malformed ("unknown type byte " <> show tag)

    -- One value is complete; it may complete the aggregates around it.
    complete :: Value -> Int -> Int -> Stack -> IO Step
    complete !value !at !end = \case
      Bottom -> do
        goOn <- onValue value
        if goOn then element at end Bottom else pure (Done value at)
      Frame (AttributedBy attributes) _ _ _ below ->
        complete (WithAttributes attributes value) at end below
      Frame kind depth missing elements below
        | missing > 1 -> element at end (Frame kind depth (missing - 1) (value : elements) below)
        | otherwise -> close kind depth (value : elements) at end below

    close :: Aggregate -> Int -> [Value] -> Int -> Int -> Stack -> IO Step
    close kind depth elements !at !end below = case kind of
      ArrayOf -> complete (Array (reverse elements)) at end below
      SetOf -> complete (Set (reverse elements)) at end below
      PushOf -> do
        let push = Push (reverse elements)
        apart <- if interrupts push below then onValue push else pure False
        if apart then element at end below else complete push at end below
      MapOf -> complete (Map (pairsReversed elements)) at end below
      AttributesOf -> element at end (Frame (AttributedBy (pairsReversed elements)) depth 1 [] below)
      -- Never closed by counting: 'complete' takes its value at once.
      AttributedBy _ -> malformed "attributes without a value"

    -- Servers with the fault redis#8935 send an invalidation within a reply that makes a key expire. No other
    -- push may be taken out: EXEC of SUBSCRIBE counts one among its elements.
    interrupts push = \case
      Bottom -> False
      Frame (AttributedBy _) _ _ _ _ -> False
      Frame {} | Push (BulkString "invalidate" : _) <- push -> True
      _ -> False

    aggregate :: Int -> Int -> Stack -> Aggregate -> Int -> IO Step
    aggregate !at !end frames kind perEntry = number OnlyMinusOne at end frames $ \count64 next ->
      let count = fromIntegral count64 :: Int
          depth = 1 + depthOf frames
       in if
              | count > limitElements limits `quot` perEntry -> malformed ("aggregate of " <> show count64 <> " elements" <> limitedTo (limitElements limits))
              | count < 0 -> case kind of
                ArrayOf -> complete (NullOf NullArray) next end frames
                _ -> malformed "negative size"
              | depth > limitDepth limits -> malformed ("aggregates nested deeper than the limit of " <> show (limitDepth limits))
              | count > 0 -> element next end (Frame kind depth (count * perEntry) [] frames)
              | otherwise -> close kind depth [] next end frames

    -- A size, a line break, that many bytes, a line break.
    bulk :: Word8 -> Int -> Int -> Stack -> IO Step
    bulk !tag !at !end frames = number OnlyMinusOne at end frames $ \size64 start ->
      let size = fromIntegral size64 :: Int
       in if
              | size64 > fromIntegral (limitBulkBytes limits) -> malformed ("bulk string of " <> show size64 <> " bytes" <> limitedTo (limitBulkBytes limits))
              | size < 0 ->
                -- Only this type has a null.
                if tag == 36
                  then complete (NullOf NullBulkString) start end frames
                  else malformed "negative size"
              -- So that no size overflows.
              | end - start - 2 < size ->
                if end - start < leastBegun
                  then pure (unfinished frames at (start - at + size + 2))
                  else do
                    memory <- ByteString.Internal.mallocByteString size
                    bulkOn (BulkStart tag memory size 0) start end frames
              | otherwise -> do
                wellEnded <- lineBreakAt (start + size)
                if wellEnded
                  then do
                    bytes <- copied start size
                    bulkDone tag bytes (start + size + 2) end frames
                  else malformed "bulk string without its line break"

    -- What comes next of a string that has begun.
    bulkOn :: BulkStart -> Int -> Int -> Stack -> IO Step
    bulkOn (BulkStart tag memory size filled) !at !end frames = do
      let here = min (end - at) (size - filled)
          filled' = filled + here
          next = at + here
      withForeignPtr memory $ \to -> copyBytes (to `plusPtr` filled) (base `plusPtr` at) here
      if filled' < size || end - next < 2
        then pure (NeedMore (Frames (BulkBegun (BulkStart tag memory size filled')) frames) next (end - next + 1))
        else do
          wellEnded <- lineBreakAt next
          if wellEnded
            then bulkDone tag (ByteString.Internal.fromForeignPtr memory 0 size) (next + 2) end frames
            else malformed "bulk string without its line break"

    bulkDone :: Word8 -> ByteString -> Int -> Int -> Stack -> IO Step
    bulkDone !tag bytes !next !end frames = case tag of
      36 -> complete (BulkString bytes) next end frames
      61 -> case verbatim bytes of
        Just value -> complete value next end frames
        Nothing -> malformed "verbatim string without a format"
      _ -> complete (ErrorReply bytes) next end frames

    lineBreakAt :: Int -> IO Bool
    lineBreakAt !position = do
      cr <- byteAt position
      lf <- byteAt (position + 1)
      pure (cr == 13 && lf == 10)

    -- The decimal number behind the type byte, up to its line break.
    number :: Signs -> Int -> Int -> Stack -> (Int64 -> Int -> IO Step) -> IO Step
    number signs !at !end frames continue = do
      let start = at + 1
      if start >= end
        then pure (unfinished frames at 2)
        else do
          sign <- byteAt start
          case sign of
            45 -> digits True 0 (start + 1) (start + 1)
            43 | AnySign <- signs -> digits False 0 (start + 1) (start + 1)
            63 -> malformed "streamed types are not supported"
            _ -> digits False 0 start start
      where
        digits :: Bool -> Word64 -> Int -> Int -> IO Step
        digits negative !value !from !position
          | position >= end = pure (unfinished frames at (position - at + 2))
          | otherwise = do
            byte <- byteAt position
            let digit = fromIntegral byte - 48 :: Word64
            if
                | digit < 10 ->
                  -- 19 digits fit a Word64; only then can the limit be passed.
                  if position - from >= 19
                    then malformed "number too long"
                    else digits negative (value * 10 + digit) from (position + 1)
                | byte == 13,
                  position > from ->
                  if position + 1 >= end
                    then pure (unfinished frames at (position - at + 2))
                    else do
                      lf <- byteAt (position + 1)
                      first <- byteAt from
                      if
                          | lf /= 10 -> malformed "carriage return without line feed"
                          | OnlyMinusOne <- signs, first == 48, position - from > 1 -> malformed "size with leading zeros"
                          | negative -> case signs of
                            OnlyMinusOne | value /= 1 -> malformed "negative size"
                            AnySign | value > 9223372036854775808 -> malformed "number out of range"
                            _ -> continue (negate (fromIntegral value)) (position + 2)
                          | value > 9223372036854775807 -> malformed "number out of range"
                          | otherwise -> continue (fromIntegral value) (position + 2)
                | otherwise -> malformed "not a number"
    {-# INLINE number #-}

    -- Most simple strings are OK. They all share one value.
    simple :: Int -> Int -> Stack -> IO Step
    simple !at !end frames
      | end - at >= 5 = do
        o <- byteAt (at + 1)
        k <- byteAt (at + 2)
        cr <- byteAt (at + 3)
        lf <- byteAt (at + 4)
        if o == 79 && k == 75 && cr == 13 && lf == 10
          then complete okay (at + 5) end frames
          else newLine 43 at end frames
      | otherwise = newLine 43 at end frames

    newLine :: Word8 -> Int -> Int -> Stack -> IO Step
    newLine !tag !at = line (LineStart tag 0 []) (at + 1)

    -- The text behind the type byte, or behind what has come of it, up to its line break.
    line :: LineStart -> Int -> Int -> Stack -> IO Step
    line begun@(LineStart tag before pieces) !start !end frames = scan start
      where
        scan !position
          | position + 1 >= end = more position
          | otherwise = do
            byte <- byteAt position
            case byte of
              13 -> do
                lf <- byteAt (position + 1)
                if
                    | lf /= 10 -> malformed "carriage return inside a line"
                    | tooLong position -> malformed lineTooLong
                    | otherwise -> do
                      text <- copied start (position - start)
                      lineDone tag (if null pieces then text else ByteString.concat (reverse (text : pieces))) (position + 2) end frames
              10 -> malformed "line feed inside a line"
              _ -> scan (position + 1)

        more position
          | tooLong position = malformed lineTooLong
          | position - start >= leastBegun = do
            piece <- copied start (position - start)
            pure (NeedMore (Frames (LineBegun (LineStart tag (before + position - start) (piece : pieces))) frames) position (end - position + 1))
          | null pieces = pure (unfinished frames (start - 1) (position - start + 3))
          | otherwise = pure (NeedMore (Frames (LineBegun begun) frames) start (position - start + 2))

        tooLong position = before + position - start > limitBulkBytes limits
        lineTooLong = "line too long" <> limitedTo (limitBulkBytes limits)

    lineDone :: Word8 -> ByteString -> Int -> Int -> Stack -> IO Step
    lineDone !tag text !next !end frames = case tag of
      43 {- '+' -} -> complete (SimpleString text) next end frames
      45 {- '-' -} -> complete (ErrorReply text) next end frames
      44 {- ',' -} -> parsed "double" (Double <$> parseDouble text)
      35 {- '#' -} -> parsed "boolean" (Boolean <$> parseBoolean text)
      -- A script may give any text for its number. It is what RESP2 has for one, and ends nothing.
      40 {- '(' -} -> complete (maybe (BulkString text) BigNumber (parseInteger text)) next end frames
      _ {- '_' -} -> if ByteString.null text then complete (NullOf PlainNull) next end frames else malformed "null with a body"
      where
        parsed name = maybe (malformed ("not a " <> name)) (\value -> complete value next end frames)

    unfinished frames = NeedMore (Frames NothingBegun frames)

    byteAt :: Int -> IO Word8
    byteAt = peekByteOff base

    copied :: Int -> Int -> IO ByteString
    copied start size =
      ByteString.Internal.create size $ \to -> copyBytes to (base `plusPtr` start) size

    malformed = pure . Malformed

limitedTo :: Int -> String
limitedTo limit = "; the limit is " <> show limit

okay :: Value
okay = SimpleString "OK"

depthOf :: Stack -> Int
depthOf = \case
  Bottom -> 0
  Frame _ depth _ _ _ -> depth

-- | Turns keys and values by turns, last first, into pairs in order.
pairsReversed :: [Value] -> [(Value, Value)]
pairsReversed = go []
  where
    go pairs = \case
      value : key : rest -> go ((key, value) : pairs) rest
      _ -> pairs

verbatim :: ByteString -> Maybe Value
verbatim bytes = case ByteString.splitAt 3 bytes of
  (format, rest) | Just (58, text) <- ByteString.uncons rest -> Just (VerbatimString format text)
  _ -> Nothing

parseBoolean :: ByteString -> Maybe Bool
parseBoolean = \case
  "t" -> Just True
  "f" -> Just False
  _ -> Nothing

-- | Decodes one value from complete bytes. Returns it with the bytes that follow. \(O(n)\).
decodeBytes :: Limits -> ByteString -> Either String (Value, ByteString)
decodeBytes limits bytes =
  -- Dupable: it only reads immutable memory.
  unsafeDupablePerformIO $
    ByteString.Unsafe.unsafeUseAsCStringLen bytes $ \(start, size) ->
      decode limits (castPtr start) 0 size startFrames >>= \case
        Done value next -> pure (Right (value, ByteString.drop next bytes))
        NeedMore _ _ missing -> pure (Left ("incomplete, at least " <> show missing <> " bytes needed"))
        Malformed reason -> pure (Left reason)
