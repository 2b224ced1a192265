-- | A load that knows what every reply must be, and the audit after it.
--
-- Each worker has keys of its own and puts a token that is used only once into everything it sends,
-- so a reply to another command cannot pass for its own. The harness counts each command by what
-- its caller may conclude from its outcome. Afterwards it reads the server's counters over another
-- connection. Each must hold at least as many increments as were acknowledged, and no more than
-- those and the ones in doubt.
module Harness
  ( -- * Configurations for tests
    quick,
    addressed,
    through,
    single,

    -- * Surroundings
    behindProxy,
    behindProxyOf,
    neverAnswering,
    durable,
    HangUps,
    hangingUp,
    hangUpsSoFar,
    beFriendly,

    -- * The load
    Load,
    underLoad,
    underLoadOf,
    workersProgress,
    awaitTally,
    Tally (..),

    -- * Looking
    Journal,
    journalled,
    journalEntries,
    journalSoFar,
    awaitJournal,
    counterOf,
    inPipeline,
    deliveryOf,
    inFlightOf,
    waitingOf,
    blockedClients,
    leavingNothing,
  )
where

import Control.Concurrent (threadDelay)
import Control.Concurrent.Async (async, cancel, waitCatch)
import Control.Concurrent.STM
import Control.Exception (bracket, finally, throwIO)
import Control.Monad (forM, forM_, unless)
import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Data.Either (lefts, rights)
import Data.IORef
import Data.List (nub)
import Network.Socket qualified as Socket
import Redis
import Redis.Commands qualified as Commands
import Redis.Metrics
import Redis.TestKit.Address (Address (TcpAddress), freePorts, listenOn)
import Redis.TestKit.Command (Reply (..), replyText)
import Redis.TestKit.Listener (AndThen (..), listenerPort, sayTo, withListener)
import Redis.TestKit.Proxy (Proxy, proxyPort, withProxy)
import Redis.TestKit.Server (Server, ServerOptions (optionsConfig), serverAddress, serverDefaults, serverHost, serverPort, withServer)
import Redis.TestKit.Server qualified as Server
import Redis.TestKit.Wait (descriptorsReturnTo, eventually, failure, openDescriptors, within)
import Test.Hspec (shouldBe, shouldSatisfy)

-- | Short times, so that a fault is over soon.
quick :: Config -> Config
quick =
  setCommandTimeout (Just (seconds 3))
    . setConnectTimeout (seconds 2)
    . setSilenceLimit (Just (seconds 0.5))
    . setBackoff backoffDefaults {backoffFirst = seconds 0.005, backoffCap = seconds 0.05}

-- | The configuration for a server, with short times.
addressed :: Server -> Config
addressed server = quick (standaloneConfig (Char8.pack (serverHost server)) (fromIntegral (serverPort server)))

-- | The configuration for the server behind a proxy, with short times.
through :: Proxy -> Config
through proxy = quick (standaloneConfig "127.0.0.1" (fromIntegral (proxyPort proxy)))

-- | One connection for all callers, so that a test knows which one it breaks.
single :: Config -> Config
single = setMuxCount (Just 1)

-- | A server and a proxy in front of it.
behindProxy :: (Server -> Proxy -> IO a) -> IO a
behindProxy = behindProxyOf serverDefaults

-- | Like 'behindProxy', with the server's options.
behindProxyOf :: ServerOptions -> (Server -> Proxy -> IO a) -> IO a
behindProxyOf options action =
  withServer options $ \server ->
    withProxy (serverAddress server) (action server)

-- | Gives the configuration of a client, with long times, for a peer that accepts connections and
-- sends nothing at all. The peer holds no descriptor for them.
neverAnswering :: (Config -> IO a) -> IO a
neverAnswering action =
  freePorts 1 >>= \case
    port : _ ->
      bracket (listenOn (TcpAddress "127.0.0.1" port)) Socket.close $ \_ ->
        action (setConnectTimeout (seconds 30) . setCommandTimeout (Just (seconds 2)) . setSilenceLimit Nothing $ quick (standaloneConfig "127.0.0.1" (fromIntegral port)))
    [] -> failure "no free port"

