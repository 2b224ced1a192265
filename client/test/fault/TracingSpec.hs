-- | The events that the hook for commands gets.
module TracingSpec (spec) where

import Control.Concurrent (ThreadId, myThreadId, yield)
import Control.Concurrent.Async (replicateConcurrently, wait, withAsync)
import Control.Concurrent.Async qualified as Async
import Control.Concurrent.STM
import Control.Exception (ErrorCall (ErrorCall), throwIO)
import Control.Monad (forM_, unless, void, when)
import Data.Bifunctor (bimap, first, second)
import Data.ByteString (ByteString)
import Data.Maybe (isJust)
import GHC.Conc (BlockReason (..), ThreadStatus (..), threadStatus)
import Harness
import Redis
import Redis.Cache (runCached, submitCached)
import Redis.Commands qualified as Commands
import Redis.Metrics (CacheGauges (..), clientSnapshot, snapshotCache)
import Redis.Script
import Redis.TestKit.Proxy (Proxy)
import Redis.TestKit.Proxy qualified as Proxy
import Redis.TestKit.Server (serverDefaults, withServer)
import Redis.TestKit.Wait (eventually, eventuallyReturns, within)
import Redis.Tracing
import Redis.Transaction
import Test.Hspec

-- | The beginnings and ends of commands, each with the thread that ran the hook; the first comes
-- first.
data Spans = Spans
  { spansBegun :: TVar [(ThreadId, CommandBegun)],
    spansEnded :: TVar [(ThreadId, CommandBegun, CommandEnded)]
  }

