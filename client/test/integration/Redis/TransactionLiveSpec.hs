-- | Transactions on a real server.
module Redis.TransactionLiveSpec (spec) where

import Control.Concurrent.Async (forConcurrently, replicateConcurrently)
import Control.Monad (forM_, replicateM_)
import Data.Bifunctor (first)
import Data.ByteString.Char8 qualified as Char8
import Data.Foldable (asum)
import Data.Int (Int64)
import Data.List (nub, sort)
import Data.Map.Strict qualified as Map
import Data.Maybe (fromMaybe)
import Redis
import Redis.Commands qualified as Redis
import Redis.Metrics
import Redis.TestKit.Command (CommandCalls (..))
import Redis.TestKit.Server (Server, commandStatistics, serverDefaults, serverHost, serverPort, withServer)
import Redis.TestKit.Wait (within)
import Redis.Transaction
import Test.Hspec

spec :: Spec
spec = around_ (within 60) . describe "transactions" $ do
  forM_ [OnlyResp2, PreferResp3] $ \protocol -> describe ("with " <> show protocol) $ do
    it "bring the results of their commands, typed as outside" $
      withClientOf protocol $ \_ client -> do
        run client (Redis.set "name" "ada")
        runTransaction client ((,,,) <$> queued (Redis.incr "visits") <*> queued (Redis.get "name") <*> queued (Redis.get "none") <*> queued (Redis.lrange "list" 0 (-1)))
          `shouldReturn` (1, Just "ada", Nothing, [])

    it "in which a command fails tell of each, and the others have run" $
      withClientOf protocol $ \_ client -> do
        run client (Redis.set "name" "ada")
        let both first other = (,) <$> first (Redis.incr "name") <*> other (Redis.incr "visits")
            notANumber count delivery =
              ReplyError (ServerError "ERR" "value is not an integer or out of range" delivery ("transaction, command 1 of " <> count <> " (INCR name)"))
        runTransaction client (both tryQueued queued) `shouldReturn` (Left (notANumber "2" RefusedBeforeRun), 1)
        -- The transaction has run in part.
        tryRunTransaction client (both queued queued) `shouldReturn` Left (notANumber "2" MaybeExecuted)
        -- This transaction has not run at all.
        tryRunTransaction client (queued (Redis.incr "name")) `shouldReturn` Left (notANumber "1" RefusedBeforeRun)
        run client (Redis.get "visits") `shouldReturn` Just "2"

    forM_ ["MOVED", "ASK"] $ \code ->
      it ("whose script writes and then says " <> Char8.unpack code <> " itself leave it in doubt") $
        withClientOf protocol $ \_ client -> do
          let script = Redis.eval "redis.call('incr', KEYS[1]) return redis.error_reply(ARGV[1])" ["visits"] [code <> " 1 127.0.0.1:1"]
          failed <- runTransaction client (tryQueued script)
          first errorDelivery failed `shouldBe` Left MaybeExecuted
          run client (Redis.get "visits") `shouldReturn` Just "1"

    it "with a command that the server would not queue did nothing, and say which" $
      withClientOf protocol $ \_ client -> do
        failed <- tryRunTransaction client (queued (Redis.incr "visits") *> queued (raw ["GET", "too", "many"]))
        failed `shouldBe` Left (ReplyError (ServerError "ERR" "wrong number of arguments for 'get' command" RefusedBeforeRun "transaction, command 2 of 2 (GET too)"))
        run client (Redis.get "visits") `shouldReturn` Nothing

  it "of many threads stay whole on shared connections, beside commands that do not wait for them" $
    withClientOf PreferResp3 $ \_ client -> do
      let step = (,) <$> queued (Redis.incr "{n}a") <*> queued (Redis.incr "{n}b")
      pairs <- concat <$> forConcurrently [1 .. 32 :: Int] (\_ -> traverse (const (run client Redis.ping *> runTransaction client step)) [1 .. 50 :: Int])
      -- A command in between would make the two numbers differ.
      filter (uncurry (/=)) pairs `shouldBe` []
      sort (map fst pairs) `shouldBe` [1 .. 1600]

  it "cost one round trip, and no connection of their own" $
    withClientOf PreferResp3 $ \server client -> do
      run client Redis.ping
      replicateM_ 10 (runTransaction client (queued (Redis.incr "n")))
      gauges <- snapshotNodes <$> clientSnapshot client
      map (gaugeIdle . gaugeDedicated) gauges `shouldBe` [0]
      calls server "exec" `shouldReturn` 10

  it "under conditions are run by a server that knows them, and refused, unsent, by the version of another" $
    withClientOf PreferResp3 $ \server client -> do
      fields <- Map.fromList <$> run client Redis.info
      let version = fromMaybe "" (asum [(family <>) <$> Map.lookup name fields | (name, family) <- [("valkey_version", "Valkey "), ("redis_version", "Redis ")]])
          known = any (>= [9, 2]) (versionNumbers <$> Map.lookup "valkey_version" fields)
          outcome = if known then Right else const (Left (RefusedError (Unsupported "EXEC with conditions" version)))
          count condition = tryRunTransactionIf client (condition "k" :| []) (queued (Redis.incr "n"))
      count ExecIfPresent `shouldReturn` outcome Nothing
      count ExecIfAbsent `shouldReturn` outcome (Just 1)
      calls server "multi" `shouldReturn` (if known then 2 else 0)
      run client (Redis.get "n") `shouldReturn` (if known then Just "1" else Nothing)

  describe "after a look" $ do
    it "happen if nothing has changed, with what was decided" $
      withClientOf PreferResp3 $ \_ client -> do
        run client (Redis.set "balance" "7")
        take' client 5 `shouldReturn` Committed 2
        take' client 5 `shouldReturn` Abandoned
        run client (Redis.get "balance") `shouldReturn` Just "2"

    it "of many threads lose nothing, and give their connections back" $
      withClientOf PreferResp3 $ \server client -> do
        run client (Redis.set "n" "0")
        outcomes <- replicateConcurrently 8 . traverse (const (increment client)) $ [1 .. 25 :: Int]
        -- Each transaction has read another number.
        let numbers = [written | Committed written <- concat outcomes]
        nub numbers `shouldBe` numbers
        run client (Redis.get "n") `shouldReturn` Just (Char8.pack (show (length numbers)))
        length numbers `shouldSatisfy` (> 100)
        -- 8 at once, and a shared connection for each capability.
        connections <- Map.lookup "total_connections_received" <$> statistics client
        maybe 999 (maybe 999 fst . Char8.readInt) connections `shouldSatisfy` (< 16)
        calls server "watch" >>= (`shouldSatisfy` (>= 200))

    it "that others spoil each time are told so" $
      withClientOf PreferResp3 $ \_ client -> do
        watchingWith watchDefaults {watchAttempts = 3} client ("n" :| []) (\_ -> Commit (queued (Redis.set "n" "mine")) <$ run client (Redis.incr "n"))
          `shouldReturn` Contended
        run client (Redis.get "n") `shouldReturn` Just "3"

    it "throw what the action throws, and leave nothing watched" $
      withClientOf PreferResp3 $ \_ client -> do
        (watching client ("n" :| []) (\_ -> fail "never mind") :: IO (WatchResult ())) `shouldThrow` anyIOException
        take' client 0 `shouldReturn` Committed 0
  where
    take' client amount = watching client ("balance" :| []) $ \connection -> do
      balance <- number <$> runOn connection (Redis.get "balance")
      pure (if balance >= amount then Commit (queued (Redis.decrby "balance" amount)) else Abandon)

    increment client = watching client ("n" :| []) $ \connection -> do
      before' <- number <$> runOn connection (Redis.get "n")
      pure (Commit ((before' + 1) <$ queued (Redis.set "n" (Char8.pack (show (before' + 1))))))

    number text = maybe 0 (fromIntegral . fst) (Char8.readInt (fromMaybe "" text)) :: Int64

    statistics client = Map.fromList <$> run client (Redis.infoOf ("stats" :| []))

    versionNumbers = map (maybe 0 fst . Char8.readInt) . Char8.split '.'

    calls server name = maybe 0 callsRun . Map.lookup name <$> commandStatistics server

withClientOf :: ProtocolVersion -> (Server -> Client -> IO a) -> IO a
withClientOf protocol action =
  withServer serverDefaults $ \server ->
    withClient (setProtocol protocol (standaloneConfig (Char8.pack (serverHost server)) (fromIntegral (serverPort server)))) (action server)
