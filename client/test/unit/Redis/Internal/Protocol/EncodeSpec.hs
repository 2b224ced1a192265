{-# LANGUAGE MagicHash #-}

module Redis.Internal.Protocol.EncodeSpec (spec) where

import Data.ByteString (ByteString)
import Data.ByteString qualified as ByteString
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
    forAll ((,,) <$> argument <*> argument <*> argument) $ \(a, b, c) ->
      forAll (listOf argument) $ \others ->
        let literal1 = requestLiteral1 13 "*2\r\n$3\r\nGET\r\n"# a
            literal2 = requestLiteral2 13 "*3\r\n$3\r\nSET\r\n"# a b
            literal3 = requestLiteral3 13 "*4\r\n$3\r\nFOO\r\n"# a b c
         in conjoin (map (ioProperty . keepsToItsSize) [literal1, literal2, literal3, request others, literal2 <> request others, requestInline a])

  prop "encodes the arguments after a literal" $
    forAll ((,,) <$> argument <*> argument <*> argument) $ \(a, b, c) ->
      conjoin
        [ requestBytes (requestLiteral1 13 "*2\r\n$3\r\nGET\r\n"# a) === naiveRequest ["GET", a],
          requestBytes (requestLiteral2 13 "*3\r\n$3\r\nSET\r\n"# a b) === naiveRequest ["SET", a, b],
          requestBytes (requestLiteral3 13 "*4\r\n$3\r\nFOO\r\n"# a b c) === naiveRequest ["FOO", a, b, c]
        ]

  prop "sends a line as it is, and its break" $
    forAll argument $ \line ->
      requestBytes (requestInline line) === line <> "\r\n"
        .&&. requestSize (requestInline line) === ByteString.length line + 2

  prop "joins requests without anything between them" $
    forAll ((,) <$> listOf argument <*> listOf argument) $ \(a, b) ->
      let joined = request a <> request b
       in requestBytes joined === naiveRequest a <> naiveRequest b
            .&&. requestSize joined === requestSize (request a) + requestSize (request b)

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
