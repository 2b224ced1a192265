-- | The whole program, as a process, with real servers.
module Lab.ProgramSpec (spec, actAsProgram) where

import Control.Monad (when)
import Data.Aeson (Value, eitherDecodeStrict', encode)
import Data.Aeson.Types (Parser, parseEither, withObject, (.:))
import Data.ByteString qualified as ByteString
import Data.ByteString.Lazy qualified as Lazy
import Data.Foldable (for_)
import Data.List (isInfixOf)
import Data.Text (Text)
import Data.Text qualified as Text
import Lab.Gate.Document (measuredValue)
import Lab.Gate.DocumentSpec (measured)
import System.Environment (getEnvironment, getExecutablePath)
import System.Exit (ExitCode (..))
import System.FilePath ((</>))
import System.IO.Temp (withSystemTempDirectory)
import System.Process (CreateProcess (env), proc, readCreateProcessWithExitCode)
import Test.Hspec

-- | An environment variable that makes a process of these tests run the program instead of the
-- tests.
actAsProgram :: String
actAsProgram = "REDIS_CLIENT_LAB_TEST_ACTS_AS_PROGRAM"

run' :: [String] -> IO (ExitCode, String, String)
run' arguments = do
  self <- getExecutablePath
  inherited <- getEnvironment
  readCreateProcessWithExitCode (proc self arguments) {env = Just ((actAsProgram, "1") : inherited)} ""

-- | The test, the verdict, and for both sides the rate and the server's share of its core.
differentialRows :: Value -> Parser [(Text, (Text, [(Double, Double)]))]
differentialRows = withObject "document" $ \whole ->
  whole .: "differential" >>= withObject "differential" (\found -> found .: "rows" >>= mapM row)
  where
    row = withObject "row" $ \fields -> do
      sides <- mapM (fields .:) ["ours", "redis_benchmark"]
      (,) <$> fields .: "test" <*> ((,) <$> fields .: "verdict" <*> mapM side sides)
    side = withObject "side" $ \fields -> (,) <$> fields .: "ops_per_sec" <*> fields .: "server_busy"

spec :: Spec
spec = describe "the program" $ do
  it "holds figures against those of redis-benchmark, and ends as the verdicts say" $
    withSystemTempDirectory "lab-spec" $ \folder -> do
      let file = folder </> "out.json"
      (code, output, _) <- run' ["differential", "--test", "get,incr", "--iterations", "1", "--duration", "0.8", "--json", file]
      found <- ByteString.readFile file >>= either fail pure . eitherDecodeStrict' >>= either fail pure . parseEither differentialRows
      map fst found `shouldBe` ["get", "incr"]
      for_ found $ \(_, (verdict, sides)) ->
        for_ sides $ \(rate, busy) -> do
          output `shouldSatisfy` (Text.unpack verdict `isInfixOf`)
          -- A run is invalid on a machine that gives it no processor time.
          when (verdict /= "INVALID") $ do
            rate `shouldSatisfy` (> (0 :: Double))
            busy `shouldSatisfy` (\share -> share > 0 && share < (1.2 :: Double))
      let verdicts = map (fst . snd) found
      code
        `shouldBe` if "INVALID" `elem` verdicts
          then ExitFailure 2
          else if any (\verdict -> "DIFFERS" == verdict || "MISCOUNTS" `Text.isPrefixOf` verdict) verdicts then ExitFailure 1 else ExitSuccess

  it "finds that each says what the server counted" $ do
    (code, output, problem) <- run' ["differential", "--test", "get", "--iterations", "1", "--duration", "1", "--counts-only"]
    (code, problem) `shouldSatisfy` ((== ExitSuccess) . fst)
    output `shouldSatisfy` ("as the server counted" `isInfixOf`)

  it "shows runs of the gate that were kept, beside each other" $
    withSystemTempDirectory "lab-spec" $ \folder -> do
      let file = folder </> "gate.json"
      Lazy.writeFile file (encode (measuredValue (measured [])))
      (code, output, _) <- run' ["gate", "--render", file, file, file]
      -- The memory of this third run has doubled.
      code `shouldBe` ExitFailure 1
      output `shouldSatisfy` ("run 3" `isInfixOf`)

  it "says in one line what it cannot read" $
    withSystemTempDirectory "lab-spec" $ \folder -> do
      writeFile (folder </> "gate.json") "{}"
      (code, _, problem) <- run' ["gate", "--render", folder </> "gate.json"]
      code `shouldBe` ExitFailure 2
      lines problem `shouldSatisfy` \text -> length text == 1 && all ("redis-client-lab: " `isInfixOf`) text

  it "is the program that it measures" $ do
    (code, output, _) <- run' ["bench", "schema"]
    code `shouldBe` ExitSuccess
    output `shouldSatisfy` ("redis-client-bench/1" `isInfixOf`)
