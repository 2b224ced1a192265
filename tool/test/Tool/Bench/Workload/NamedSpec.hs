-- | The named tests send what redis-benchmark sends, byte for byte, except for random parts.
module Tool.Bench.Workload.NamedSpec (spec) where

import Control.Monad (forM_)
import Data.ByteString (ByteString)
import Data.ByteString qualified as ByteString
import Data.ByteString.Char8 qualified as Char8
import Data.Char (isDigit)
import Data.List.NonEmpty (NonEmpty (..))
import Data.Text qualified as Text
import Recording (withRecording)
import Redis.Command (commandArguments)
import Redis.TestKit.Command (encodeRequest)
import Redis.TestKit.Server (serverDefaults, serverPort, withServer)
import System.Exit (ExitCode (..))
import System.Process (readProcessWithExitCode)
import Test.Hspec
import Tool.Bench.Workload
import Tool.Bench.Workload.Dataset (Shape (..), defaultShape)
import Tool.Bench.Workload.Keys (sizedTemplate)
import Tool.Bench.Workload.Named
import Tool.Bench.Workload.Template
import Tool.Bench.Workload.Values

-- | A size that nothing else has.
valueSize :: Int
valueSize = 37

-- | The bytes of a test's first operation, with values of this size.
ours :: Int -> String -> IO ByteString
ours size name = do
  workload <- either fail pure (makeWorkload Nothing shape ((1, TaskNamed name) :| []))
  stream <- newStream workload 0
  next workload stream >>= \case
    Drawn _ _ command -> pure (wire (commandArguments command))
    DrawnAlone _ _ -> fail "more than one command"
  where
    -- A line is one word.
    wire words'
      | name == "ping_inline" = mconcat words' <> "\r\n"
      | otherwise = encodeRequest words'
    shape = defaultShape {shapeKeys = 1000, shapeTemplate = sizedTemplate 1000 16, shapeSizes = SizeFixed size}

-- | The bytes with all random digits and values replaced by the same text.
neutral :: ByteString -> ByteString
neutral = Char8.unlines . map line . Char8.lines
  where
    line one
      | ByteString.length one == valueSize + 1 = Char8.replicate valueSize 'V' <> "\r"
      | otherwise = case Char8.span (not . isDigit) one of
        (start, digits)
          | Char8.length (Char8.takeWhile isDigit digits) == 12 -> start <> Char8.replicate 12 'N' <> Char8.drop 12 digits
        _ -> one

-- | The recorded bytes of each connection, without redis-benchmark's questions about settings.
theirs :: [ByteString] -> [ByteString]
theirs = filter (not . ByteString.null) . map withoutQuestions
  where
    -- It first asks for two settings, on a connection of its own or on the same one.
    withoutQuestions said = case Char8.breakSubstring "appendonly\r\n" said of
      (_, found) | not (ByteString.null found) -> ByteString.drop 12 found
      _ -> said

spec :: Spec
spec = describe "Tool.Bench.Workload.Named" $ do
  -- Some versions of redis-benchmark do not have XADD.
  it "sends what redis-benchmark sends for the test of the same name" $
    withServer serverDefaults $ \server ->
      forM_ (filter (/= "xadd") (concat [names | ("all", names) <- testGroups])) $ \name ->
        withRecording (serverPort server) $ \port said -> do
          (code, _, problem) <-
            readProcessWithExitCode
              "redis-benchmark"
              ["-p", show port, "-t", name, "-n", "1", "-c", "1", "-r", "1000", "-d", show valueSize, "-q"]
              ""
          (code, problem) `shouldBe` (ExitSuccess, "")
          wanted <- neutral <$> ours valueSize name
          -- An LPUSH precedes LRANGE in every test.
          sent <- map neutral . theirs <$> said
          (name, filter (wanted `ByteString.isSuffixOf`) sent) `shouldSatisfy` (not . null . snd)

  it "has a digest that is the script's" $ do
    (code, output, _) <- readProcessWithExitCode "sha1sum" [] (Char8.unpack setScript)
    (code, take 40 output) `shouldBe` (ExitSuccess, Char8.unpack setScriptDigest)

  it "loads a script that holds a value of the size" $
    forM_ [3, 30, 3000] $ \size -> do
      (_, value) <- Char8.breakSubstring "]==],[==[" <$> ours size "script-load"
      ByteString.length (Char8.takeWhile (/= ']') (ByteString.drop 9 value)) `shouldBe` size

  it "knows all tests that it names, and counts what the server will count" $
    forM_ namedTests $ \(name, _) -> do
      workload <- either fail pure (makeWorkload Nothing defaultShape {shapeKeys = 10} ((1, TaskNamed name) :| []))
      kinds workload `shouldBe` [Text.pack name]
      expectedStats workload 0 `shouldSatisfy` (not . null)
      countsComparable workload `shouldBe` True