-- | A server that writes to disk before it answers, so its data survives its end.
durable :: ServerOptions
durable = serverDefaults {optionsConfig = ["appendonly yes", "appendfsync always"]}

-- | Whether a 'hangingUp' peer still hangs up, and how often it has.
data HangUps = HangUps (TVar Bool) (TVar Int)

-- | A peer that accepts every connection and hangs up on the first command that is not part of the
-- handshake, without an answer. After 'beFriendly' it answers @+PONG@ to PING, and null to other
-- commands. The configuration has one attempt for each command, and delays of 20 to 200 ms.
hangingUp :: (HangUps -> Config -> IO a) -> IO a
hangingUp action = do
  hostile <- newTVarIO True
  count <- newTVarIO 0
  let answer _ caller words'
        | take 1 words' `elem` [["HELLO"], ["CLIENT"]] = GoOn <$ sayTo caller "-ERR unknown command\r\n"
        | otherwise = do
          now <- readTVarIO hostile
          if now
            then HangUp <$ atomically (modifyTVar' count (+ 1))
            else GoOn <$ sayTo caller (if words' == ["PING"] then "+PONG\r\n" else "*-1\r\n")
  withListener "127.0.0.1" answer $ \listener ->
    action (HangUps hostile count)
      . setMaxAttempts 1
      . setBackoff backoffDefaults {backoffFirst = seconds 0.02, backoffCap = seconds 0.2}
      . quick
      $ standaloneConfig "127.0.0.1" (fromIntegral (listenerPort listener))

hangUpsSoFar :: HangUps -> IO Int
hangUpsSoFar (HangUps _ count) = readTVarIO count

-- | From now on the peer answers and no longer hangs up.
beFriendly :: HangUps -> IO ()
beFriendly (HangUps hostile _) = atomically (writeTVar hostile False)

-- | The outcomes of commands.
data Tally = Tally
  { -- | Commands answered, with the right answer.
    tallyRight :: Int,
    -- | Commands in doubt.
    tallyMaybe :: Int,
    -- | Commands that have certainly not run.
    tallyNotRun :: Int,
    -- | Descriptions of outcomes that must never happen.
    tallyWrong :: [String]
  }
  deriving stock (Eq, Show)

instance Semigroup Tally where
  Tally right doubtful notRun wrong <> Tally right' doubtful' notRun' wrong' =
    Tally (right + right') (doubtful + doubtful') (notRun + notRun') (wrong <> wrong')

instance Monoid Tally where
  mempty = Tally 0 0 0 []

-- | The running workers.
data Load = Load
  { loadTallies :: [TVar Tally],
    loadStop :: TVar Bool
  }

-- | Runs the load of 16 workers while an action runs, and then audits it. The action gets the
-- client and begins when every worker has had answers. After it every worker must get answers
-- again.
underLoad :: Server -> Config -> (Client -> Load -> IO ()) -> IO Tally
underLoad = underLoadOf 16

-- | Like 'underLoad', with this many workers.
underLoadOf :: Int -> Server -> Config -> (Client -> Load -> IO ()) -> IO Tally
underLoadOf workers server config fault = leavingNothing $ do
  (tally, increments) <- withClient config $ \client -> do
    loadTallies <- mapM (const (newTVarIO mempty)) [1 .. workers]
    loadStop <- newTVarIO False
    let load = Load {loadTallies, loadStop}
    threads <- forM (zip [1 ..] loadTallies) $ \(number, tally) -> async (worker client loadStop tally number)
    increments <- flip finally (mapM_ cancel threads) $ do
      workersProgress load 20
      fault client load
      workersProgress load 20
      atomically (writeTVar loadStop True)
      -- Every command ends, so every worker does, too.
      ended <- within 10 (mapM waitCatch threads)
      case lefts ended of
        [] -> pure [increment | Right increment <- ended]
        problem : _ -> throwIO problem
    tally <- atomically (mconcat <$> mapM readTVar loadTallies)
    pure (tally, increments)
  tallyWrong tally `shouldBe` []
  forM_ increments $ \(key, acknowledged, doubtful) -> do
    counted <- counterOf server key
    (key, counted, acknowledged, doubtful) `shouldSatisfy` \_ ->
      acknowledged <= counted && counted <= acknowledged + doubtful
  pure tally

-- | Blocks until every worker has had this many more right answers.
workersProgress :: Load -> Int -> IO ()
workersProgress Load {loadTallies} more = do
  before <- mapM (fmap tallyRight . readTVarIO) loadTallies
  within 20 . atomically . forM_ (zip loadTallies before) $ \(tally, count) ->
    readTVar tally >>= check . (>= count + more) . tallyRight

-- | Blocks until the tally of all workers satisfies a condition.
awaitTally :: Load -> (Tally -> Bool) -> IO ()
awaitTally Load {loadTallies} condition =
  within 20 . atomically $ mapM readTVar loadTallies >>= check . condition . mconcat

-- | Runs one worker until it is stopped. Returns its counter's key, how many increments were
-- acknowledged, and how many are in doubt.
worker :: Client -> TVar Bool -> TVar Tally -> Int -> IO (ByteString, Int, Int)
worker client stop tally number = do
  acknowledged <- newIORef 0
  doubtful <- newIORef 0
  highest <- newIORef 0
  let counter = "counter:" <> decimal number

      note change = atomically (modifyTVar' tally (<> change))
      right = note mempty {tallyRight = 1}
      wrong text = note mempty {tallyWrong = [text]}

      failed failure' = note $ case errorDelivery failure' of
        MaybeExecuted -> mempty {tallyMaybe = 1}
        _ -> mempty {tallyNotRun = 1}

      -- The increments of one batch may run in any order, because those that were sent again ran
      -- later. But they never run before those of the batch before.
      incremented answers = do
        before <- readIORef highest
        done <- readIORef acknowledged
        inDoubt <- readIORef doubtful
        let values = rights answers
            failures = lefts answers
            newDoubts = length (filter ((== MaybeExecuted) . errorDelivery) failures)
        if length (nub values) == length values
          && all (> before) values
          && all (<= done + inDoubt + length answers) values
          then note mempty {tallyRight = length values}
          else wrong ("INCR answered " <> show (answers, before, done, inDoubt))
        mapM_ failed failures
        writeIORef highest (maximum (before : values))
        writeIORef acknowledged (done + length values)
        writeIORef doubtful (inDoubt + newDoubts)

      echoed token = \case
        Right answer
          | answer == token -> right
          | otherwise -> wrong ("ECHO " <> show token <> " answered " <> show answer)
        Left failure' -> failed failure'

      -- A key is used until a SET of it is in doubt: that SET may still run at any later time.
      stored key token = do
        written <- tryRun client (Commands.set key token)
        either failed (const right) written
        answer <- tryRun client (Commands.get key)
        case (written, answer) of
          (_, Left failure') -> failed failure'
          (Right (), Right (Just found)) | found == token -> right
          (Left failure', Right found)
            | errorDelivery failure' == MaybeExecuted, found == Just token -> right
            | maybe True (ownToken key) found -> right
          (_, Right other) -> wrong ("GET of " <> show (key, token, written) <> " answered " <> show other)
        pure $ case written of
          Left failure' | errorDelivery failure' == MaybeExecuted -> False
          _ -> True

      ownToken key found = key `Char8.isPrefixOf` found

      rounds :: Int -> Int -> IO ()
      rounds generation turn = do
        over <- readTVarIO stop
        unless over $ do
          let token what = "token:" <> decimal number <> ":" <> decimal turn <> ":" <> what
              key = "key:" <> decimal number <> ":" <> decimal generation <> ":"
          started <- forM [1 .. 4 :: Int] $ \part -> do
            let echo' = token (decimal part)
            increment <- submit client (Commands.incr counter)
            echo <- submit client (Commands.echo echo')
            pure (increment, echo', echo)
          answers <- forM started $ \(increment, echo', echo) -> do
            answer <- tryAwaitReply increment
            tryAwaitReply echo >>= echoed echo'
            pure (fromIntegral <$> answer)
          incremented answers
          usable <- stored key (key <> decimal turn)
          rounds (if usable then generation else generation + 1) (turn + 1)

  rounds 0 0
  (,,) counter <$> readIORef acknowledged <*> readIORef doubtful

decimal :: Int -> ByteString
decimal = Char8.pack . show

-- | The value of a counter, read over a connection of the testkit's own.
counterOf :: Server -> ByteString -> IO Int
counterOf server key = do
  reply <- Server.command server ["GET", key]
  case replyText reply >>= Char8.readInt of
    Just (value, "") -> pure value
    Nothing | reply == Nil -> pure 0
    _ -> failure ("not a counter: " <> show reply)

-- | Submits the commands, runs the action, and then waits for all replies.
inPipeline :: Client -> [Command a] -> IO () -> IO [Either Error a]
inPipeline client commands meanwhile = do
  started <- mapM (submit client) commands
  meanwhile
  within 15 (mapM tryAwaitReply started)

-- | What may have happened to a command; 'Nothing' if it has a result.
deliveryOf :: Either Error a -> Maybe Delivery
deliveryOf = either (Just . errorDelivery) (const Nothing)

-- | The number of commands in flight on all connections.
inFlightOf :: Client -> IO Int
inFlightOf client = sum . map gaugeInFlight . concatMap gaugeConnections . snapshotNodes <$> clientSnapshot client

-- | The number of callers that wait for room on all connections.
waitingOf :: Client -> IO Int
waitingOf client = sum . map gaugeWaiting . concatMap gaugeConnections . snapshotNodes <$> clientSnapshot client

-- | Runs an action that must leave no descriptor open.
leavingNothing :: IO a -> IO a
leavingNothing action = do
  before <- openDescriptors
  result <- action
  descriptorsReturnTo 5 before
  pure result

-- | The connection events, in the order of their arrival.
newtype Journal = Journal (TVar [ConnectionEvent])

-- | Adds to a configuration a hook that records connection events.
journalled :: Config -> IO (Journal, Config)
journalled config = do
  events <- newTVarIO []
  let note event = atomically (modifyTVar' events (event :))
  pure (Journal events, setHooks noHooks {hookConnection = Just note} config)

-- | The events so far, oldest first. Hooks run on a thread of their own, so this waits until no
-- event has come for a moment.
journalEntries :: Journal -> IO [ConnectionEvent]
journalEntries journal@(Journal events) = journalSoFar journal >>= quiet
  where
    quiet before = do
      threadDelay 20000
      now <- readTVarIO events
      if length now == length before then pure (reverse now) else quiet now

-- | The events that have come, in no order, without waiting for others.
journalSoFar :: Journal -> IO [ConnectionEvent]
journalSoFar (Journal events) = readTVarIO events

-- | Blocks until an event satisfies a condition.
awaitJournal :: Journal -> String -> (ConnectionEvent -> Bool) -> IO ()
awaitJournal journal what condition = eventually 10 what (any condition <$> journalSoFar journal)

-- | How many clients are blocked on the server.
blockedClients :: Server -> IO Int
blockedClients server =
  Server.command server ["CLIENT", "LIST"] >>= \case
    Text list -> pure (length [() | line <- Char8.lines list, " flags=b " `Char8.isInfixOf` line])
    other -> fail (show other)
