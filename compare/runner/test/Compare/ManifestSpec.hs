module Compare.ManifestSpec (spec) where

import Compare.Manifest
import Test.Hspec

spec :: Spec
spec = describe "the manifest" $
  it "has no password and no place on this machine" $ do
    publicOptions ["--output", "/tmp/a", "--password", "secret", "--duration", "2", "--workload", "/tmp/w.json"] `shouldBe` ["--duration", "2", "--workload", "w.json"]
    publicOptions ["--output=/tmp/a", "--password=secret", "--tls"] `shouldBe` ["--tls"]
