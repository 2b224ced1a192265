module Main (main) where

import PlainSpec qualified
import Test.Hspec (hspec)
import TlsSpec qualified

main :: IO ()
main = hspec (PlainSpec.spec *> TlsSpec.spec)
