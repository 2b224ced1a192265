-- | The program that compares clients; see "Compare.Program".
module Main (main) where

import Compare.Program (runProgram)
import System.Exit (exitWith)

main :: IO ()
main = runProgram >>= exitWith
