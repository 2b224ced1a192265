-- | Runs the examples against servers of their own and reads what they print.
module Main (main) where

import AsOne qualified
import Blocking qualified
import CacheAside qualified
import Caching qualified
import Data.Foldable (for_)
import Data.List (isPrefixOf)
import Election qualified
import ErrorsAndRetries qualified
import InCluster qualified
import InDoubt qualified
import InGroup qualified
import Jobs qualified
import JsonValues qualified
import Limiter qualified
import Lock qualified
import Observing qualified
import Options qualified
import OwnCommand qualified
import OwnTypes qualified
import Pipelining qualified
import Printed
import Production qualified
import Quickstart qualified
import Reading qualified
import Redis.TestKit.Cluster
import Redis.TestKit.Command (Reply (..), request)
import Redis.TestKit.Group
import Redis.TestKit.Server
import Redis.TestKit.Wait (within)
import Scanning qualified
import Scripts qualified
import Semaphore qualified
import Sessions qualified
import Subscriptions qualified
import Test.Hspec
import Testing qualified
import Tour qualified
import Toured
import Transactions qualified
import Vectors qualified
import Worker qualified

main :: IO ()
main = hspec . around_ (within 60) $ do
  describe "on a server" . aroundAll (withServer serverDefaults) $ do
    it "the quick start stores, reads, counts and is told what went wrong" $ \server -> do
      printed <- linesOf Quickstart.main [serverUrl server]
      printed
        `shouldBe` [ "Just \"hello\"",
                     "(1,NeverExpires)",
                     "INCR greeting: server error: ERR value is not an integer or out of range",
                     "RefusedBeforeRun"
                   ]
    it "pipelining runs everything, three ways" $ \server -> do
      printed <- linesOf Pipelining.main [serverUrl server]
      printed `shouldBe` ["pipeline: 100 values", "submit: 2", "threads: 992 bytes", "load: 0 failed", "removed: 101"]
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
                     "JSON.GET example:document: server error: ERR unknown command 'JSON.GET'",
                     "JSON.GET example:document $"
                   ]
    it "values of one's own types are kept as JSON, and one that is not readable is an error that names its key" $ \server -> do
      printed <- linesOf JsonValues.main [serverUrl server]
      -- What is wrong with the value is said in aeson's words.
      map (takeWhile (/= '$')) printed `shouldBe` ["Just (User {name = \"Ada\", age = 36})", "GET example:user: unexpected reply: Error in "]
    it "a write in doubt is repeated, counted once by its number, or queued and done once" $ \server -> do
      printed <- linesOf InDoubt.main [serverUrl server]
      printed `shouldBe` ["[1,1,2]", "[True,False]"]
    it "keys have types, and commands run in the program's own monad" $ \server -> do
      printed <- linesOf OwnTypes.main [serverUrl server]
      printed `shouldBe` ["Just (User {name = \"Ada\", age = 36})", "\"GET example:email\"", "1"]
    it "a service answers its probe, and stops when it is told" $ \server -> do
      printed <- linesOf Production.main [serverUrl server]
      printed `shouldBe` replicate 4 "valid" <> ["True", "no more requests", "0"]
    it "transactions run together, and after a look" $ \server -> do
      printed <- linesOf Transactions.main [serverUrl server]
      printed `shouldBe` ["(1,Just \"Ada\")", "(\"not a number\",2)", "Committed 2", "Abandoned"]
    it "a lock lets in one at a time, and its fencing token keeps out who is late" $ \server -> do
      printed <- linesOf Lock.main [serverUrl server]
      printed `shouldBe` ["Just \"8\"", "True", "False", "Just (True,Just \"main\",Nothing)"]
    it "a semaphore lets in as many as it has permits" $ \server -> do
      printed <- linesOf Semaphore.main [serverUrl server]
      printed `shouldBe` ["True", "Just (Just (2,Nothing))"]
    it "a candidate leads when another steps down, in a greater term" $ \server -> do
      printed <- linesOf Election.main [serverUrl server]
      printed `shouldBe` ["Just \"first\"", "(True,True)"]
    it "a session begins at login and ends at logout" $ \server -> do
      printed <- linesOf Sessions.main [serverUrl server]
      printed `shouldBe` ["[401,200,200,200,401]"]
    it "limiters allow what they should" $ \server -> do
      printed <- linesOf Limiter.main [serverUrl server]
      printed
        `shouldBe` [ "[(True,2),(True,1),(True,0),(False,0)]",
                     "[(True,1),(False,1)]",
                     "(200,Just \"1\")",
                     "(200,Just \"0\")",
                     "(429,Just \"0\")"
                   ]
    it "a cache computes once, and keeps nothing stale" $ \server -> do
      printed <- linesOf CacheAside.main [serverUrl server]
      printed `shouldBe` ["(20,1)", "Just \"Grace\"", "(Just \"too old\",Just \"right\")"]
    it "walks see everything, also in two parts" $ \server -> do
      printed <- linesOf Scanning.main [serverUrl server]
      printed `shouldBe` ["2500 users", "3.0", "2500 users in two parts"]
    it "reads are kept until what they read has changed" $ \server -> do
      printed <- linesOf Caching.main [serverUrl server]
      printed `shouldBe` ["True", "Just \"blue\"", "(1,1)", "Just \"green\"", "[Just \"1\",Just \"2\"]", "Just \"green\""]
    it "subscriptions hear what is published, and what happens to keys" $ \server -> do
      printed <- linesOf Subscriptions.main [serverUrl server]
      printed
        `shouldBe` [ "example:news: it rains",
                     "example:user:7: came in",
                     "1 listens",
                     "example:other: hello",
                     "Just (KeyEvent {keyEventDatabase = 0, keyEventKey = \"example:key\", keyEventName = \"set\"})"
                   ]
    it "scripts go by their digests, and functions by their names" $ \server -> do
      printed <- linesOf Scripts.main [serverUrl server]
      printed `shouldBe` ["3", "[2,3]", "(6,False)", "Just \"6\"", "2"]
    it "a search among a thousand vectors finds what a comparison with each finds, where the server has vector sets" $ \server -> do
      printed <- linesOf Vectors.main [serverUrl server]
      newEnough <- withServerConnection server (`request` ["COMMAND", "INFO", "VADD"])
      printed
        `shouldBe` case newEnough of
          List [List (_ : _)] -> ["1000", "True", "True", "True", "(3,True)"]
          _ -> ["the server has no vector sets"]
    it "a worker handles what it can, and buries what it cannot" $ \server -> do
      printed <- linesOf Worker.main [serverUrl server]
      printed `shouldBe` ["[\"ada\",\"grace\"]", "[Just \"nobody\",Just \"user error (no such address)\",Just \"2\"]", "0"]
    it "jobs run at once, later, or fail, and a page tells" $ \server -> do
      printed <- linesOf Jobs.main [serverUrl server]
      printed
        `shouldBe` [ "True",
                     "(2,1)",
                     "(2,1)",
                     "Just (JobFailed,Just (0.5,\"written\"),Just \"user error (no such address)\")"
                   ]
    it "options are fields of a record" $ \server -> do
      printed <- linesOf Options.main [serverUrl server]
      printed `shouldBe` ["True", "False", "Just \"mine\""]
    it "hooks see connections and commands, and metrics what came of them" $ \server -> do
      printed <- linesOf Observing.main [serverUrl server]
      printed `shouldSatisfy` any ((== "connected") . takeWhile (/= ' '))
      printed `shouldSatisfy` any ("begin PIPELINE GET" `isPrefixOf`)
      printed `shouldSatisfy` any ("end LPUSH" `isPrefixOf`)
      printed `shouldSatisfy` elem "slow: BLPOP example:queue 0.060000"
      printed `shouldSatisfy` elem "# TYPE redis_client_round_trip_seconds histogram"
    describe "the tour" . for_ (toured <> [withoutCluster]) $ \(group, expected) ->
      it group $ \server -> do
        printed <- linesOf Tour.main [serverUrl server, group]
        printed `shouldBe` (group <> ":") : expected
    it "fields of hashes expire, where the server is new enough" $ \server -> do
      printed <- linesOf Tour.main [serverUrl server, "hashfields"]
      drop 2 printed `shouldSatisfy` (`elem` [newHashFields, oldHashFields])
  it "a service is tested by a script, a server of its own and a proxy" $ do
    printed <- linesOf Testing.main []
    printed `shouldBe` ["all as expected"]
  -- On a busy machine, a node must not count as failed.
  describe "in a cluster" . aroundAll (withCluster clusterDefaults {clusterNodeTimeout = 15000}) $ do
    it "keys go to their nodes, several at once too" $ \cluster -> do
      printed <- clusterUrl cluster >>= linesOf InCluster.main . pure
      take 3 printed
        `shouldBe` [ "[Just \"1\",Just \"2\",Just \"3\"]",
                     "Left (RefusedError (CrossSlot \"RENAME\"))",
                     "True"
                   ]
      length (drop 3 printed) `shouldSatisfy` (>= 2)
    it "reads go where they are told, and writes where they must" $ \cluster -> do
      printed <- clusterUrl cluster >>= linesOf Reading.main . pure
      printed `shouldBe` ["Just \"text\"", "True", "5", "5 nodes"]
    it "walks see everything on every node" $ \cluster -> do
      printed <- clusterUrl cluster >>= linesOf Scanning.main . pure
      printed `shouldBe` ["2500 users", "3.0", "2500 users in two parts"]
    it "the cluster answers as one" $ \cluster -> do
      printed <- clusterUrl cluster >>= linesOf AsOne.main . pure
      printed `shouldBe` ["True", "RefusedError (NeedsNode \"INFO\")", "True", "True", show (replicate 5 (True, True))]
    describe "the tour prints what it prints on a server" . for_ (toured <> [withCluster5]) $ \(group, expected) ->
      it group $ \cluster -> do
        url <- clusterUrl cluster
        printed <- linesOf Tour.main [url, group]
        printed `shouldBe` (group <> ":") : expected
  describe "in a group" $
    it "the primary is found by sentinels, and each server answers by its name" $
      withGroup groupDefaults {groupSentinelCount = 3} $ \group -> do
        printed <- sentinelUrl group >>= linesOf InGroup.main . pure
        printed `shouldBe` ["\"written\"", "1", "2", "True"]
  describe "the headers of modules" $
    it "show what the tour runs" headersAreToured
