-- | Measures the services, and reports.
module Compare (main) where

import Compare.Run (runCommand)
import System.Environment (getArgs)

main :: IO ()
main = getArgs >>= runCommand
