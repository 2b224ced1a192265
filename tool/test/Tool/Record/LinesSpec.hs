-- | Lines out of pieces.
module Tool.Record.LinesSpec (spec) where

import Control.Exception (evaluate)
import Data.ByteString (ByteString)
import Data.ByteString qualified as ByteString
import Data.ByteString.Char8 qualified as Char8
import Data.List (foldl')
import System.Mem (getAllocationCounter)
import Test.Hspec hiding (after, before)
import Test.Hspec.QuickCheck (prop)
import Test.QuickCheck
import Tool.Record.Wire

-- | All complete lines, and what the pieces leave over when a line end follows them.
together :: [ByteString] -> [ByteString]
together pieces = case foldl' one ([], unfinished) (pieces <> ["\n"]) of
  (complete, _) -> Char8.lines (ByteString.concat (reverse complete))
  where
    one (earlier, begun) piece = let (complete, rest) = feed begun piece in (complete : earlier, rest)

spec :: Spec
spec = describe "Tool.Record.Wire: lines" $ do
  prop "are the same however the bytes are cut" $
    forAll (listOf (ByteString.pack <$> listOf (elements [10, 65, 66]))) $ \pieces ->
      together pieces === Char8.lines (ByteString.concat pieces <> "\n")

  it "cost no more than twice their bytes, in a thousand pieces too" $ do
    let piece = Char8.replicate 65536 'x'
    early <- getAllocationCounter
    size <- evaluate (sum (map ByteString.length (together (replicate 1000 piece))))
    late <- getAllocationCounter
    size `shouldBe` 65536000
    -- The bytes, and a copy of them.
    (early - late) `shouldSatisfy` (< 3 * 65536000)
