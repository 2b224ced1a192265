-- | The program that compares; what it does is "Compare.Program".
module Main (main) where

import Compare.Program (runProgram)
import System.Exit (exitWith)

main :: IO ()
main = runProgram >>= exitWith
