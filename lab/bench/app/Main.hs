-- | The program @redis-client-lab@; see "Lab.Program".
module Main (main) where

import Lab.Program (runLab)
import System.Exit (exitWith)

main :: IO ()
main = runLab >>= exitWith
