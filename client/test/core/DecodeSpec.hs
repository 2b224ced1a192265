-- | The decoder's laws: every value comes back, however its bytes are cut, and no bytes can make
-- the decoder crash, read beyond their end, or use much memory.
module DecodeSpec (spec) where

import Control.Exception (evaluate)
import Control.Monad (forM_, void)
import Data.ByteString (ByteString)
import Data.ByteString qualified as ByteString
import Data.ByteString.Char8 qualified as Char8
import Data.ByteString.Unsafe qualified as ByteString.Unsafe
import Data.Either (isLeft)
import Data.IORef
import Data.Int (Int64)
import Data.List qualified as List
import Data.Word (Word8)
import Foreign.Ptr (Ptr, castPtr)
import Peer (within)
import Redis.Internal.Protocol.Decode
import Redis.Properties (cases)
import Redis.Value
import System.Mem (getAllocationCounter, setAllocationCounter)
import Test.Hspec hiding (after, before)
import Test.Hspec.QuickCheck (modifyMaxSuccess, prop)
import Test.QuickCheck hiding (within)

spec :: Spec
spec = describe "the decoder" $ do
  describe "whole values" wholeValues
  describe "cut values" cutValues
  describe "long strings" long
  describe "what is not RESP" notResp
  describe "numbers" numbers
  describe "limits" limited
  describe "hostile bytes" hostile

wholeValues :: Spec
wholeValues = do
  prop "gives every value back from its bytes" $
    forAll genValue $ \value ->
      shown (decodeBytes generous (encoded value)) === shown (Right (value, ""))

  prop "leaves the bytes behind a value alone" $
    forAll genValue $ \value -> forAll genBytes $ \rest ->
      shown (decodeBytes generous (encoded value <> rest)) === shown (Right (value, rest))

  it "tells the three nulls apart" $
    forM_ [("_\r\n", PlainNull), ("$-1\r\n", NullBulkString), ("*-1\r\n", NullArray)] $ \(bytes, form) ->
      decodeBytes generous bytes `shouldBe` Right (NullOf form, "")

  it "takes a null array where an array would be too deep" $
    decodeBytes generous {limitDepth = 1} "*1\r\n*-1\r\n" `shouldBe` Right (Array [NullOf NullArray], "")

  prop "takes a long error for the same as a short one" $
    forAll genLine $ \text ->
      decodeBytes generous (prefixed '!' text) === decodeBytes generous (lined '-' text)