-- | A hook that records all its events.
recording :: IO (Spans, Config -> Config)
recording = do
  spansBegun <- newTVarIO []
  spansEnded <- newTVarIO []
  let add variable item = atomically (modifyTVar' variable (<> [item]))
      hook begun = do
        beginner <- myThreadId
        add spansBegun (beginner, begun)
        pure $ \ended -> do
          ender <- myThreadId
          add spansEnded (ender, begun, ended)
  pure (Spans {spansBegun, spansEnded}, setHooks noHooks {hookCommand = Just hook})

endedOf :: Spans -> IO [(CommandBegun, CommandEnded)]
endedOf spans = map (\(_, begun, ended) -> (begun, ended)) <$> readTVarIO (spansEnded spans)

namesOf :: Spans -> IO [ByteString]
namesOf spans = map (begunOperation . fst) <$> endedOf spans

-- | The only command that has ended.
only :: HasCallStack => Spans -> IO (CommandBegun, CommandEnded)
only spans =
  endedOf spans >>= \case
    [one] -> pure one
    several -> fail ("not one: " <> show several)

spec :: Spec
spec = describe "the hook for commands" $ do
  it "is told of a command's beginning and end on the thread that runs it" $
    behindProxy $ \_ proxy -> leavingNothing $ do
      (spans, hooked) <- recording
      withClient (setDatabase 3 (hooked (through proxy))) $ \client -> do
        run client (Commands.set "key" "a value")
        me <- myThreadId
        map fst <$> readTVarIO (spansBegun spans) `shouldReturn` [me]
        map (\(thread, _, _) -> thread) <$> readTVarIO (spansEnded spans) `shouldReturn` [me]
      (begun, ended) <- only spans
      begun `shouldBe` CommandBegun {begunOperation = "SET", begunBatch = Nothing, begunText = "SET key \"a value\"", begunShape = "SET ? ?", begunProcedure = Nothing, begunDatabase = 3, begunNode = Just (endpointOf proxy)}
      endedOutcome ended `shouldBe` CommandSucceeded
      endedNode ended `shouldBe` Just (endpointOf proxy)
      (endedAttempts ended, endedRedirects ended, endedRecovering ended) `shouldBe` (1, 0, mempty)
      endedEntering ended `shouldSatisfy` maybe False (<= endedTook ended)
      endedTook ended `shouldSatisfy` (> mempty)

  it "is told of the error that the caller gets" $
    withServer serverDefaults $ \server -> leavingNothing $ do
      (spans, hooked) <- recording
      withClient (hooked (addressed server)) $ \client -> do
        run client (Commands.set "key" "value")
        failed <- tryRun client (Commands.incr "key")
        refused <- tryRun client (raw ["SELECT", "1"])
        outcomes <- map (endedOutcome . snd) . drop 1 <$> endedOf spans
        map Left outcomes `shouldBe` map (either (Left . CommandFailed) Right) [failed *> Right (), refused *> Right ()]
        -- A command that is refused before it is sent has no node.
        map (\(_, ended) -> (endedNode ended, endedAttempts ended, endedEntering ended)) . drop 2 <$> endedOf spans `shouldReturn` [(Nothing, 0, Nothing)]

  it "is told of a submitted command once, however often and by whomever it is awaited" $
    withServer serverDefaults $ \server -> leavingNothing $ do
      (spans, hooked) <- recording
      withClient (hooked (addressed server)) $ \client -> do
        started <- submit client (Commands.incr "hits")
        failing <- submit client (raw ["SET", "here"])
        _ <- submit client (Commands.incr "unawaited")
        _ <- replicateConcurrently 10 (awaitReply started)
        _ <- replicateConcurrently 10 (tryAwaitReply failing)
        awaitReply started `shouldReturn` 1
        me <- myThreadId
        map fst <$> readTVarIO (spansBegun spans) `shouldReturn` [me, me, me]
      namesOf spans `shouldReturn` ["INCR", "SET"]
      map (endedAttempts . snd) <$> endedOf spans `shouldReturn` [1, 1]

  it "is told of a pipeline as one" $
    behindProxy $ \_ proxy -> leavingNothing $ do
      (spans, hooked) <- recording
      withClient (hooked (through proxy)) $ \client -> do
        _ <- runPipeline client (traverse (pipelined . Commands.get) ["a", "b", "c"])
        _ <- runPipeline client ((,) <$> pipelined (Commands.set "a" "x") <*> tryPipelined (Commands.incr "a"))
        failed <- tryRunPipeline client (pipelined Commands.ping *> pipelined (Commands.incr "a") *> pipelined Commands.ping)
        _ <- runPipeline client (pipelined (Commands.get "a"))
        _ <- runPipeline client (pure ())
        seen <- endedOf spans
        map (begunOperation . fst) seen `shouldBe` ["PIPELINE GET", "PIPELINE", "PIPELINE", "GET", "PIPELINE"]
        map (begunBatch . fst) seen `shouldBe` [Just 3, Just 2, Just 3, Nothing, Nothing]
        map (begunText . fst) (take 2 seen) `shouldBe` ["GET a; GET b; GET c", "SET a x; INCR a"]
        map (begunShape . fst) (take 2 seen) `shouldBe` ["GET ?; GET ?; GET ?", "SET ? ?; INCR ?"]
        map (endedOutcome . snd) seen
          `shouldBe` [CommandSucceeded, CommandSucceeded, either CommandFailed (const CommandSucceeded) failed, CommandSucceeded, CommandSucceeded]
        map (endedNode . snd) (take 4 seen) `shouldBe` replicate 4 (Just (endpointOf proxy))
        map (endedAttempts . snd) (take 4 seen) `shouldBe` [1, 1, 1, 1]

  it "is told of a transaction as one, of what is queued in it" $
    withServer serverDefaults $ \server -> leavingNothing $ do
      (spans, hooked) <- recording
      withClient (hooked (addressed server)) $ \client -> do
        _ <- runTransaction client (queued (Commands.set "here" "value") *> queued (Commands.get "here"))
        _ <- tryRunTransaction client (queued (Commands.incr "here"))
        pure ()
      seen <- endedOf spans
      map (begunOperation . fst) seen `shouldBe` ["MULTI", "MULTI INCR"]
      map (begunBatch . fst) seen `shouldBe` [Just 2, Nothing]
      map (begunText . fst) seen `shouldBe` ["SET here value; GET here", "INCR here"]
      map ((== CommandSucceeded) . endedOutcome . snd) seen `shouldBe` [True, False]
      map (endedAttempts . snd) seen `shouldBe` [1, 1]
      map (isJust . endedEntering . snd) seen `shouldBe` [True, True]

  it "is told of commands on a lent connection, with the database that they run in" $
    behindProxy $ \_ proxy -> leavingNothing $ do
      (spans, hooked) <- recording
      withClient (hooked (through proxy)) $ \client -> do
        _ <- withDedicated client AnyPrimary $ \connection -> do
          runOn connection Commands.ping
          _ <- runOn connection (raw ["SELECT", "2"])
          submitOn connection (Commands.get "key") >>= awaitReply
        watching client ("key" :| []) (\_ -> pure (Commit (queued (Commands.incr "key")))) `shouldReturn` Committed 1
      seen <- endedOf spans
      map (\(begun, ended) -> (begunOperation begun, begunDatabase begun, endedNode ended, endedAttempts ended)) seen
        `shouldBe` [ ("PING", 0, Just (endpointOf proxy), 1),
                     ("SELECT", 0, Just (endpointOf proxy), 1),
                     ("GET", 2, Just (endpointOf proxy), 1),
                     ("WATCH", 0, Just (endpointOf proxy), 1),
                     ("MULTI INCR", 0, Just (endpointOf proxy), 1)
                   ]
      map (isJust . endedEntering . snd) seen `shouldBe` replicate 5 True

  it "is told of no attempt of what is refused on a lent connection" $
    withServer serverDefaults $ \server -> leavingNothing $ do
      (spans, hooked) <- recording
      withClient (hooked (addressed server)) $ \client -> do
        withDedicated client AnyPrimary $ \connection -> do
          _ <- tryRunOn connection (onEvery Primaries Commands.ping)
          refused <- submitOn connection (onEvery Primaries Commands.ping)
          void (tryAwaitReply refused)
        watching client ("key" :| []) (\_ -> pure (Commit (queued (raw ["SELECT", "1"])))) `shouldThrow` (== RefusedError (NotInTransaction "SELECT"))
      seen <- endedOf spans
      map (\(begun, ended) -> (begunOperation begun, endedNode ended, endedAttempts ended, endedEntering ended)) (filter ((/= "WATCH") . begunOperation . fst) seen)
        `shouldBe` [(name, Nothing, 0, Nothing) | name <- ["PING", "PING", "MULTI SELECT"]]

  it "is told of a command that waits on the server" $
    behindProxy $ \_ proxy -> leavingNothing $ do
      (spans, hooked) <- recording
      withClient (hooked (through proxy)) $ \client ->
        run client (Commands.blpop (pure "list") (Just (milliseconds 60))) `shouldReturn` Nothing
      (begun, ended) <- only spans
      begunOperation begun `shouldBe` "BLPOP"
      (endedNode ended, endedAttempts ended) `shouldBe` (Just (endpointOf proxy), 1)
      endedTook ended `shouldSatisfy` (>= milliseconds 60)
      endedEntering ended `shouldSatisfy` maybe False (\entering -> endedTook ended >= entering <> milliseconds 55)

  it "is told how often a command was sent, and how long it took to recover" $
    behindProxy $ \_ proxy -> leavingNothing . within 20 $ do
      (spans, hooked) <- recording
      withClient (single (hooked (through proxy))) $ \client -> do
        run client Commands.ping
        Proxy.freeze proxy Proxy.ToClient
        withAsync (run client (Commands.get "key")) $ \reading -> do
          eventuallyReturns 5 1 (inFlightOf client)
          Proxy.cut proxy Proxy.Reset
          Proxy.thaw proxy Proxy.ToClient
          wait reading `shouldReturn` Nothing
        Proxy.freeze proxy Proxy.ToClient
        withAsync (tryRunPipeline client (pipelined (Commands.get "a") *> pipelined (Commands.get "b"))) $ \reading -> do
          eventuallyReturns 5 2 (inFlightOf client)
          Proxy.cut proxy Proxy.Reset
          Proxy.thaw proxy Proxy.ToClient
          wait reading `shouldReturn` Right Nothing
      map (\(begun, ended) -> (begunOperation begun, endedAttempts ended, endedRecovering ended > mempty)) . drop 1 <$> endedOf spans
        `shouldReturn` [("GET", 2, True), ("PIPELINE GET", 3, True)]

  it "is told that whoever waited was interrupted" $
    behindProxy $ \_ proxy -> leavingNothing . within 20 $ do
      (spans, hooked) <- recording
      withClient (single (hooked (through proxy))) $ \client -> do
        run client Commands.ping
        Proxy.freeze proxy Proxy.ToClient
        forM_ [void (run client (Commands.incr "key")), void (runPipeline client (pipelined (Commands.incr "key") *> pipelined (Commands.incr "key")))] $ \waiting -> do
          already <- inFlightOf client
          withAsync waiting $ \caller -> do
            eventuallyReturns 5 True ((> already) <$> inFlightOf client)
            Async.cancel caller
        Proxy.thaw proxy Proxy.ToClient
      map (bimap begunOperation endedOutcome) . drop 1 <$> endedOf spans
        `shouldReturn` [("INCR", CommandInterrupted), ("PIPELINE INCR", CommandInterrupted)]

  -- Without a mask, an exception that comes while a hook works ends the hook before it has done what it is for.
  it "is told of the end of all that it was told to begin, when whoever waits is cancelled while a hook works" $
    withServer serverDefaults $ \server -> leavingNothing . within 30 $ do
      let ways =
            [ ("run", \client -> void (run client (Commands.incr "key"))),
              ("run, waiting on the server", \client -> void (run client (Commands.blpop (pure "list") (Just (milliseconds 1))))),
              ("submit", \client -> void (submit client (Commands.incr "key") >>= awaitReply)),
              ("runPipeline", \client -> void (runPipeline client (pipelined (Commands.incr "key") *> pipelined (Commands.incr "key")))),
              ("runTransaction", \client -> void (runTransaction client (queued (Commands.incr "key")))),
              ("runOn", \client -> withDedicated client AnyPrimary $ \connection -> void (runOn connection (Commands.incr "key"))),
              ("submitOn", \client -> withDedicated client AnyPrimary $ \connection -> void (submitOn connection (Commands.incr "key") >>= awaitReply)),
              ("runCached", \client -> void (runCached client (seconds 60) (Commands.get "key"))),
              ("submitCached", \client -> void (submitCached client (seconds 60) (Commands.get "key") >>= awaitReply))
            ]
      forM_ [(way, at) | way <- ways, at <- ["beginning", "end"]] $ \((way, act), at) -> do
        calls <- newTVarIO (0 :: Int, 0 :: Int)
        reached <- newTVarIO False
        cancelled <- newTVarIO False
        -- An exception from another capability is noticed at a yield, so one follows the throw.
        let working = readTVarIO cancelled >>= \over -> yield *> unless over working
            workingAt place = when (at == place) $ atomically (writeTVar reached True) *> working
            hook _ = do
              atomically (modifyTVar' calls (first (+ 1)))
              workingAt "beginning"
              pure (\_ -> workingAt "end" *> atomically (modifyTVar' calls (second (+ 1))))
        withClient (setHooks noHooks {hookCommand = Just hook} (setCaching (Just cachingDefaults) (addressed server))) $ \client ->
          withAsync (act client) $ \caller -> do
            atomically (readTVar reached >>= check)
            withAsync (Async.cancel caller) $ \canceller -> do
              eventually 5 "it throws" $ (`elem` [ThreadBlocked BlockedOnException, ThreadBlocked BlockedOnSTM, ThreadFinished]) <$> threadStatus (Async.asyncThreadId canceller)
              atomically (writeTVar cancelled True)
              wait canceller
        told <- readTVarIO calls
        (way, at :: String, told) `shouldBe` (way :: String, at, (1, 1))

  it "sees no password" $
    withServer serverDefaults $ \server -> leavingNothing $ do
      (spans, hooked) <- recording
      withClient (hooked (addressed server)) $ \client -> do
        _ <- tryRun client (raw ["AUTH", "user", "open sesame"])
        _ <- tryRun client (raw ["CONFIG", "SET", "masterauth", "open sesame"])
        pure ()
      map (begunText . fst) <$> endedOf spans `shouldReturn` ["AUTH <secret> <secret>", "CONFIG SET masterauth <secret>"]
      map (begunShape . fst) <$> endedOf spans `shouldReturn` ["AUTH ? ?", "CONFIG SET ? ?"]

  it "is told of a read that is not kept yet, and not of one that is" $
    behindProxy $ \_ proxy -> leavingNothing $ do
      (spans, hooked) <- recording
      withClient (setCaching (Just cachingDefaults) (hooked (through proxy))) $ \client -> do
        runCached client (seconds 60) (Commands.get "key") `shouldReturn` Nothing
        runCached client (seconds 60) (Commands.get "key") `shouldReturn` Nothing
        submitCached client (seconds 60) (Commands.get "other") >>= awaitReply >>= (`shouldBe` Nothing)
        cache <- snapshotCache <$> clientSnapshot client
        fmap (\gauges -> (cacheHits gauges, cacheMisses gauges)) cache `shouldBe` Just (1, 2)
      map (\(begun, ended) -> (begunText begun, endedNode ended, endedAttempts ended, isJust (endedEntering ended))) <$> endedOf spans
        `shouldReturn` [("GET key", Just (endpointOf proxy), 1, True), ("GET other", Just (endpointOf proxy), 1, True)]

  it "is told which script is run" $
    withServer serverDefaults $ \server -> leavingNothing $ do
      (spans, hooked) <- recording
      let one = script "return 1"
      _ <- withClient (hooked (addressed server)) $ \client -> run client (evalScript one ["key"] [])
      (begun, ended) <- only spans
      (begunOperation begun, begunProcedure begun) `shouldBe` ("EVALSHA", Just (scriptDigest one))
      -- The first attempt was by a digest that the server did not know.
      endedAttempts ended `shouldBe` 2

  it "may throw, at the beginning or at the end" $
    withServer serverDefaults $ \server -> leavingNothing $ do
      ends <- newTVarIO (0 :: Int)
      let thrower = throwIO (ErrorCall "hook")
          atEnd _ = pure (\_ -> atomically (modifyTVar' ends (+ 1)) *> thrower)
      forM_ [const thrower, atEnd] $ \hook ->
        withClient (setHooks noHooks {hookCommand = Just hook} (addressed server)) $ \client -> do
          run client Commands.ping
          submit client Commands.ping >>= awaitReply
      readTVarIO ends `shouldReturn` 2

  it "may be several" $
    withServer serverDefaults $ \server -> leavingNothing $ do
      heard <- newTVarIO []
      let note word = atomically (modifyTVar' heard (<> [word :: String]))
          named name _ = (\_ -> note (name <> " ends")) <$ note (name <> " begins")
      withClient (setHooks noHooks {hookCommand = Just (named "one" <> named "other")} (addressed server)) $ \client ->
        run client Commands.ping
      readTVarIO heard `shouldReturn` ["one begins", "other begins", "one ends", "other ends"]

  it "can be for slow commands only" $
    withServer serverDefaults $ \server -> leavingNothing $ do
      slow <- newTVarIO []
      let hook = slowCommands (milliseconds 50) (\command -> atomically (modifyTVar' slow (<> [command])))
      withClient (setHooks noHooks {hookCommand = Just hook} (addressed server)) $ \client -> do
        _ <- run client (Commands.blpop (pure "list") (Just (milliseconds 60)))
        pure ()
      readTVarIO slow >>= \case
        [command] -> do
          begunText (slowBegun command) `shouldBe` "BLPOP list 0.060000"
          renderSlow command `shouldContain` "BLPOP list 0.060000 at 127.0.0.1:"
          renderSlow command `shouldContain` "1 attempt (queued after "
        others -> fail ("not one: " <> show others)

endpointOf :: Proxy -> Endpoint
endpointOf proxy = TcpEndpoint "127.0.0.1" (fromIntegral (Proxy.proxyPort proxy))
