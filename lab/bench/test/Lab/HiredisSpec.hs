module Lab.HiredisSpec (spec) where

import Data.ByteString.Char8 qualified as Char8
import Lab.Gate.Table (HiredisForm (..), HiredisLoad (..), Sample (..))
import Lab.Hiredis
import Redis.Config (Endpoint (..), clusterConfig)
import Test.Hspec
import Tool.Connect (plainTarget, targetAt)
import Tool.Options.Bench (Operation (..))

spec :: Spec
spec = describe "Lab.Hiredis" $ do
  it "writes the values that the programs expect" $
    -- These values are from compare/PROTOCOL.md.
    map (Char8.take 16 . hiredisValue (hiredisLetters 512)) [0, 1, 42, 99999]
      `shouldBe` ["iotzlltwnhukplnl", "spaywnwxwrixajtf", "pwyhnzbvaxofspnd", "ujxopyaodnlnwprr"]

  it "asks for as many commands on their way as the program has" $ do
    let words' = hiredisArguments (plainTarget "s" 7) 1
        following name = drop 1 . dropWhile (/= name)
    [take 1 (following "--in-flight" (words' load)) <> take 1 (following "--style" (words' load)) | load <- [HiredisBatches OperationSet, HiredisWaiting 256, HiredisClusterWaiting]]
      `shouldBe` [["1024", "batch"], ["256", "wait"], ["256", "wait"]]
    take 1 (following "--operation" (words' (HiredisBatches OperationSet))) `shouldBe` ["set"]
    words' (HiredisWaiting 1) `shouldNotContain` ["--cluster"]
    hiredisArguments (targetAt (clusterConfig (pure (TcpEndpoint "s" 7)))) 1 HiredisClusterBatches `shouldContain` ["--cluster"]

  it "reads what was built, and what is absent" $ do
    readRow "{\"row\": \"hiredis\", \"version\": \"0.14.1\", \"origin\": \"Debian\", \"run\": [\"build/peer\"]}" `shouldBe` Right (Loop, Right ("0.14.1", ["build/peer"]))
    readRow "{\"row\": \"hiredis async\", \"absent\": \"needs libev\"}" `shouldBe` Right (Async, Left "needs libev")
    readRow "{\"row\": \"hedis\"}" `shouldSatisfy` either (const True) (const False)

  it "reads a run's figures, and calls one invalid that counted anything wrong" $ do
    let result wrong = "{\"total_ops\": 1000, \"cpu_ns\": 500000, \"ops_per_sec\": 2000.5, \"wrong\": " <> wrong <> ", \"misses\": 0, \"errors\": 0}"
    fmap (\found -> (sampleOps found, sampleCpu found, sampleProblems found)) (readHiredis (result "0")) `shouldBe` Right (2000.5, 500, [])
    fmap (length . sampleProblems) (readHiredis (result "3")) `shouldBe` Right 1
