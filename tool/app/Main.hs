-- | The program @redis-client@; see "Tool.Program".
module Main (main) where

import System.Exit (exitWith)
import Tool.Program (runProgram)

main :: IO ()
main = runProgram >>= exitWith
