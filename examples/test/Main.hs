-- | Runs the examples against servers of their own and reads what they print.
module Main (main) where

import AsOne qualified
import Blocking qualified
import Data.Foldable (for_)
import ErrorsAndRetries qualified
import InCluster qualified
import Observing qualified
import Options qualified
import OwnCommand qualified
import Pipelining qualified
import Printed
import Quickstart qualified
import Redis.TestKit.Cluster
import Redis.TestKit.Server
import Scripts qualified
import System.Timeout (timeout)
import Test.Hspec
import Tour qualified
import Toured
import Transactions qualified

main :: IO ()
main = hspec . around_ withinAMinute $ do
  describe "on a server" . aroundAll (withServer defaultServerOptions) $ do
    it "the quick start stores, reads, counts and is told what went wrong" $ \server -> do
      printed <- linesOf Quickstart.main [serverUrl server]
      printed
        `shouldBe` [ "Just \"hello\"",
                     "(1,NeverExpires)",
                     "server error: ERR value is not an integer or out of range",
                     "RefusedBeforeRun"
                   ]
    it "pipelining runs everything, three ways" $ \server -> do
      printed <- linesOf Pipelining.main [serverUrl server]
      printed `shouldBe` ["pipeline: 100 values", "submit: 2", "threads: 992 bytes", "removed: 101"]
    it "a blocking command waits while others go on, and MULTI needs a connection of its own" $ \server -> do
      printed <- linesOf Blocking.main [serverUrl server]
      printed
        `shouldBe` [ "Right (Just (\"example:queue\",\"job 1\"))",
                     "Left (RefusedError (NeedsDedicatedConnection \"MULTI\"))",
                     "Array [Integer 7]"
                   ]
    it "errors say whether the command has run" $ \server -> do
      printed <- linesOf ErrorsAndRetries.main [serverUrl server]
      map (takeWhile (/= ':')) printed `shouldBe` ["the server would not run it", "it has not run", "NotSent"]
    it "commands of one's own are one line each" $ \server -> do
      printed <- linesOf OwnCommand.main [serverUrl server]
      printed
        `shouldBe` [ "2",
                     "server error: ERR unknown command 'JSON.GET'",
                     "JSON.GET example:document $"
                   ]
    it "transactions run together, and after a look" $ \server -> do
      printed <- linesOf Transactions.main [serverUrl server]
      printed `shouldBe` ["(1,Just \"Ada\")", "(\"not a number\",2)", "Committed 2", "Abandoned"]
    it "scripts go by their digests, and functions by their names" $ \server -> do
      printed <- linesOf Scripts.main [serverUrl server]
      printed `shouldBe` ["3", "[2,3]", "Just \"6\"", "2"]
    it "options are fields of a record" $ \server -> do
      printed <- linesOf Options.main [serverUrl server]
      printed `shouldBe` ["True", "False", "Just \"mine\""]
    it "hooks see connections and commands" $ \server -> do
      printed <- linesOf Observing.main [serverUrl server]
      map (takeWhile (/= ',')) (drop 3 printed) `shouldSatisfy` elem "GET: 2"
      printed `shouldSatisfy` any ((== "connected") . takeWhile (/= ' '))
    describe "the tour" . for_ (toured <> [withoutCluster]) $ \(group, expected) ->
      it group $ \server -> do
        printed <- linesOf Tour.main [serverUrl server, group]
        printed `shouldBe` (group <> ":") : expected
    it "fields of hashes expire, where the server is new enough" $ \server -> do
      printed <- linesOf Tour.main [serverUrl server, "hashfields"]
      drop 2 printed `shouldSatisfy` (`elem` [newHashFields, oldHashFields])
  -- A busy machine must not make a node count as failed.
  describe "in a cluster" . aroundAll (withCluster defaultClusterOptions {clusterNodeTimeout = 15000}) $ do
    it "keys go to their nodes, several at once too" $ \cluster -> do
      printed <- clusterUrl cluster >>= linesOf InCluster.main . pure
      take 3 printed
        `shouldBe` [ "[Just \"1\",Just \"2\",Just \"3\"]",
                     "Left (RefusedError (CrossSlot \"RENAME\"))",
                     "True"
                   ]
      length (drop 3 printed) `shouldSatisfy` (>= 2)
    it "the cluster answers as one" $ \cluster -> do
      printed <- clusterUrl cluster >>= linesOf AsOne.main . pure
      printed `shouldBe` ["True", "RefusedError (NeedsNode \"INFO\")", "True", "True", show (replicate 5 (True, True))]
    describe "the tour prints what it prints on a server" . for_ (toured <> [withCluster5]) $ \(group, expected) ->
      it group $ \cluster -> do
        url <- clusterUrl cluster
        printed <- linesOf Tour.main [url, group]
        printed `shouldBe` (group <> ":") : expected
  describe "the headers of modules" $
    it "show what the tour runs" headersAreToured

withinAMinute :: IO () -> IO ()
withinAMinute test = do
  ended <- timeout 60000000 test
  maybe (expectationFailure "took longer than a minute") pure ended
