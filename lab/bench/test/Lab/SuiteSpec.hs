module Lab.SuiteSpec (spec) where

import Data.ByteString (ByteString)
import Lab.Suite (templateOfKeys)
import Redis.Cluster.Slot (keySlot)
import Test.Hspec
import Tool.Bench.Workload.Keys (keyOf, keyTemplate, newKeys)
import Tool.Bench.Workload.Syntax (parse)

spec :: Spec
spec = describe "Lab.Suite" $
  describe "keys like redis-benchmark's" $ do
    it "are in the same slots, one after the other" $ do
      let theirs = ["key:{06S}:000000003990", "key:{vu}}:000000012053", "key:{62n}:000000016456"]
      fmap (map keySlot . firstKeys 3) (templateOfKeys theirs) `shouldBe` Just (map keySlot theirs)

    it "are called as theirs where a tag has three letters" $
      fmap (firstKeys 2) (templateOfKeys ["key:{06S}:000000003990", "key:{62n}:000000016456"])
        `shouldBe` Just ["key:{06S}:000000000000", "key:{62n}:000000000000"]

    it "are not made of keys of another form" $
      map (templateOfKeys . (: [])) ["key:000000003990", "key:{06S}:0", "key:{06S}:000000003990:1", "{06S}:000000003990", ""]
        `shouldBe` replicate 5 Nothing

firstKeys :: Int -> String -> [ByteString]
firstKeys count template = case parse keyTemplate template of
  Right read' -> map (keyOf (newKeys 1 read' count)) [0 .. count - 1]
  Left problem -> error problem
