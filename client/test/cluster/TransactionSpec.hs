-- | Transactions at nodes whose replies a real node does not send on demand.
module TransactionSpec (spec) where

import Control.Concurrent (threadDelay)
import Control.Concurrent.Async (replicateConcurrently_, withAsync)
import Control.Concurrent.STM
import Control.Exception (try)
import Control.Monad (forM_, forever)
import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Data.Either (fromLeft)
import Data.Map.Strict (Map)
import Data.Map.Strict qualified as Map
import FakeNode
import GHC.Clock (getMonotonicTime)
import Redis
import Redis.Commands qualified as Redis
import Redis.TestKit.Command (Reply (..))
import Redis.Transaction
import Support
import Test.Hspec hiding (after, before)

spec :: Spec
spec = describe "a transaction" $ do
  it "goes in one piece, whatever others do on the connection" $
    limited . settled . withNode $ \node client ->
      withAsync (replicateConcurrently_ 16 (forever (run client (Redis.get key)))) $ \_ -> do
        forM_ [1 .. 200 :: Int] $ \_ -> runTransaction client visit `shouldReturn` (1, Just "v")
        -- The names of the commands, in the order in which they came on the connection.
        names <- map (take 1) <$> heard node
        length (filter (== ["MULTI"]) names) `shouldBe` 200
        length (positions [["MULTI"], ["INCR"], ["GET"], ["EXEC"]] names) `shouldBe` 200

  it "follows MOVED, said of what was to be queued, with all of it" $
    limited . settled . withTwo $ \a b client -> do
      refuseAtQueue a [moved b]
      runTransaction client visit `shouldReturn` (1, Just "v")
      ran b `shouldReturn` [["MULTI"], ["INCR", key], ["GET", key], ["EXEC"]]

  -- Nobody awaits the replies to what is queued.
  it "behind WATCH follows MOVED, said of what was to be queued, too" $
    limited . settled . withTwo $ \a b client -> do
      refuseAtQueue a (replicate 100 (moved b))
      watching client (key :| []) (\_ -> pure (Commit visit)) `shouldReturn` Committed (1, Just "v")
      ran b `shouldReturn` [["MULTI"], ["INCR", key], ["GET", key], ["EXEC"]]

  it "follows MOVED, said to EXEC, with all of it" $
    limited . settled . withTwo $ \a b client -> do
      refuseAtExec a (moved b)
      runTransaction client visit `shouldReturn` (1, Just "v")
      ran b `shouldReturn` [["MULTI"], ["INCR", key], ["GET", key], ["EXEC"]]

  it "is sent again, and the map asked for, when EXEC names a reason to discard it" $
    limited . settled . withTwo $ \a b client -> do
      refuseAtExec a (Failed "EXECABORT Transaction discarded because of: READONLY You can't write against a read only replica.")
      runTransaction client visit `shouldReturn` (1, Just "v")
      length . filter (== ["EXEC"]) <$> ((<>) <$> heard a <*> heard b) `shouldReturn` 2

  it "follows ASK with ASKING ahead of it, in one piece" $
    limited . settled . withTwo $ \a b client -> do
      refuseAtQueue a [Failed (Char8.unwords ["ASK", slotText, fakeAddress b])]
      runTransaction client visit `shouldReturn` (1, Just "v")
      ran b `shouldReturn` [["ASKING"], ["MULTI"], ["INCR", key], ["GET", key], ["EXEC"]]

  it "is sent again while the server says TRYAGAIN" $
    limited . settled . withNode $ \node client -> do
      refuseAtQueue node (replicate 2 (Failed "TRYAGAIN Multiple keys request during rehashing of slot"))
      runTransaction client visit `shouldReturn` (1, Just "v")
      countHeard node ["EXEC"] `shouldReturn` 3

  it "of which a command cannot be queued fails with what was said of that, and did nothing" $
    limited . settled . withNode $ \node client -> do
      refuseAtQueue node [Failed "ERR wrong number of arguments for 'incr' command"]
      failed <- tryRunTransaction client visit >>= expectError
      failed `shouldBe` ReplyError (ServerError "ERR" "wrong number of arguments for 'incr' command" RefusedBeforeRun ("transaction, command 1 of 2 (INCR " <> key <> ")"))
      countHeard node ["EXEC"] `shouldReturn` 1

  it "in which the server finds keys of several slots is refused as if this client had found them" $
    limited . settled . withNode $ \node client -> do
      refuseAtQueue node [Failed "CROSSSLOT Keys in request don't hash to the same slot"]
      failed <- tryRunTransaction client visit >>= expectError
      failed `shouldBe` RefusedError (CrossSlot "MULTI")

  it "whose EXEC is not answered is in doubt, and is not sent again" $
    limited . settled . withNode $ \node client -> do
      setScript node =<< hangingUp 1 "EXEC" =<< serving
      failed <- tryRunTransaction client visit >>= expectError
      errorDelivery failed `shouldBe` MaybeExecuted
      run client (Redis.get key) `shouldReturn` Just "v"
      countHeard node ["EXEC"] `shouldReturn` 1

  it "whose EXEC is not answered is sent again if each of its commands may be" $
    limited . settled . withNode $ \node client -> do
      setScript node =<< hangingUp 1 "EXEC" =<< serving
      runTransaction client (queued (idempotent (Redis.incr key)) *> queued (Redis.get key)) `shouldReturn` Just "v"
      countHeard node ["EXEC"] `shouldReturn` 2

  it "whose MULTI was refused is in doubt: what followed ran as it came" $
    limited . settled . withNode $ \node client -> do
      serve <- serving
      setScript node $ \connection -> \case
        "MULTI" : _ -> pure (Just (Say (Failed "NOPERM this user has no permissions to run the 'multi' command")))
        words' -> serve connection words'
      failed <- tryRunTransaction client visit >>= expectError
      failed `shouldSatisfy` \case
        ReplyError ServerError {serverErrorCode = "NOPERM", serverErrorDelivery = MaybeExecuted} -> True
        _ -> False
      countHeard node ["EXEC"] `shouldReturn` 1

  it "is sent again on a new connection if the server, which has forgotten who asks, turned all of it away" $
    limited . settled . withNode $ \node client -> do
      run client (Redis.get key) `shouldReturn` Just "v"
      latest <- foldr (max . fst) 0 <$> heardOn node
      serve <- serving
      setScript node $ \connection words' ->
        if connection <= latest && isPart words' then pure (Just (Say unauthenticated)) else serve connection words'
      runTransaction client visit `shouldReturn` (1, Just "v")
      countHeard node ["EXEC"] `shouldReturn` 2

  it "on a lent connection is not in doubt if the server turned all of it away" $
    limited . settled . withNode $ \node client -> do
      setScript node (\_ words' -> pure (if isPart words' then Just (Say unauthenticated) else Nothing))
      failed <- try (watching client (key :| []) (\_ -> pure (Commit visit))) >>= expectError
      failed `shouldBe` ReplyError (ServerError "NOAUTH" "Authentication required." RefusedBeforeRun ("transaction (INCR " <> key <> ", GET " <> key <> ")"))

  it "waits for a node, and keeps its place before what is submitted after it" $
    limited . settled . withFakeNode $ \node -> do
      setScript node =<< serving
      setView node (List [])
      withClient (clusterOf [fakeEndpoint node]) $ \client -> do
        first <- submitTransaction client visit
        second <- submit client (Redis.set key "w")
        setView node (shardsView [shard allSlots node])
        awaitReply first `shouldReturn` (1, Just "v")
        awaitReply second `shouldReturn` ()
        names <- filter (`elem` [["EXEC"], ["SET"]]) . map (take 1) <$> heard node
        names `shouldBe` [["EXEC"], ["SET"]]

  it "is refused before anything is sent if its keys have several slots, or a command cannot stand in it" $
    limited . settled . withNode $ \node client -> do
      run client (Redis.get key) `shouldReturn` Just "v"
      let refusalOf transaction = fromLeft ClientClosed <$> tryRunTransaction client transaction
      refusalOf (queued (Redis.get "a") *> queued (Redis.get "b")) `shouldReturn` RefusedError (CrossSlot "MULTI")
      forM_
        [(raw ["SELECT", "1"], "SELECT"), (raw ["MULTI"], "MULTI"), (raw ["NOSUCH", key], "NOSUCH"), (raw ["DBSIZE"], "DBSIZE"), (raw ["INFO"], "INFO"), (onNode (fakeEndpoint node) (raw ["PING"]), "PING")]
        $ \(command, name) -> refusalOf (queued command) `shouldReturn` RefusedError (NotInTransaction name)
      countHeard node ["MULTI"] `shouldReturn` 0

  it "behind WATCH is refused like any other, and if its keys have another slot than the watched ones" $
    limited . settled . withNode $ \node client -> do
      let watched transaction = try (watching client (key :| []) (\_ -> pure (Commit transaction))) >>= expectError
      watched (queued (Redis.get "other")) `shouldReturn` RefusedError (CrossSlot "MULTI")
      watched (queued (Redis.get key) *> queued (Redis.get "other")) `shouldReturn` RefusedError (CrossSlot "MULTI")
      forM_ ["DBSIZE", "FLUSHALL", "INFO"] $ \name ->
        watched (queued (raw [name])) `shouldReturn` RefusedError (NotInTransaction name)
      countHeard node ["WATCH"] `shouldReturn` 5
      countHeard node ["MULTI"] `shouldReturn` 0
      watching client (key :| []) (\_ -> pure (Commit visit)) `shouldReturn` Committed (1, Just "v")

  describe "under conditions" $ do
    it "has them compared by EXEC, tells whether they held, and asks the server once whether it knows them" $
      limited . settled . withNode $ \node client -> do
        held <- newTVarIO True
        setScript node =<< comparing (-1) (readTVarIO held)
        let every = ExecIfEqual key "7" :| [ExecIfNotEqual key "8", ExecIfAbsent "{u}none", ExecIfPresent key]
        runTransactionIf client every visit `shouldReturn` Just (1, Just "v")
        runTransactionIf client (ExecIfPresent key :| []) (pure 'x') `shouldReturn` Just 'x'
        atomically (writeTVar held False)
        (submitTransactionIf client (ExecIfAbsent key :| []) visit >>= awaitReply) `shouldReturn` Nothing
        filter ((== ["EXEC"]) . take 1) <$> heard node
          `shouldReturn` [ ["EXEC", "IFEQ", key, "7", "IFNE", key, "8", "NX", "{u}none", "XX", key],
                           ["EXEC", "XX", key],
                           ["EXEC", "NX", key]
                         ]
        countHeard node ["COMMAND"] `shouldReturn` 1

    it "is refused, unsent, by the version of a server that knows none, until the server is newer" $
      limited . settled . withNode $ \node client -> do
        setScript node =<< comparing 1 (pure True)
        tryRunTransactionIf client (ExecIfPresent key :| []) visit `shouldReturn` Left (RefusedError (Unsupported "EXEC with conditions" "Redis 7.0.15"))
        countHeard node ["MULTI"] `shouldReturn` 0
        setScript node =<< comparing (-1) (pure True)
        runTransactionIf client (ExecIfPresent key :| []) visit `shouldReturn` Just (1, Just "v")

    it "is not sent again when EXEC is not answered, though each of its commands may be" $
      limited . settled . withNode $ \node client -> do
        setScript node =<< hangingUp 1 "EXEC" =<< comparing (-1) (pure True)
        failed <- tryRunTransactionIf client (ExecIfPresent key :| []) (queued (idempotent (Redis.incr key))) >>= expectError
        errorDelivery failed `shouldBe` MaybeExecuted
        countHeard node ["EXEC"] `shouldReturn` 1

    it "has one time limit, which includes the question" $
      limited . settled . withFakeNode $ \node -> do
        serve <- comparing (-1) (pure True)
        setScript node $ \connection words' -> case words' of
          "COMMAND" : _ -> threadDelay 700000 *> serve connection words'
          "EXEC" : _ -> pure (Just Silence)
          _ -> serve connection words'
        withClient (setCommandTimeout (Just (seconds 1)) (clusterOf [fakeEndpoint node])) $ \client -> do
          begun <- getMonotonicTime
          _ <- tryRunTransactionIf client (ExecIfPresent key :| []) visit >>= expectError
          ended <- getMonotonicTime
          countHeard node ["EXEC"] `shouldReturn` 1
          ended - begun `shouldSatisfy` (< 1.5)

    it "goes where their keys are, which must share the slot of the others" $
      limited . settled . withTwo $ \a b client -> do
        forM_ [a, b] $ \node -> setScript node =<< comparing (-1) (pure True)
        runTransactionIf client (ExecIfPresent key :| []) visit `shouldReturn` Just (1, Just "v")
        tryRunTransactionIf client (ExecIfPresent "other" :| []) visit `shouldReturn` Left (RefusedError (CrossSlot "MULTI"))

  it "of no commands asks nobody" $
    limited . settled . withNode $ \node client -> do
      runTransaction client (pure 'x') `shouldReturn` 'x'
      countHeard node ["MULTI"] `shouldReturn` 0
  where
    key = "{u}visits"
    slotText = Char8.pack (show (slotNumberOf key))
    moved node = Failed (Char8.unwords ["MOVED", slotText, fakeAddress node])
    visit = (,) <$> queued (Redis.incr key) <*> queued (Redis.get key)

    withNode action = withFakeNode $ \node -> do
      setScript node =<< serving
      withClient (clusterOf [fakeEndpoint node]) (action node)

    withTwo action = withTwoNodes $ \a b -> do
      setScript a =<< serving
      setScript b =<< serving
      withClient (clusterOf [fakeEndpoint a]) (action a b)

    isPart words' = take 1 words' `elem` [["MULTI"], ["INCR"], ["GET"], ["EXEC"]]
    unauthenticated = Failed "NOAUTH Authentication required."

    -- The commands of the transaction that the node received, in order.
    ran node = filter (\words' -> any (`elem` take 1 words') ["ASKING", "MULTI", "INCR", "GET", "EXEC"]) <$> heard node

    refuseAtQueue node refusals = do
      left <- newTVarIO refusals
      setScript node =<< servingBut (\_ -> atomically (stateTVar left (\all' -> (fst <$> uncons' all', drop 1 all'))))
    refuseAtExec node refusal = do
      serve <- serving
      told <- newTVarIO False
      setScript node $ \connection words' -> do
        now <- if take 1 words' == ["EXEC"] then atomically (not <$> swapTVar told True) else pure False
        if now then Just (Say refusal) <$ serve connection ["DISCARD"] else serve connection words'

    uncons' = \case
      one : rest -> Just (one, rest)
      [] -> Nothing

