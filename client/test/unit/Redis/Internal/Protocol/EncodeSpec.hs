module Redis.Internal.Protocol.EncodeSpec (spec) where

import Data.ByteString (ByteString)
import Data.ByteString qualified as ByteString
import Data.List (nub)
import Foreign.Marshal.Alloc (allocaBytes)
import Foreign.Marshal.Utils (fillBytes)
import Foreign.Ptr (castPtr)
import Redis.Internal.Protocol.Encode
import Support (naiveRequest)
import Test.Hspec
import Test.Hspec.QuickCheck (prop)
import Test.QuickCheck

spec :: Spec
spec = describe "Redis.Internal.Protocol.Encode" $ do
  prop "encodes any arguments as an array of bulk strings" $
    forAll (listOf argument) $ \arguments ->
      requestBytes (request arguments) === naiveRequest arguments

  it "writes sizes and counts around every power of ten" $
    mapM_
      (\size -> requestBytes (request [ByteString.replicate size 120]) `shouldBe` naiveRequest [ByteString.replicate size 120])
      (concat [[power - 1, power, power + 1] | power <- takeWhile (<= 1000000) (iterate (* 10) 1)])

  it "writes a count of many arguments" $
    mapM_
      (\count -> requestBytes (request (replicate count "x")) `shouldBe` naiveRequest (replicate count "x"))
      [0, 1, 9, 10, 11, 99, 100, 999, 1000, 10000, 100001]

  prop "writes as many bytes as it said, and none behind them" $
    forAll (listOf argument) $ \others ->
      conjoin (map (ioProperty . keepsToItsSize) (request others : requestShortened others (request []) : map fst (prepared others) <> map requestInline (take 1 others)))

  prop "encodes a name once and the arguments behind it, as all words together" $
    forAll (listOf argument) $ \others ->
      conjoin [requestBytes encoded === naiveRequest expected | (encoded, expected) <- prepared others]

  prop "gives its words back" $
    forAll (listOf argument) $ \others ->
      conjoin ((requestArguments (request others) === others) : [requestArguments encoded === expected | (encoded, expected) <- prepared others])

  prop "is the same as another if it has the same words, whatever form it has, and then has the same hash" $
    forAll ((,) <$> listOf argument <*> listOf argument) $ \(some, others) ->
      let forms arguments = (request arguments, arguments) : prepared arguments
       in conjoin
            [ (requestIs (requestKept one) other === (said == said')) .&&. (said /= said' .||. requestHash 7 one === requestHash 7 other)
              | (one, said) <- forms some,
                (other, said') <- forms others <> forms some
            ]

  it "has another hash for other arguments, and with another seed" $ do
    let arguments = [["k" <> ByteString.replicate size 0, other] | size <- [0 .. 40], other <- ["", "a", "b", "ab"]]
        hashes seed = [requestHash seed (request ("GET" : one)) | one <- arguments]
    length (nub (hashes 1 <> hashes 2)) `shouldBe` 2 * length arguments

  prop "sends the short form of two, and has the long one" $
    forAll ((,) <$> listOf argument <*> listOf argument) $ \(short, long) ->
      let both = requestShortened short (request long)
       in requestBytes both === naiveRequest short
            .&&. requestArguments both === short
            .&&. requestArguments (requestWhole both) === long
            .&&. map requestIsShortened [both, requestWhole both] === [True, False]

  it "has the words of a line as a server splits it" $ do
    let wordsOf = requestArguments . requestInline
    map wordsOf ["SET key value", "  GET\t key ", "GET voil\xc3\xa0", "", " \t"]
      `shouldBe` [["SET", "key", "value"], ["GET", "key"], ["GET", "voil\xc3\xa0"], [], []]
    map wordsOf ["SET \"a key\" 'it\\'s'", "SET k\"e y\" \"\"", "SET \"\\x41\\xg\\n\\\"\" 'a\\n'"]
      `shouldBe` [["SET", "a key", "it's"], ["SET", "ke y", ""], ["SET", "Axg\n\"", "a\\n"]]

  it "is one command if it is a line that servers take for one" $ do
    let isOne = requestIsOne . requestInline
    filter (not . isOne) ["PING", "GET \"a key\"", "GET 'a\"'", "GET a*", ""] `shouldBe` []
    filter isOne ["GET \"k", "GET k'", "GET \"k\\\"", "GET \"a\"b", "GET 'a'b", "*1", "PING\r", "PING\nPING", "PING\0"] `shouldBe` []
    map (\size -> isOne ("GET " <> ByteString.replicate size 120)) [65531, 65532] `shouldBe` [True, False]

  prop "sends a line as it is, and its break" $
    forAll argument $ \line ->
      requestBytes (requestInline line) === line <> "\r\n"
        .&&. requestSize (requestInline line) === ByteString.length line + 2

-- | Requests with a prepared name of one word and of two, each with its words.
prepared :: [ByteString] -> [(Request, [ByteString])]
prepared others =
  [ (encoded, nameWords <> given)
    | nameWords <- [["GET"], ["CONFIG", "SET"]],
      let header = headerOf nameWords,
      (encoded, given) <-
        (requestOf header others, others) :
        (requestOf0 header, []) : case others of
          a : b : c : _ -> [(requestOf1 header a, [a]), (requestOf2 header a b, [a, b]), (requestOf3 header a b c, [a, b, c])]
          _ -> []
  ]

keepsToItsSize :: Request -> IO Property
keepsToItsSize encoded =
  allocaBytes (size + 64) $ \start -> do
    fillBytes start 0xaa (size + 64)
    requestPoke encoded start
    written <- ByteString.packCStringLen (castPtr start, size + 64)
    pure (written === requestBytes encoded <> ByteString.replicate 64 0xaa)
  where
    size = requestSize encoded

argument :: Gen ByteString
argument =
  frequency
    [ (8, ByteString.pack <$> arbitrary),
      (1, (`ByteString.replicate` 0) <$> elements [9, 10, 99, 100, 999, 1000, 9999, 10000]),
      (1, ByteString.pack <$> (arbitrary >>= \n -> vectorOf (abs n `mod` 2000) arbitrary))
    ]
