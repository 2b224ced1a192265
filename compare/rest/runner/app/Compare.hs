-- | Measures the services, and writes reports.
module Compare (main) where

import Compare.Run (runCommand)
import System.Environment (getArgs)
import Tool.Signals (unwindOnSignals)

main :: IO ()
main = unwindOnSignals >> getArgs >>= runCommand
