-- | A thread that the runtime moves to another capability changes to that capability's connection,
-- but only when it has nothing in flight.
--
-- The server is stopped while the thread submits and is moved, so that its commands are certainly
-- in flight. If a pool let them use two connections, the server would read the commands after a
-- second move together with those before the first.
module PoolOrderSpec (spec) where

import Control.Concurrent
import Control.Exception (SomeException, bracket, bracket_, finally, mask_, throwIO, try, uninterruptibleMask_)
import Control.Monad (forM, forM_, replicateM, replicateM_, unless, void)
import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Data.Either (isLeft)
import Data.IORef
import Data.List (nub)
import GHC.Clock (getMonotonicTime)
import Peer (outcomeText, within)
import Redis.Config
import Redis.Duration (milliseconds, seconds)
import Redis.Error
import Redis.Internal.Network.Dial (newConnector)
import Redis.Internal.Network.Handshake (ConnectionRole (ForPrimary))
import Redis.Internal.Network.InFlight
import Redis.Internal.Network.MultiplexPool hiding (Submitter (..))
import Redis.Internal.Network.MultiplexPool qualified as Pool
import Redis.Internal.Network.Multiplexer (MuxGauges (..))
import Redis.Internal.Network.Open (newConnectionSetup)
import Redis.Internal.Network.Runtime (Deadline)
import Redis.Internal.Protocol.Encode (request)
import Redis.TestKit.Server
import Redis.Value
import System.CPUTime (getCPUTime)
import System.Timeout (timeout)
import Test.Hspec hiding (after, before)
import Test.Hspec.QuickCheck (modifyMaxSuccess)
import Test.QuickCheck hiding (Failure, again, within)