cutValues :: Spec
cutValues = do
  it "tells the state between two replies from one within a reply" $ do
    frames <- ByteString.Unsafe.unsafeUseAsCStringLen "*2\r\n:1\r\n" $ \(start, size) ->
      decode generous (castPtr start) 0 size startFrames >>= \case
        NeedMore frames _ _ -> pure (Just frames)
        _ -> pure Nothing
    map betweenReplies (startFrames : foldMap pure frames) `shouldBe` [True, False]

  prop "any cut of the bytes gives the same value" $
    forAll genValue $ \value -> forAll (genCuts (encoded value)) $ \cuts ->
      ioProperty $ do
        end <- fed cuts (encoded value)
        pure (end === Right (show value, ByteString.length (encoded value)))

  modifyMaxSuccess (const 60) . prop "bytes that come one by one give the same value" $
    forAll (resize 20 genValue) $ \value ->
      ioProperty $ do
        let size = ByteString.length (encoded value)
        end <- fed [0 .. size - 1] (encoded value)
        pure (end === Right (show value, size))

  prop "never asks for more than the value has" $
    forAll genValue $ \value ->
      let bytes = encoded value
       in forAll (chooseInt (0, ByteString.length bytes - 1)) $ \cut ->
            ioProperty $ do
              step <- stepTo (decode generous) bytes cut 0 startFrames
              pure $ case step of
                NeedMore _ at need -> counterexample (stepText step) (at <= cut && at + need > cut && at + need <= ByteString.length bytes)
                other -> counterexample (stepText other) False

  prop "bytes behind the end are not looked at, even if they would complete the value" $
    forAll (oneof [genValue, pure (SimpleString "OK")]) $ \value ->
      let bytes = encoded value
       in forAll (chooseInt (0, ByteString.length bytes - 1)) $ \cut -> ioProperty $ do
            step <- stepIn (decode generous) bytes cut 0 startFrames
            pure $ case step of
              NeedMore {} -> property True
              other -> counterexample (stepText other) False

  prop "several values in a row come in their order, however they are cut" $
    forAll (resize 20 (listOf genValue)) $ \values ->
      let bytes = ByteString.concat (map encoded values)
       in forAll (genCuts bytes) $ \cuts -> ioProperty $ do
            (seen, end) <- handed cuts bytes
            pure (show seen === show values .&&. end === Just (ByteString.length bytes))

  prop "invalidations within a value come before it, and are no part of it, however they are cut" $
    forAll (resize 20 genValue) $ \value -> forAll (genInterrupted value) $ \bytes ->
      forAll (genCuts bytes) $ \cuts -> ioProperty $ do
        (seen, end) <- handed cuts bytes
        let many = (ByteString.length bytes - ByteString.length (encoded value)) `quot` ByteString.length (encoded invalidation)
        pure (show seen === show (replicate many invalidation <> [value]) .&&. end === Just (ByteString.length bytes))

  it "another push within a value is a part of it, as in EXEC's reply to SUBSCRIBE" $ do
    let value = Array [Push [BulkString "subscribe", BulkString "c", Integer 1], SimpleString "OK"]
    handed [] (encoded value) `shouldReturn` ([value], Just (ByteString.length (encoded value)))

  prop "stops at the value at which it is told to" $
    forAll (resize 20 (listOf1 genValue)) $ \values -> forAll (chooseInt (1, length values)) $ \wanted ->
      ioProperty $ do
        seen <- newIORef (0 :: Int)
        let bytes = ByteString.concat (map encoded values)
            count _ = modifyIORef' seen (+ 1) *> ((< wanted) <$> readIORef seen)
        step <- stepTo (\base -> decodeWhile generous base count) bytes (ByteString.length bytes) 0 startFrames
        pure $ case step of
          Done value at ->
            show value === concatMap show (take 1 (drop (wanted - 1) values))
              .&&. at === sum (map (ByteString.length . encoded) (take wanted values))
          other -> counterexample (stepText other) False