-- | A server with transactions, including the replies to INCR and GET between MULTI and EXEC.
serving :: IO Script
serving = servingBut (const (pure Nothing))

-- | Like 'serving', but EXEC has this arity, and its conditions hold or not.
comparing :: Integer -> IO Bool -> IO Script
comparing arity holds = do
  serve <- serving
  pure $ \connection -> \case
    ["COMMAND", "INFO", "EXEC"] -> pure (Just (Say (List [description])))
    ["INFO", "server"] -> pure (Just (Say (Text "# Server\r\nredis_version:7.0.15\r\n")))
    "EXEC" : _ : _ ->
      holds >>= \case
        True -> serve connection ["EXEC"]
        False -> Just (Say Nil) <$ serve connection ["DISCARD"]
    words' -> serve connection words'
  where
    description = List [Text "exec", Number (fromIntegral arity), List [Status "noscript"], Number 0, Number 0, Number 0, List [Status "@slow", Status "@transaction"], List [], List [], List []]

-- | Like 'serving', but the argument decides the reply to a command that is to be queued.
servingBut :: (ByteString -> IO (Maybe Reply)) -> IO Script
servingBut atQueue = do
  -- For each connection in MULTI: the replies of EXEC, the last first, or 'Nothing' if a command
  -- was refused.
  begun <- newTVarIO (Map.empty :: Map Int (Maybe [Reply]))
  pure $ \connection words' -> do
    queue <- Map.lookup connection <$> readTVarIO begun
    let become state = atomically (modifyTVar' begun (Map.alter (const state) connection))
        say = pure . Just . Say
    case (words', queue) of
      (["MULTI"], _) -> become (Just (Just [])) *> say (Status "OK")
      (["DISCARD"], _) -> become Nothing *> say (Status "OK")
      (["EXEC"], Just (Just replies)) -> become Nothing *> say (List (reverse replies))
      (["EXEC"], Just Nothing) -> become Nothing *> say (Failed "EXECABORT Transaction discarded because of previous errors.")
      (["EXEC"], Nothing) -> say (Failed "ERR EXEC without MULTI")
      ("INCR" : key : _, Just replies) ->
        atQueue key >>= \case
          Just refusal -> become (Just Nothing) *> say refusal
          Nothing -> become (Just ((Number 1 :) <$> replies)) *> say (Status "QUEUED")
      ("GET" : _, Just replies) -> become (Just ((Text "v" :) <$> replies)) *> say (Status "QUEUED")
      ("GET" : _, Nothing) -> say (Text "v")
      _ -> pure Nothing

-- | The positions at which the first list stands within the second.
positions :: Eq a => [a] -> [a] -> [Int]
positions wanted list = [position | position <- [0 .. length list - length wanted], take (length wanted) (drop position list) == wanted]
