-- | Measures the services, and writes reports.
module Compare (main) where

import Compare.Run (runCommand)
import System.Environment (getArgs)
import Tool.Sigterm (unwindOnSigterm)

main :: IO ()
main = unwindOnSigterm >> getArgs >>= runCommand