long :: Spec
long = do
  modifyMaxSuccess (const 50) . prop "any cut of a long string or line gives the same value" $
    forAll genLong $ \value -> forAll (genCuts (encoded value)) $ \cuts ->
      ioProperty $ do
        end <- fed cuts (encoded value)
        -- Not shown: the value is long.
        pure (property (end == Right (show value, ByteString.length (encoded value))))

  it "are moved to their place as they come, so that few bytes wait for the rest" $
    forM_ [lined '+' text, lined '-' text, prefixed '$' text, prefixed '!' text, prefixed '=' text] $ \bytes -> do
      kept <- mostKept bytes
      kept `shouldSatisfy` (< leastBuffer `quot` 2)
  where
    text = "txt:" <> Char8.replicate 900000 'x'

    -- The most bytes that a reader must keep which receives 1000 at a time.
    mostKept bytes = go 0 0 startFrames [1000, 2000 .. ByteString.length bytes - 1]
      where
        go most _ _ [] = pure most
        go most at frames (cut : later) =
          stepTo (decode generous) bytes cut at frames >>= \case
            NeedMore frames' at' _ -> go (max most (cut - at')) at' frames' later
            other -> fail (stepText other)

    genLong = do
      size <- choose (30000, 100000)
      before <- genLine
      let string = before <> Char8.replicate size 'x'
      value <- elements [SimpleString string, ErrorReply string, ErrorReply (string <> "\r\n"), BulkString string, VerbatimString "txt" string]
      elements [value, Array [value, BulkString before, value]]

notResp :: Spec
notResp = do
  it "takes a size that is zero, and digits that are zeros within one" $ do
    forM_ [("$0\r\n\r\n", BulkString ""), ("*0\r\n", Array []), ("%0\r\n", Map []), ("$10\r\n0123456789\r\n", BulkString "0123456789")] $ \(bytes, value) ->
      decodeBytes generous bytes `shouldBe` Right (value, "")
    void (decodeBytes generous ("*100\r\n" <> ByteString.concat (replicate 100 ":1\r\n"))) `shouldBe` Right ()

  it "refuses streamed types" $
    forM_ ["$?\r\n", "*?\r\n", "%?\r\n", "~?\r\n", ">?\r\n", "|?\r\n", "=?\r\n", ";4\r\n", ";0\r\n", ".\r\n"] refused

  it "refuses them inside of an aggregate" $
    forM_ ["$?\r\n", "*?\r\n", "%?\r\n", "~?\r\n", ";4\r\n", ".\r\n"] $ \bytes -> refused ("*2\r\n:1\r\n" <> bytes)

  it "refuses lines, sizes and bodies that are not well formed" $
    forM_
      [ "+a\rb\r\n",
        "+a\nb\r\n",
        "+OK\rx",
        "+OKx\n ",
        "+OK\n\n",
        "-\n\r\n",
        ":\r\n",
        ":-\r\n",
        ":+\r\n",
        ":1x\r\n",
        ": 1\r\n",
        ":1\rx",
        "_x\r\n",
        "#x\r\n",
        "#\r\n",
        "#true\r\n",
        "$3\r\nabcde",
        "$0\r\nab",
        "$-2\r\n",
        "!-2\r\n",
        "!-1\r\n",
        "=-1\r\n",
        "*-2\r\n",
        "%-1\r\n",
        "~-1\r\n",
        ">-1\r\n",
        "|-1\r\n",
        "=2\r\nab\r\n",
        "=5\r\nabcde\r\n",
        ",\r\n",
        ",.\r\n",
        ",1e\r\n",
        ",1e+\r\n",
        ",--1\r\n",
        ",Infinity\r\n",
        "$+3\r\nabc\r\n",
        "$-0\r\n\r\n",
        "=+5\r\ntxt:a\r\n",
        "!+1\r\na\r\n",
        "*+1\r\n:1\r\n",
        "*-0\r\n",
        "%+1\r\n:1\r\n:1\r\n",
        "~+0\r\n",
        ">+0\r\n",
        "|+0\r\n:1\r\n",
        "$03\r\nabc\r\n",
        "$00\r\n\r\n",
        "$-01\r\n",
        "$0000000000000000003\r\nabc\r\n",
        "=05\r\ntxt:a\r\n",
        "!01\r\na\r\n",
        "*03\r\n:1\r\n:1\r\n:1\r\n",
        "*00\r\n",
        "*-01\r\n",
        "%01\r\n:1\r\n:1\r\n",
        "~01\r\n:1\r\n",
        ">01\r\n:1\r\n",
        "|01\r\n:1\r\n:1\r\n:1\r\n",
        "PING\r\n",
        "\r\n"
      ]
      refused

  cases 1000 . prop "any bytes come to a value within them, a wish for more, or a refusal" $
    forAll genAnything $ \bytes -> ioProperty $ do
      step <- stepTo (decode small) bytes (ByteString.length bytes) 0 startFrames
      sensible bytes step

  cases 1000 . prop "so do the bytes of a value of which one was changed" $
    forAll genDamaged $ \bytes -> ioProperty $ do
      step <- stepTo (decode generous) bytes (ByteString.length bytes) 0 startFrames
      sensible bytes step

  prop "bytes that are no value are no value however they are cut" $
    forAll genDamaged $ \bytes -> forAll (genCuts bytes) $ \cuts -> ioProperty $ do
      whole <- stepTo (decode generous) bytes (ByteString.length bytes) 0 startFrames
      parts <- fed cuts bytes
      pure $ case whole of
        Done value at -> parts === Right (show value, at)
        NeedMore {} -> parts === Left "incomplete"
        Malformed _ -> counterexample (show parts) (isLeft parts && parts /= Left "incomplete")

numbers :: Spec
numbers = do
  prop "reads every 64-bit integer" $
    forAll genInt64 $ \number -> decodeBytes generous (lined ':' (Char8.pack (show number))) === Right (Integer number, "")

  it "reads the first and the last integer, signs and zeros" $
    forM_
      [ (":9223372036854775807\r\n", maxBound),
        (":-9223372036854775808\r\n", minBound),
        (":+7\r\n", 7),
        (":-0\r\n", 0),
        (":0000000000000000001\r\n", 1)
      ]
      $ \(bytes, number) -> decodeBytes generous bytes `shouldBe` Right (Integer number, "")

  prop "refuses an integer that needs more than 64 bits" $
    forAll (oneof [choose (2 ^ (63 :: Int), 2 ^ (70 :: Int)), choose (-(2 ^ (70 :: Int)), -(2 ^ (63 :: Int)) - 1)]) $ \number ->
      refuses generous (lined ':' (Char8.pack (show (number :: Integer))))

  it "refuses one at the edges" $
    forM_
      [ ":9223372036854775808\r\n",
        ":-9223372036854775809\r\n",
        ":18446744073709551615\r\n",
        ":18446744073709551616\r\n",
        ":18446744073709551617\r\n",
        ":99999999999999999999\r\n"
      ]
      refused

  prop "reads every finite double as it was, by its shortest digits" $
    \number -> shown (decodeBytes generous (encoded (Double number))) === shown (Right (Double number, ""))

  it "reads infinities and what is not a number" $ do
    decodeBytes generous ",inf\r\n" `shouldBe` Right (Double (1 / 0), "")
    decodeBytes generous ",+inf\r\n" `shouldBe` Right (Double (1 / 0), "")
    decodeBytes generous ",-inf\r\n" `shouldBe` Right (Double (-1 / 0), "")
    forM_ [",nan\r\n", ",-nan\r\n"] $ \bytes -> case decodeBytes generous bytes of
      Right (Double number, "") -> number `shouldSatisfy` isNaN
      other -> expectationFailure (show other)

  it "takes a big number that is none for its text, as a script may send any" $
    forM_ ["", "1.5", "123 ", "x"] $ \text ->
      decodeBytes generous ("*2\r\n" <> lined '(' text <> ":1\r\n") `shouldBe` Right (Array [BulkString text, Integer 1], "")

  it "rounds an exponent that is too large or too small, at once" . within 5 $ do
    let far = Char8.replicate 60000 '9'
        zeros = Char8.replicate 60000 '0'
    forM_
      [ ("1e" <> far, 1 / 0),
        ("-1e" <> far, -1 / 0),
        ("1e-" <> far, 0),
        ("0e" <> far, 0),
        ("0e-" <> far, 0),
        ("1e999999999", 1 / 0),
        ("1e-999999999", 0),
        ("0." <> zeros <> "1e60001", 1),
        ("1" <> zeros <> "e-60000", 1),
        ("1" <> Char8.take 30000 zeros <> "e-1" <> Char8.take 30000 zeros, 0)
      ]
      $ \(text, number) -> decodeBytes generous (lined ',' text) `shouldBe` Right (Double number, "")

limited :: Spec
limited = do
  prop "takes a bulk string of the greatest size and refuses the next, before it comes" $
    forAll (chooseInt (0, 100)) $ \most ->
      let limits = generous {limitBulkBytes = most}
          text = Char8.replicate most 'x'
       in conjoin
            [ shown (decodeBytes limits (prefixed '$' text)) === shown (Right (BulkString text, "")),
              conjoin [refuses limits (Char8.pack (tag : show (most + 1) <> "\r\n")) | tag <- "$!="]
            ]

  prop "takes an aggregate of the greatest size and refuses the next, before it comes" $
    forAll (chooseInt (0, 50)) $ \most ->
      let limits = generous {limitElements = most}
          pairs = most `quot` 2
       in conjoin
            [ decodeBytes limits (encoded (Array (replicate most Null))) === Right (Array (replicate most Null), ""),
              decodeBytes limits (encoded (Map (replicate pairs (Null, Null)))) === Right (Map (replicate pairs (Null, Null)), ""),
              conjoin [refuses limits (Char8.pack (tag : show (most + 1) <> "\r\n")) | tag <- "*~>"],
              conjoin [refuses limits (Char8.pack (tag : show (pairs + 1) <> "\r\n")) | tag <- "%|"]
            ]

  prop "takes the greatest depth and refuses the next, before it is filled" $
    forAll (chooseInt (0, 50)) $ \most -> forAll (elements ["*1\r\n", "~1\r\n", ">1\r\n", "%1\r\n:1\r\n", "|0\r\n"]) $ \level ->
      let limits = generous {limitDepth = most}
          deep count = ByteString.concat (replicate count level)
       in conjoin
            [ property (either (const False) (ByteString.null . snd) (decodeBytes limits (deep most <> ":1\r\n"))),
              refuses limits (deep (most + 1))
            ]

  it "takes a line as long as a bulk string may be, and refuses a longer one, with an end or without" $ do
    let limits = generous {limitBulkBytes = 100000}
        most = Char8.replicate 100000 '1'
    decodeBytes limits (lined '+' most) `shouldBe` Right (SimpleString most, "")
    decodeBytes limits (lined '-' most) `shouldBe` Right (ErrorReply most, "")
    forM_ ("+-,(#_" :: String) $ \tag -> do
      refusedBy limits (lined tag (most <> "1"))
      refusedBy limits (Char8.cons tag (most <> "11"))

  it "refuses a number that does not end" $
    forM_ (":$*%" :: String) $ \tag -> refused (Char8.cons tag (Char8.replicate 100000 '1'))

hostile :: Spec
hostile = do
  it "allocates nothing for elements that have not come" $
    forM_ ["*1000000000\r\n", "%1000000000\r\n", "~1000000000\r\n", ">1000000000\r\n", "|1000000000\r\n", "$1000000000\r\n"] $ \bytes -> do
      let limits = limitsDefaults {limitBulkBytes = maxBound `quot` 2, limitElements = maxBound `quot` 2, limitDepth = 8}
      (step, allocated) <- allocating (stepTo (decode limits) bytes (ByteString.length bytes) 0 startFrames)
      stepText step `shouldStartWith` "NeedMore"
      allocated `shouldSatisfy` (< 64 * 1024)

  it "refuses sizes that only overflow could make small" $
    forM_ ("*%~>|$!=" :: String) $ \tag ->
      forM_ ["9223372036854775807", "4611686018427387904", "-9223372036854775808", "18446744073709551617"] $ \size ->
        refused (Char8.cons tag (size <> "\r\n"))

  it "does not read behind the bytes for a size that no number of bytes can have" $ do
    let limits = generous {limitBulkBytes = maxBound}
    forM_ ["$9223372036854775807\r\nxy\r\n", "=9223372036854775806\r\nxy\r\n"] $ \bytes -> do
      step <- stepTo (decode limits) bytes (ByteString.length bytes) 0 startFrames
      stepText step `shouldStartWith` "NeedMore"

  it "stops at the depth limit of a hundred thousand aggregates" . within 5 $
    forM_ ["*1\r\n", "%1\r\n", "~1\r\n", ">1\r\n", "|1\r\n", "|0\r\n"] $ \level -> do
      bytes <- evaluate (ByteString.concat (replicate 100000 level))
      (step, allocated) <- allocating (stepTo (decode generous) bytes (ByteString.length bytes) 0 startFrames)
      stepText step `shouldStartWith` "Malformed"
      -- The bytes themselves, and the memory for 64 levels.
      allocated `shouldSatisfy` (< fromIntegral (2 * ByteString.length bytes) + 64 * 1024)

-- | Runs the decoder on the bytes before a cut. The bytes behind the cut are not RESP, so a decoder
-- that reads beyond the cut fails.
stepTo :: (Ptr Word8 -> Int -> Int -> Frames -> IO Step) -> ByteString -> Int -> Int -> Frames -> IO Step
stepTo run bytes cut = stepIn run (ByteString.take cut bytes <> ByteString.replicate 32 255) cut

-- | Runs the decoder on the beginning of the bytes in memory.
stepIn :: (Ptr Word8 -> Int -> Int -> Frames -> IO Step) -> ByteString -> Int -> Int -> Frames -> IO Step
stepIn run memory cut at frames =
  ByteString.Unsafe.unsafeUseAsCStringLen memory $ \(start, _) -> do
    step <- run (castPtr start) at cut frames
    -- Evaluated here: anything left unevaluated would read memory that is gone.
    step <$ evaluate (length (stepText step))

-- | Decodes as a connection's reader does: it goes up to each cut, continues where it stopped, and
-- waits until there are as many bytes as the decoder asked for.
fed :: [Int] -> ByteString -> IO (Either String (String, Int))
fed cuts bytes = go 0 1 startFrames cuts
  where
    size = ByteString.length bytes
    go at need frames = \case
      cut : later
        | cut < at + need -> go at need frames later
        | otherwise -> next at frames cut (\at' need' frames' -> go at' need' frames' later)
      [] -> next at frames size (\_ _ _ -> pure (Left "incomplete"))
    next at frames cut continue =
      stepTo (decode generous) bytes cut at frames >>= \case
        Done value end -> pure (Right (show value, end))
        Malformed reason -> pure (Left reason)
        NeedMore frames' at' need' -> continue at' need' frames'

-- | Decodes values in a row up to each cut: those that are handed on, and where they end.
handed :: [Int] -> ByteString -> IO ([Value], Maybe Int)
handed cuts bytes = do
  seen <- newIORef []
  let note value = True <$ modifyIORef' seen (value :)
      go _ _ [] = pure Nothing
      go at frames (cut : later) =
        stepTo (\base -> decodeWhile generous base note) bytes cut at frames >>= \case
          NeedMore frames' at' _ -> if null later then pure (Just at') else go at' frames' later
          _ -> pure Nothing
  end <- go 0 startFrames (cuts <> [ByteString.length bytes])
  found <- readIORef seen
  pure (reverse found, end)

-- | Checks that a step claims nothing about bytes that are not there.
sensible :: ByteString -> Step -> IO Property
sensible bytes step = pure $ case step of
  Done _ end -> counterexample (stepText step) (end > 0 && end <= size)
  NeedMore _ at need -> counterexample (stepText step) (at >= 0 && at <= size && at + need > size)
  Malformed reason -> property (not (null reason))
  where
    size = ByteString.length bytes

stepText :: Step -> String
stepText = \case
  Done value end -> "Done " <> show value <> " " <> show end
  NeedMore _ at need -> "NeedMore " <> show at <> " " <> show need
  Malformed reason -> "Malformed " <> reason

-- | The number of bytes that the thread allocates for an action.
allocating :: IO a -> IO (a, Int64)
allocating action = do
  setAllocationCounter maxBound
  before <- getAllocationCounter
  result <- action >>= evaluate
  after <- getAllocationCounter
  pure (result, before - after)

-- | Checks that the bytes are refused, and not because they are incomplete.
refused :: ByteString -> Expectation
refused = refusedBy generous

refusedBy :: Limits -> ByteString -> Expectation
refusedBy limits bytes = do
  step <- stepTo (decode limits) bytes (ByteString.length bytes) 0 startFrames
  (ByteString.take 40 bytes, take 9 (stepText step)) `shouldBe` (ByteString.take 40 bytes, "Malformed")

refuses :: Limits -> ByteString -> Property
refuses limits bytes = ioProperty $ do
  step <- stepTo (decode limits) bytes (ByteString.length bytes) 0 startFrames
  pure (counterexample (show bytes) (take 9 (stepText step) === "Malformed"))

-- | Text for comparisons: NaN then equals itself, and -0 differs from 0.
shown :: Either String (Value, ByteString) -> String
shown = show

generous, small :: Limits
generous = limitsDefaults {limitBulkBytes = 1024 * 1024, limitElements = 1024 * 1024, limitDepth = 64}
small = limitsDefaults {limitBulkBytes = 20, limitElements = 5, limitDepth = 3}

-- | The bytes that a server sends for a value.
encoded :: Value -> ByteString
encoded = \case
  SimpleString text -> lined '+' text
  BulkString text -> prefixed '$' text
  Integer number -> lined ':' (digits number)
  NullOf PlainNull -> lined '_' ""
  NullOf NullBulkString -> lined '$' "-1"
  NullOf NullArray -> lined '*' "-1"
  Array values -> counted '*' (length values) (map encoded values)
  ErrorReply text
    | Char8.any (`elem` ("\r\n" :: String)) text -> prefixed '!' text
    | otherwise -> lined '-' text
  Double number
    | isNaN number -> lined ',' "nan"
    | isInfinite number -> lined ',' (if number > 0 then "inf" else "-inf")
    | otherwise -> lined ',' (digits number)
  Boolean flag -> lined '#' (if flag then "t" else "f")
  BigNumber number -> lined '(' (digits number)
  VerbatimString format text -> prefixed '=' (format <> ":" <> text)
  Map pairs -> counted '%' (length pairs) (both pairs)
  Set values -> counted '~' (length values) (map encoded values)
  Push values -> counted '>' (length values) (map encoded values)
  WithAttributes pairs value -> counted '|' (length pairs) (both pairs) <> encoded value
  where
    digits :: Show a => a -> ByteString
    digits = Char8.pack . show
    both pairs = [encoded key <> encoded value | (key, value) <- pairs]
    counted tag count parts = lined tag (digits count) <> ByteString.concat parts

lined, prefixed :: Char -> ByteString -> ByteString
lined tag text = Char8.cons tag (text <> "\r\n")
prefixed tag text = lined tag (Char8.pack (show (ByteString.length text))) <> text <> "\r\n"

genValue :: Gen Value
genValue = upTo (5 :: Int)
  where
    upTo depth
      | depth <= 0 = leaf
      | otherwise = oneof [leaf, aggregate (upTo (depth - 1))]
    aggregate inner =
      oneof
        [ Array <$> few inner,
          Set <$> few inner,
          Push <$> few inner,
          Map <$> few ((,) <$> inner <*> inner),
          WithAttributes <$> few ((,) <$> inner <*> inner) <*> inner
        ]
    few inner = chooseInt (0, 4) >>= \count -> vectorOf count inner
    leaf =
      oneof
        [ SimpleString <$> oneof [genLine, elements ["OK", "O", "K", "OKAY", "KO", "ok", ""]],
          BulkString <$> genBytes,
          Integer <$> genInt64,
          NullOf <$> elements [minBound .. maxBound],
          ErrorReply <$> oneof [genLine, genBytes],
          Double <$> oneof [arbitrary, elements [1 / 0, -1 / 0, 0 / 0, 0, -0.0, 5e-324, 1.7976931348623157e308]],
          Boolean <$> arbitrary,
          BigNumber <$> oneof [arbitrary, choose (-(10 ^ (60 :: Int)), 10 ^ (60 :: Int))],
          VerbatimString <$> (ByteString.pack <$> vectorOf 3 arbitrary) <*> genBytes
        ]

invalidation :: Value
invalidation = Push [BulkString "invalidate", Array [BulkString "key"]]

-- | The bytes that a server with the fault redis#8935 sends for a value.
genInterrupted :: Value -> Gen ByteString
genInterrupted = \case
  Array values -> counted '*' (length values) values
  Set values -> counted '~' (length values) values
  Push values -> counted '>' (length values) values
  Map pairs -> counted '%' (length pairs) (concat [[key, value] | (key, value) <- pairs])
  value -> pure (encoded value)
  where
    counted tag count values = (lined tag (Char8.pack (show count)) <>) . ByteString.concat <$> mapM interrupted values
    interrupted value = (<>) <$> elements ["", "", encoded invalidation] <*> genInterrupted value

genInt64 :: Gen Int64
genInt64 = oneof [arbitrary, arbitraryBoundedIntegral, elements [minBound, minBound + 1, maxBound - 1, maxBound]]

-- | Any bytes, including line breaks.
genBytes :: Gen ByteString
genBytes = ByteString.pack <$> listOf (frequency [(4, arbitrary), (1, elements [13, 10])])

-- | Any bytes without line breaks.
genLine :: Gen ByteString
genLine = ByteString.filter (`notElem` [13, 10]) <$> genBytes

genCuts :: ByteString -> Gen [Int]
genCuts bytes = List.sort <$> listOf (chooseInt (0, ByteString.length bytes))

-- | Bytes that look like RESP at least here and there.
genAnything :: Gen ByteString
genAnything = oneof [ByteString.pack <$> arbitrary, ByteString.concat <$> listOf piece]
  where
    piece =
      oneof
        [ elements ["*", "$", ":", "+", "-", "%", "~", ">", "|", "#", "_", ",", "(", "=", "!", ";", "."],
          elements ["\r\n", "\r\n", "\r\n", "\r", "\n"],
          Char8.pack . show <$> chooseInt (-2, 12),
          elements ["*1\r\n", "*2\r\n", "%1\r\n", "|1\r\n", "$3\r\nabc\r\n", ":1\r\n", "_\r\n", "#t\r\n", ",1e5\r\n"],
          ByteString.pack <$> vectorOf 2 arbitrary
        ]

-- | A value's bytes with one byte changed, left out, or repeated.
genDamaged :: Gen ByteString
genDamaged = do
  bytes <- encoded <$> resize 15 genValue
  at <- chooseInt (0, ByteString.length bytes - 1)
  let (before, after) = ByteString.splitAt at bytes
  byte <- oneof [arbitrary, ByteString.index bytes <$> chooseInt (0, ByteString.length bytes - 1)]
  elements
    [ before <> ByteString.cons byte (ByteString.drop 1 after),
      before <> ByteString.drop 1 after,
      before <> ByteString.take 1 after <> after
    ]
