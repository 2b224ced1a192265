-- | Numbered databases in a cluster. Valkey has them since version 9; every other server refuses
-- them at once.
module DatabasesSpec (spec) where

import Control.Exception (displayException)
import Control.Monad (forM_, void)
import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Data.Foldable (traverse_)
import Data.List qualified as List
import FakeNode
import Redis
import Redis.Commands qualified as Redis
import Redis.TestKit.Cluster
import Redis.TestKit.Command (Reply (..))
import Redis.TestKit.Server (ServerOptions (..), serverDefaults)
import Redis.TestKit.Server qualified as Server
import Redis.TestKit.Wait
import Redis.Transaction qualified as Transaction
import Support
import Test.Hspec hiding (after, before)

spec :: Spec
spec = describe "a database with a number, in a cluster" $ do
  it "is used on every node by a server that has it, and refused at once with the reason by one that has not" . within 120 $ do
    has <- Server.withServer serverDefaults $ \server -> (/= List []) <$> Server.command server ["CONFIG", "GET", "cluster-databases"]
    -- If the server has such databases, the first number beyond its limit is refused in the same
    -- way.
    withCluster options {clusterServer = serverDefaults {optionsConfig = ["cluster-databases 4" | has]}} $ \cluster -> do
      if has then usedIn cluster else pure ()
      refusedBy cluster (if has then 4 else 1)

  it "is selected before anything else, on the connections to replicas, too" $
    limited . settled . withTwoNodes $ \a b -> do
      mapM_ (`setView` replicated a b) [a, b]
      withClient (setDatabase 3 (preferringReplicas [fakeEndpoint a])) $ \client -> do
        run client (Redis.get "key") `shouldReturn` Just (Char8.pack (show (fakePort b)))
        run client (Redis.set "key" "1")
        forM_ [(b, "GET"), (a, "SET")] $ \(node, name) -> do
          said <- heardOn node
          let onConnections = [[words' | (other, words') <- said, other == number] | (number, first : _) <- said, first == name]
          forM_ onConnections $ \conversation ->
            takeWhile ((/= [name]) . take 1) conversation `shouldSatisfy` elem ["SELECT", "3"]
  where
    options = clusterDefaults {clusterPrimaryCount = 3, clusterReplicasPerPrimary = 1, clusterNodeTimeout = 1500}

keys :: [ByteString]
keys = ["db:" <> Char8.pack (show n) | n <- [1 .. 60 :: Int]]

usedIn :: Cluster -> Expectation
usedIn cluster = do
  addresses <- clusterAddresses cluster
  let config = setRefreshInterval (seconds 0.5) (setMaxAttempts 1000 (setCommandTimeout (Just (seconds 15)) (liveConfig addresses)))
  withClient config $ \zero -> withClient (setDatabase 2 config) $ \two -> do
    forM_ [(zero, "zero"), (two, "two")] $ \(client, value) ->
      runPipeline client (traverse_ (\key -> pipelined (Redis.set key value)) keys)
    let reads' client change = runPipeline client (traverse (pipelined . change . Redis.get) keys)
    reads' zero id `shouldReturn` map (const (Just "zero")) keys
    reads' two id `shouldReturn` map (const (Just "two")) keys
    eventually 20 "it knows all six" ((== 6) . length <$> clientNodes two)
    eventually 10 "replicas read in the same database" $ (== map (const (Just "two")) keys) <$> reads' two (readFrom PreferReplica)
    -- Also on dedicated connections, in transactions, and for all nodes together.
    withDedicated two (AtKey "db:1") (`runOn` Redis.get "db:1") `shouldReturn` Just "two"
    Transaction.runTransaction two (Transaction.queued (Redis.append "db:1" "!")) `shouldReturn` 4
    run zero (Redis.get "db:1") `shouldReturn` Just "zero"
    run two Redis.dbsize `shouldReturn` 60
    -- A slot without keys moves: the client follows the MOVED and stays in its database.
    let moved = keyIn "db:moved:" (`notElem` map slotNumberOf keys)
        slot = slotNumberOf moved
    run two (Redis.get moved) `shouldReturn` Nothing
    home <- slotPrimary cluster slot
    target <- maybe (failure "a second primary") pure . List.find (/= home) . map fst =<< clusterPrimaries cluster
    migrateSlot cluster quietMigration slot target
    run two (Redis.set moved "two")
    run two (Redis.get moved) `shouldReturn` Just "two"
    run zero (Redis.get moved) `shouldReturn` Nothing
    -- All connections are lost, and later a primary dies.
    primaries <- map fst <$> clusterPrimaries cluster
    forM_ primaries $ \node -> Server.command (nodeServer node) ["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]
    reads' two id >>= (`shouldBe` map (const (Just "two")) (drop 1 keys)) . drop 1
    old <- killPrimary cluster (slotNumberOf "db:2")
    void (awaitNewPrimary cluster (slotNumberOf "db:2") old)
    reads' two id >>= (`shouldBe` map (const (Just "two")) (drop 1 keys)) . drop 1
    Server.restart (nodeServer old)
    awaitAgreement cluster

refusedBy :: Cluster -> Int -> Expectation
refusedBy cluster database = do
  addresses <- clusterAddresses cluster
  -- The timeout is longer than the test waits, so the refusal must come before it.
  withClient (setDatabase database (setCommandTimeout (Just (seconds 60)) (liveConfig addresses))) $ \client -> do
    problems <- within 5 $ do
      alone <- tryRun client (Redis.get "db:1")
      written <- tryRun client (void (Redis.incr "db:1"))
      together <- tryRun client (Redis.mget ("db:1" :| ["db:2"]))
      traverse expectError [void alone, void written, void together]
    forM_ problems $ \problem -> do
      errorDelivery problem `shouldBe` NotSent
      displayException problem `shouldSatisfy` \told -> any (`List.isInfixOf` told) ["SELECT is not allowed in cluster mode", "DB index is out of range"]
