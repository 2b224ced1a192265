-- | All tests of the laboratory's program. When a test starts this process again, it runs the
-- program.
module Main (main) where

import Lab.DifferentialSpec qualified
import Lab.Gate.DocumentSpec qualified
import Lab.GateSpec qualified
import Lab.HiredisSpec qualified
import Lab.OptionsSpec qualified
import Lab.Program (runLab)
import Lab.ProgramSpec qualified
import Lab.SuiteSpec qualified
import Redis.TestKit.Wait (testWithin)
import System.Environment (lookupEnv)
import System.Exit (exitWith)
import Test.Hspec (around_, hspec)
import Tool.Startup (useUtf8)

main :: IO ()
main =
  lookupEnv Lab.ProgramSpec.actAsProgram >>= \case
    Just _ -> runLab >>= exitWith
    Nothing -> (useUtf8 >>) . hspec . around_ (testWithin 120) $ do
      Lab.OptionsSpec.spec
      Lab.SuiteSpec.spec
      Lab.GateSpec.spec
      Lab.Gate.DocumentSpec.spec
      Lab.HiredisSpec.spec
      Lab.DifferentialSpec.spec
      Lab.ProgramSpec.spec