spec :: Spec
spec = describe "a pool of several connections" . beforeAll_ (setNumCapabilities 2) $ do
  forM_ [2, 4] $ \connections -> aroundAll (withOpenPool connections) . modifyMaxSuccess (const 40) . it ("runs what one thread submits in that order, wherever the runtime moves it in between, with connections: " <> show connections) $ \(server, pool) ->
    forAllShrink anyScript (shrinkList shrinkPart) $ \script -> ioProperty . within 30 $ do
      void (usually submitToNode pool (request ["DEL", listKey]))
      slots <- inThread . bracket_ (freeze server) (thaw server) $ perform server pool script
      outcomes <- mapM waitSlotResult slots
      listed <- usually submitToNode pool (request ["LRANGE", listKey, "0", "-1"])
      let count = sum (map partCommands script)
      pure $
        conjoin
          [ map outcomeText outcomes === map (Right . Integer . fromIntegral) [1 .. count],
            arrivalText listed === Right (Array (map numbered [1 .. count]))
          ]

  it "spreads the threads of a capability over its connections, and keeps each thread on one" . within 20 $
    withServer serverDefaults $ \server ->
      withPoolOf (setMuxCount (Just 5)) server $ \pool -> do
        -- Each thread asks three times, and its connection is of the capability that it stays on.
        asked <- forM [0, 1] $ \place ->
          replicateM 12 . onCapability place . replicateM 3 $
            arrivalText <$> usually submitToNode pool (request ["CLIENT", "ID"])
        filter ((> 1) . length . nub) (concat asked) `shouldBe` []
        let used = map (nub . map (take 1)) asked
        map length used `shouldBe` [3, 2]
        length (nub (concat used)) `shouldBe` 5

  it "uses all of its connections when threads are placed on the capabilities by turns" . within 20 $
    withServer serverDefaults $ \server ->
      withPoolOf (setMuxCount (Just 8)) server $ \pool -> do
        openAll 8 pool
        asked <- forM (take 32 (cycle [0, 1])) $ \place -> do
          end <- newEmptyMVar
          _ <- forkOn place ((arrivalText <$> usually submitToNode pool (request ["CLIENT", "ID"])) >>= putMVar end)
          takeMVar end
        length (nub asked) `shouldBe` 8

  -- Several times, because the reader may still be on its way to sleep when the commands come.
  it "polls for many replies where a capability has several of its connections, and only there" . within 30 $
    withServer serverDefaults $ \server ->
      forM_ [(2, False), (4, True)] $ \(connections, polls) -> do
        seen <- replicateM 8 . withPoolOf (setMuxCount (Just connections) . setPolling (PollUpTo (seconds 15))) server $ \pool ->
          onCapability 0 $ do
            connectNode pool `shouldReturn` Right ()
            bracket_ (freeze server) (thaw server) $ do
              replicateM_ 100 (usually submitToNodeAsync pool (request ["PING"]))
              -- On a busy machine the polling thread waits for a processor, too.
              spends (if polls then 10 else 1)
        (connections, seen) `shouldBe` (connections, replicate 8 polls)

  it "closes what was replaced and still waits for replies, in the time that it has for that" . within 20 $
    withServer serverDefaults $ \server ->
      withPoolOf id server $ \pool -> do
        openBoth pool
        bracket_ (freeze server) (thaw server) $ do
          slot <- usually submitToNodeAsync pool (request ["PING"])
          reconnectWithin 60 pool maxBound
          closeMultiplexPool 0.1 pool
          closedInFlight slot

  it "closes all that were replaced, one after the other, and still wait for replies" . within 20 $
    withServer serverDefaults $ \server ->
      withPoolOf id server $ \pool -> do
        slots <- forM [1 .. 2 :: Int] $ \_ -> do
          openBoth pool
          usually submitToNodeAsync pool (request ["BLPOP", "nothing", "0"]) <* reconnectWithin 60 pool maxBound
        closeMultiplexPool 0.1 pool
        mapM_ closedInFlight slots

  it "closes a connection that is open only when the pool has been closed" . within 20 $
    withServer serverDefaults $ \server -> do
      (opened, gate, caller, closed) <- (,,,) <$> newEmptyMVar <*> newEmptyMVar <*> newEmptyMVar <*> newEmptyMVar
      let holdBack = \case
            Connected _ _ -> putMVar opened () *> takeMVar gate
            _ -> pure ()
      withPoolOf (setHooks noHooks {hookConnection = Just holdBack}) server $ \pool -> do
        void (forkIO (connectNode pool >>= putMVar caller))
        takeMVar opened
        void (forkIO (closeMultiplexPool 0 pool >>= putMVar closed))
        -- A closed pool refuses at once; an open one waits for the attempt.
        waitUntil (maybe False isLeft <$> timeout 50000 (connectNode pool))
        putMVar gate ()
        takeMVar caller >>= (`shouldSatisfy` isLeft)
        takeMVar closed
        map gaugeInFlight <$> poolGauges pool `shouldReturn` []
        within 5 (waitUntil ((== 0) <$> connectedClients server))

  it "counts what a thread of the library submits for another thread as that one's" . within 25 $
    withServer serverDefaults $ \server ->
      withPoolOf (setSilenceLimit Nothing) server $ \pool -> do
        openBoth pool
        deadline <- usualDeadline pool
        onCapability 0 $ do
          mine <- callersKey
          slot <- newResponseSlot
          onCapability 1 (submitAs (Pool.GoesOnFor mine) pool deadline (request ["BLPOP", "list", "0"]) slot)
          next <- usually submitToNodeAsync pool (request ["PING"])
          map gaugeInFlight <$> poolGauges pool `shouldReturn` [0, 2]
          pushTo server "list"
          mapM_ waitSlotResult [slot, next]

  -- The other thread keeps its connection busy, so a command that was sent there would wait.
  it "does not move a thread that waits for its replies because of another thread's commands" . within 25 $
    withServer serverDefaults $ \server ->
      withPoolOf id server $ \pool -> do
        openBoth pool
        key <- newEmptyMVar
        theirs <- onCapability 1 $ do
          myThreadId >>= putMVar key . orderKeyOf
          blocked pool "theirs"
        shared <- takeMVar key
        said <- onCapability 0 (whenCellIs shared (within 5 (usually submitToNode pool (request ["PING"]))))
        arrivalText said `shouldBe` Right (SimpleString "PONG")
        void (command server ["RPUSH", "theirs", "element"])
        void (waitSlotResult theirs)

  it "has a thread wait for its reply where it has commands in flight that it did not wait for" . within 25 $
    withServer serverDefaults $ \server ->
      withPoolOf id server $ \pool -> do
        openBoth pool
        said <- inThread . bracket_ (freeze server) (thaw server) $ do
          first <- usually submitToNodeAsync pool (request ["RPUSH", listKey, "1"])
          moveAway
          second <- newEmptyMVar
          _ <- forkFinally (waitUntil (any ((== 2) . gaugeInFlight) <$> poolGauges pool) *> thaw server) (putMVar second)
          answer <- usually submitToNode pool (request ["RPUSH", listKey, "2"])
          takeMVar second >>= either throwIO pure
          (,) <$> (outcomeText <$> waitSlotResult first) <*> pure (arrivalText answer)
        said `shouldBe` (Right (Integer 1), Right (Integer 2))

  -- Two other threads that share its cell have commands on the other connection, so that the thread
  -- may have some there, too.
  it "has a thread wait for its reply where it certainly has commands in flight, and not where it only may have some" . within 20 $
    withServer serverDefaults $ \server ->
      withPoolOf (setSilenceLimit Nothing) server $ \pool -> do
        openBoth pool
        key <- newEmptyMVar
        goOn <- newEmptyMVar
        end <- newEmptyMVar
        void . forkOn 1 $ do
          mine <- blocked pool "mine"
          myThreadId >>= putMVar key . orderKeyOf
          takeMVar goOn
          answer <- usually submitToNode pool (request ["PING"])
          waitSlotResult mine >>= putMVar end . (,) (arrivalText answer) . outcomeText
        shared <- takeMVar key
        theirs <- mapM (onCapability 0 . whenCellIs shared . blocked pool) ["first", "second"]
        putMVar goOn ()
        within 15 (waitUntil ((== [2, 2]) . map gaugeInFlight <$> poolGauges pool))
        mapM_ (pushTo server) ["mine", "first", "second"]
        (said, _) <- takeMVar end
        said `shouldBe` Right (SimpleString "PONG")
        mapM_ waitSlotResult theirs

  it "has a thread wait for its reply where it may have commands in flight, if it certainly has none" . within 25 $
    withServer serverDefaults $ \server ->
      withPoolOf (setSilenceLimit Nothing) server $ \pool -> do
        openBoth pool
        key <- newEmptyMVar
        first <- onCapability 0 $ do
          myThreadId >>= putMVar key . orderKeyOf
          blocked pool "first"
        shared <- takeMVar key
        second <- onCapability 0 (whenCellIs shared (blocked pool "second"))
        end <- newEmptyMVar
        void . forkOn 1 $ whenCellIs shared (usually submitToNode pool (request ["PING"])) >>= putMVar end . arrivalText
        within 15 (waitUntil ((== [3, 0]) . map gaugeInFlight <$> poolGauges pool))
        mapM_ (pushTo server) ["first", "second"]
        takeMVar end >>= (`shouldBe` Right (SimpleString "PONG"))
        mapM_ waitSlotResult [first, second]

  -- Threads that share one cell get two commands on each connection: the first two wait for room on
  -- their own connection, and so are not yet counted when the others look.
  it "waits for commands that may be a thread's no longer than a command may take, and says that nothing was sent" . within 25 $
    withServer serverDefaults $ \server ->
      withPoolOf (setCommandTimeout (Just (seconds 1.5)) . setLimits limitsDefaults {limitInFlight = 2}) server $ \pool -> do
        openBoth pool
        mapM_ (onCapability 0 . void . blocked pool) ["first", "second"]
        key <- newEmptyMVar
        void . forkOn 0 $ do
          myThreadId >>= putMVar key . orderKeyOf
          void (blocked pool "third")
        shared <- takeMVar key
        waitUntil ((== 1) . sum . map gaugeWaiting <$> poolGauges pool)
        void . forkOn 0 . void $ whenCellIs shared (blocked pool "fourth")
        waitUntil ((== 2) . sum . map gaugeWaiting <$> poolGauges pool)
        others <- mapM (onCapability 1 . whenCellIs shared . blocked pool) ["fifth", "sixth"]
        mapM_ (pushTo server) ["first", "second"]
        waitUntil ((== [2, 2]) . map gaugeInFlight <$> poolGauges pool)
        waitUntil ((== 0) . sum . map gaugeWaiting <$> poolGauges pool)
        early <- onCapability 0 (whenCellIs shared (usually submitToNodeAsync pool (request ["PING"]) >>= waitSlotResult))
        outcomeText early `shouldBe` Left (TimeoutError (TimeoutFailure "" NotSent (seconds 1.5) Nothing))
        mapM_ (pushTo server) ["third", "fourth", "fifth", "sixth"]
        mapM_ waitSlotResult others
        waitUntil ((== 0) . sum . map gaugeInFlight <$> poolGauges pool)
        again <- onCapability 0 (whenCellIs shared (usually submitToNodeAsync pool (request ["PING"]) >>= waitSlotResult))
        outcomeText again `shouldBe` Right (SimpleString "PONG")

  -- The time of both connections is over, and no new connection can be opened.
  it "keeps a thread that submits many commands to a frozen server for no longer than one command and one attempt to connect may take" . within 25 $
    withServer serverDefaults $ \server ->
      withPoolOf (setCommandTimeout (Just (seconds 1)) . setConnectTimeout (seconds 1) . setLimits limitsDefaults {limitInFlight = 100}) server $ \pool -> do
        openBoth pool
        begun <- getMonotonicTime
        slots <- bracket_ (freeze server) (thaw server) . onCapability 0 $ replicateM 20000 (usually submitToNodeAsync pool (request ["PING"]))
        ended <- getMonotonicTime
        ended - begun `shouldSatisfy` (< 3)
        failures <- length . filter (either (const True) (const False)) <$> mapM (fmap outcomeText . waitSlotResult) slots
        failures `shouldSatisfy` (>= 19900)

  it "does not keep a thread that goes on waiting for a connection that could not be opened, and tells it why" . within 25 $
    withServer serverDefaults $ \server ->
      withPoolOf (setConnectTimeout (seconds 1) . setBackoff backoffDefaults {backoffFirst = milliseconds 10, backoffCap = milliseconds 10}) server $ \pool -> bracket_ (freeze server) (thaw server) $ do
        first <- usually submitToNodeAsync pool (request ["PING"]) >>= waitSlotResult
        -- For longer than an attempt takes, and for many times the backoff.
        end <- (+ 1.5) <$> getMonotonicTime
        let goOn longest = do
              begun <- getMonotonicTime
              again <- usually submitToNodeAsync pool (request ["PING"]) >>= waitSlotResult
              outcomeText again `shouldBe` outcomeText first
              ended <- getMonotonicTime
              let longest' = max longest (ended - begun)
              if ended < end then goOn longest' else pure longest'
        longest <- goOn 0
        longest `shouldSatisfy` (< 0.7)

  -- A pool opens one connection at a time, so the thread waits for two.
  it "keeps a thread that waits for connections for no longer than its command may take" . within 25 $
    withServer serverDefaults $ \server -> do
      issued <- newIORef (0 :: Int)
      gates <- replicateM 2 newEmptyMVar
      let issuing = do
            number <- atomicModifyIORef' issued (\count -> (count + 1, count))
            mapM_ takeMVar (take 1 (drop number gates))
            pure (issuedCredentials anybody)
      withPoolOf (setCommandTimeout (Just (seconds 2)) . setConnectTimeout (seconds 20) . setCredentialsFrom issuing) server $ \pool -> do
        void . forkOn 0 . void $ usually submitToNode pool (request ["PING"])
        waitUntil ((== 1) <$> readIORef issued)
        end <- newEmptyMVar
        void . forkOn 1 $ do
          begun <- getMonotonicTime
          said <- usually submitToNode pool (request ["PING"])
          ended <- getMonotonicTime
          putMVar end (ended - begun, arrivalText said)
        halfway <- (+ 1.5) <$> getMonotonicTime
        waitUntil ((>= halfway) <$> getMonotonicTime)
        mapM_ (`putMVar` ()) (take 1 gates)
        (waited, said) <- takeMVar end
        said `shouldSatisfy` \case
          Left (TimeoutError (TimeoutFailure "" NotSent limit (Just (_, ConnectTimedOut soFar)))) -> limit == seconds 2 && soFar < seconds 20
          _ -> False
        waited `shouldSatisfy` (< 3)
        mapM_ (`putMVar` ()) (drop 1 gates)

  it "has whoever only connects wait for that, however little time a command has" . within 25 $
    withServer serverDefaults $ \server -> do
      issued <- newIORef (0 :: Int)
      gate <- newEmptyMVar
      let issuing = issuedCredentials anybody <$ (modifyIORef' issued (+ 1) *> readMVar gate)
      withPoolOf (setCommandTimeout (Just (seconds 0.1)) . setConnectTimeout (seconds 20) . setCredentialsFrom issuing) server $ \pool -> do
        end <- newEmptyMVar
        void (forkOn 0 (connectNode pool >>= putMVar end))
        waitUntil ((== 1) <$> readIORef issued)
        said <- onCapability 0 (usually submitToNode pool (request ["PING"]))
        arrivalText said `shouldSatisfy` \case
          Left (TimeoutError (TimeoutFailure "" NotSent limit (Just (_, ConnectTimedOut soFar)))) -> limit == seconds 0.1 && soFar < seconds 20
          _ -> False
        putMVar gate ()
        takeMVar end `shouldReturn` Right ()

  it "closes its connections although an attempt to open another cannot be given up" . within 25 $
    withServer serverDefaults $ \server -> do
      issued <- newIORef (0 :: Int)
      gate <- newEmptyMVar
      let issuing = do
            number <- atomicModifyIORef' issued (\count -> (count + 1, count))
            unless (number == 0) (uninterruptibleMask_ (readMVar gate))
            pure (issuedCredentials anybody)
      withPoolOf (setCommandTimeout Nothing . setSilenceLimit Nothing . setConnectTimeout (seconds 20) . setCredentialsFrom issuing) server $ \pool -> do
        slot <- onCapability 0 (blocked pool "list")
        void . forkOn 1 . void $ usually submitToNode pool (request ["PING"])
        waitUntil ((== 2) <$> readIORef issued)
        closed <- newEmptyMVar
        void (forkIO (closeMultiplexPool 0 pool *> putMVar closed ()))
        outcome <- within 10 (waitSlotResult slot) `finally` putMVar gate ()
        takeMVar closed
        (errorDelivery <$> either Just (const Nothing) (outcomeText outcome)) `shouldBe` Just MaybeExecuted
  where
    anybody = Credentials {credentialsUser = Nothing, credentialsPassword = toSecret "any"}
    blocked pool list = usually submitToNodeAsync pool (request ["BLPOP", list, "0"])
    pushTo server list = void (command server ["RPUSH", list, "element"])

arrivalText :: Arrival -> Either Error Value
arrivalText = \case
  Plain value -> Right value
  other -> outcomeText (arrivalOutcome other)

-- | One part of a script: the thread submits this many commands without waiting for a reply, one by
-- one or as one run, and then one of the ends happens.
data Part = Part {partCommands :: Int, partTogether :: Bool, partEnd :: End}
  deriving stock (Eq, Show)

data End
  = GoesOn
  | IsMoved
  | -- | The thread waits until all its commands have been answered. After that it may change the
    -- connection.
    Waits
  deriving stock (Eq, Show)

-- | A script that begins with a move while commands are in flight, and has more commands after it.
-- A script without these shows nothing.
anyScript :: Gen [Part]
anyScript = (:) <$> part (pure IsMoved) <*> (choose (1, 6) >>= (`vectorOf` part anyEnd))
  where
    part end = Part <$> choose (1, 30) <*> arbitrary <*> end
    anyEnd = frequency [(4, pure IsMoved), (1, pure GoesOn), (1, pure Waits)]

shrinkPart :: Part -> [Part]
shrinkPart part@Part {partCommands, partTogether} =
  [part {partCommands = fewer} | fewer <- shrink partCommands, fewer > 0]
    <> [part {partTogether = False} | partTogether]

-- | Performs a script while the server is stopped; the server runs only while the thread waits.
-- Returns the commands' slots, in order.
perform :: Server -> MultiplexPool -> [Part] -> IO [ResponseSlot]
perform server pool = go 1 0
  where
    go next unanswered = \case
      [] -> pure []
      Part {partCommands, partTogether, partEnd} : rest -> do
        let encoded = [request ["RPUSH", listKey, Char8.pack (show n)] | n <- take partCommands [next :: Int ..]]
            submitted = unanswered + partCommands
        slots <- if partTogether then together encoded else mapM (usually submitToNodeAsync pool) encoded
        -- Otherwise a move shows nothing.
        inFlight `shouldReturn` submitted
        left <- case partEnd of
          GoesOn -> pure submitted
          IsMoved -> submitted <$ moveAway
          Waits -> 0 <$ bracket_ (thaw server) (freeze server) (waitUntil ((== 0) <$> inFlight))
        (slots <>) <$> go (next + partCommands) left rest
    inFlight = sum . map gaugeInFlight <$> poolGauges pool
    together encoded = do
      slots <- mapM (const newResponseSlot) encoded
      slots <$ usually (submitRunToNode Pool.GoesOn) pool (zip encoded slots)

listKey :: ByteString
listKey = "order"

numbered :: Int -> Value
numbered = BulkString . Char8.pack . show

-- | Runs an action with a server of its own and a pool whose connections, so many, are open.
withOpenPool :: Int -> ((Server, MultiplexPool) -> IO ()) -> IO ()
withOpenPool count action =
  withServer serverDefaults $ \server ->
    -- The probe of a server that stays stopped for long would count among the commands in flight.
    withPoolOf (setMuxCount (Just count) . setCommandTimeout Nothing . setSilenceLimit Nothing) server $ \pool -> openAll count pool *> action (server, pool)

withPoolOf :: (Config -> Config) -> Server -> (MultiplexPool -> IO a) -> IO a
withPoolOf change server = bracket open (closeMultiplexPool 0)
  where
    config = change (setMuxCount (Just 2) (standaloneConfig (Char8.pack (serverHost server)) (fromIntegral (serverPort server))))
    open = do
      connector <- newConnector config >>= either (throwIO . userError . show) pure
      setup <- newConnectionSetup config connector
      newMultiplexPool setup ForPrimary (const (pure ())) (TcpEndpoint (Char8.pack (serverHost server)) (fromIntegral (serverPort server)))

-- | Submits with the command timeout of the pool's configuration.
usually :: (MultiplexPool -> Deadline -> a -> IO b) -> MultiplexPool -> a -> IO b
usually submit pool asked = usualDeadline pool >>= \deadline -> submit pool deadline asked

-- | Expects that closing ended the command after it had been sent.
closedInFlight :: ResponseSlot -> IO ()
closedInFlight slot =
  (fmap outcomeText <$> trySlotResult slot) >>= \case
    Just (Left (ConnectionError ConnectionFailure {connectionDelivery = MaybeExecuted, connectionCause = ClosedLocally})) -> pure ()
    other -> expectationFailure (show other)

-- | Opens both connections beforehand, because a stopped server accepts no new connection.
openBoth :: MultiplexPool -> IO ()
openBoth = openAll 2

-- | Opens so many connections beforehand: which of its capability's a thread uses depends on its number.
openAll :: Int -> MultiplexPool -> IO ()
openAll count pool = waitUntil $ do
  mapM_ (openOn pool) [0, 1]
  (== count) . length <$> poolGauges pool

openOn :: MultiplexPool -> Int -> IO ()
openOn pool place = do
  said <- newEmptyMVar
  void (forkOn place (usually submitToNode pool (request ["PING"]) >>= putMVar said . arrivalText))
  takeMVar said >>= \case
    Right (SimpleString "PONG") -> pure ()
    Right other -> expectationFailure (show other)
    Left failure -> throwIO failure

-- | Runs an action in a thread that the runtime may move. It may not move a test's own thread.
inThread :: IO a -> IO a
inThread action = do
  end <- newEmptyMVar
  thread <- forkFinally action (putMVar end)
  (takeMVar end >>= either throwIO pure) `finally` killThread thread

-- | Runs an action in a thread that stays on a capability.
onCapability :: Int -> IO a -> IO a
onCapability place action = do
  end <- newEmptyMVar
  _ <- mask_ (forkOnWithUnmask place (\unmask -> try (unmask action) >>= putMVar end))
  takeMVar end >>= either (\failure -> throwIO (failure :: SomeException)) pure

-- | Runs an action in a thread whose commands are counted in the same cell as the given one's, but
-- under another key, on the same capability.
whenCellIs :: OrderKey -> IO a -> IO a
whenCellIs key action = do
  mine <- orderKeyOf <$> myThreadId
  if mine /= key && (mine - key) `rem` 4096 == 0
    then action
    else do
      (place, _) <- myThreadId >>= threadCapability
      onCapability place (whenCellIs key action)

-- | Whether the process spends a tenth of a processor in one of so many stretches of 0.2 s.
spends :: Int -> IO Bool
spends looks = do
  begun <- getCPUTime
  threadDelay 200000
  ended <- getCPUTime
  let spent = ended - begun > 20000000000
  if spent || looks <= 1 then pure spent else spends (looks - 1)

waitUntil :: IO Bool -> IO ()
waitUntil condition = condition >>= \holds -> unless holds (yield >> waitUntil condition)

here :: IO Int
here = fst <$> (myThreadId >>= threadCapability)

-- | Makes the runtime move the calling thread to another capability. A thread that must stay keeps
-- this capability busy, so the runtime gives the calling thread to an idle one.
moveAway :: IO ()
moveAway = do
  place <- here
  over <- newIORef False
  let occupy = readIORef over >>= \ended -> unless ended (yield >> occupy)
      untilMoved = here >>= \now -> unless (now /= place) (yield >> untilMoved)
  bracket_ (forkOn place occupy) (writeIORef over True) (within 5 untilMoved)
