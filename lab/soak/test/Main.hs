module Main (main) where

import AuditSpec qualified
import Test.Hspec (hspec)

main :: IO ()
main = hspec AuditSpec.spec
