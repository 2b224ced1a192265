module Compare.PairSpec (spec) where

import Compare.Options (Mode (..), modeParser)
import Compare.Pair
import Data.Aeson (Value (..))
import Data.IORef (modifyIORef', newIORef, readIORef)
import Options.Applicative (defaultPrefs, execParserPure, getParseResult, info)
import System.Exit (ExitCode (..))
import System.FilePath ((</>))
import System.IO.Temp (withSystemTempDirectory)
import Test.Hspec

spec :: Spec
spec = describe "the comparison of two" $
  it "overwrites no result" . withSystemTempDirectory "pair" $ \folder -> do
    let output = folder </> "comparison.json"
        parsed words' = getParseResult (execParserPure defaultPrefs (info modeParser mempty) (words' <> ["--compare", folder, "--output", output]))
    writeFile output "[]"
    said <- newIORef []
    let announce line = modifyIORef' said (line :)
        options = [action | Just mode <- [parsed ["pair"], parsed ["sweep"]], action <- actions announce mode]
    codes <- sequence options
    codes `shouldBe` [ExitFailure 2, ExitFailure 2]
    readFile output `shouldReturn` "[]"
    readIORef said `shouldReturn` replicate 2 (output <> " is there already and is not overwritten; give another --output")
  where
    actions announce = \case
      ComparePair options -> [comparePair announce (const Null) options]
      Sweep options -> [sweep announce (const Null) options]
      CompareClients _ -> []
