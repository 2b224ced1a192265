module Redis.ScriptSpec (spec) where

import Data.ByteString.Char8 qualified as Char8
import Redis.Script
import Test.Hspec

-- | The test vectors of FIPS 180.
spec :: Spec
spec =
  describe "Redis.Script" $
    it "digests what the standard gives as it says" $
      mapM_
        (\(text, digest) -> scriptDigest (script text) `shouldBe` digest)
        [ ("", "da39a3ee5e6b4b0d3255bfef95601890afd80709"),
          ("abc", "a9993e364706816aba3e25717850c26c9cd0d89d"),
          ("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", "84983e441c3bd26ebaae4aa1f95129e5e54670f1"),
          (Char8.replicate 1000000 'a', "34aa973cd4c4daa4f61eeb2bdbad27316534016f")
        ]
