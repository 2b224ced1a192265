module Compare.Ours.RuntimeSpec (spec) where

import Compare.Ours.Runtime
import GHC.RTS.Flags (GCFlags (..), getGCFlags)
import Test.Hspec

spec :: Spec
spec = describe "our own peer's runtime" $ do
  it "is told by the flags that are in force" $ do
    flags <- getGCFlags
    flagsText True 1 flags {minAllocAreaSize = 512, doIdleGC = False} `shouldBe` "-threaded -N1 -A2m -I0"
    flagsText False 2 flags {minAllocAreaSize = 384, doIdleGC = True} `shouldBe` "-N2 -A1536k"
  it "is asked for them" $
    runtimeFlags >>= (`shouldStartWith` "-threaded -N1 -A")
