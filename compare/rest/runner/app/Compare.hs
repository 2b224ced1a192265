-- | Measures the services, and writes reports.
module Compare (main) where

import Compare.Run (runCommand)
import System.Environment (getArgs)
import Tool.Startup (unwindOnSignals)

main :: IO ()
main = unwindOnSignals >> getArgs >>= runCommand
