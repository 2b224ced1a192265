-- | Every caller gets its own reply, whatever the callers do meanwhile.
module MultiplexerSpec (spec) where

import Control.Concurrent
import Control.Concurrent.STM
import Control.Exception
import Control.Monad
import Data.ByteString qualified as ByteString
import Data.ByteString.Char8 qualified as Char8
import Data.IORef
import Fake
import Peer
import Redis.Duration
import Redis.Error
import Redis.Internal.Config (Polling (PollUpTo))
import Redis.Internal.Network.Multiplexer
import Redis.Internal.Protocol.Encode (request)
import Redis.Value
import System.Timeout (timeout)
import Test.Hspec
import Test.Hspec.QuickCheck (modifyMaxSuccess, prop)
import Test.QuickCheck hiding (within)

-- | What a caller does with a command.
data Act
  = Waits
  | -- | Submits this many commands, and waits for them afterwards, newest first.
    Pipelines Int
  | Runs Int
  | -- | Gives up after this many microseconds.
    GivesUp Int
  | -- | Never waits.
    Forgets
  deriving stock (Eq, Show)

newtype Interrupt = Interrupt Int
  deriving stock (Eq, Show)

instance Exception Interrupt

genAct :: Disturbance -> Gen Act
genAct disturbance =
  frequency $
    [(2, GivesUp <$> choose (1, 300)) | disturbance == GiveUp]
      <> [ (4, pure Waits),
           (2, Pipelines <$> choose (1, 12)),
           (2, Runs <$> choose (1, 4)),
           (1, pure Forgets)
         ]

genManners :: Gen Manners
genManners = do
  mannersReadMost <- elements [1, 7, 100, maxBound]
  mannersWriteMost <- elements [1, 5, 100, maxBound]
  mannersRefuse <- elements [0, 2, 5]
  mannersWindow <- elements [16, 256, 65536]
  pure Manners {mannersReadMost, mannersWriteMost, mannersRefuse, mannersWindow}

-- | Performs an act with tokens from this number on. Returns the replies that should not have come.
perform :: Multiplexer -> Int -> Act -> IO [String]
perform mux n = \case
  Waits -> wrong [n] . pure <$> usually submitCommand mux (tokenRequest n)
  Pipelines count -> do
    slots <- mapM (usually submitCommandAsync mux . tokenRequest) (numbers count)
    wrong (reverse (numbers count)) <$> mapM waitSlotResult (reverse slots)
  Runs count -> do
    slots <- usually submitRun mux (map tokenRequest (numbers count))
    wrong (numbers count) <$> mapM waitSlotResult slots
  GivesUp micros ->
    maybe [] (wrong [n] . pure) <$> timeout micros (usually submitCommand mux (tokenRequest n))
  Forgets -> [] <$ usually submitCommandAsync mux (tokenRequest n)
  where
    numbers count = [n .. n + count - 1]
    wrong asked got =
      [ show (token k) <> " was answered with " <> show answer
        | (k, answer) <- zip asked (map outcomeText got),
          answer /= Right (BulkString (token k))
      ]

-- | What is thrown to callers. A caller gets exceptions from one source only: a caller that gives
-- up is not interrupted as well.
data Disturbance
  = -- | Each caller ends its own waits by a timeout.
    GiveUp
  | -- | One thread interrupts all callers.
    AreInterrupted
  deriving stock (Eq)

spec :: Spec
spec = describe "a multiplexer" $ do
  givesEveryCallerItsOwn "that give up" GiveUp
  givesEveryCallerItsOwn "that are interrupted" AreInterrupted
  it "never lets anything come between the commands of a run" . within 20 $ do
    heard <- newIORef []
    let answer fake parts = modifyIORef' heard (parts :) *> echoing fake parts
    withMux plainSettings badManners answer $ \_ mux -> do
      ends <- forM [0 .. 7] $ \who -> do
        end <- newEmptyMVar
        end <$ forkIO (perform' mux who >>= putMVar end)
      mapM takeMVar ends >>= (`shouldBe` replicate 8 [])
    order <- mapM number . reverse <$> readIORef heard
    fmap (filter (not . contiguous) . chunksByRun) order `shouldBe` Just []

  it "hands on an invalidation within a reply, as servers with the fault redis#8935 send it" . within 20 $
    forM_ [False, True] $ \checks -> do
      pushes <- newIORef []
      let settings = plainSettings {muxReplyChecks = checks, muxOnPush = \push -> modifyIORef' pushes (push :)}
          expiring fake = \case
            "MGET" : _ -> say fake "*2\r\n$1\r\nA\r\n>2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nb\r\n$-1\r\n"
            parts -> echoing fake parts
      withMux settings badManners expiring $ \_ mux -> do
        when checks (countFromHere mux)
        slots <- mapM (usually submitCommandAsync mux) (request ["MGET", "a", "b"] : map tokenRequest [1 .. 3])
        mapM (fmap outcomeText . waitSlotResult) slots
          `shouldReturn` map Right (Array [BulkString "A", NullOf NullBulkString] : map (BulkString . token) [1 .. 3])
      readIORef pushes `shouldReturn` [Push [BulkString "invalidate", Array [BulkString "b"]]]

  it "hands pushes to their handler, between replies, and lives with one that throws" . within 20 $ do
    pushes <- newIORef []
    let settings = plainSettings {muxOnPush = \push -> modifyIORef' pushes (push :) *> throwIO (userError "handler")}
        answer fake parts = do
          say fake ">2\r\n+news\r\n:1\r\n"
          echoing fake parts
          say fake "|1\r\n+meta\r\n#t\r\n>2\r\n+news\r\n:2\r\n"
    withMux settings badManners answer $ \_ mux -> do
      forM_ [1 .. 20] $ \n -> perform mux n Waits >>= (`shouldBe` [])
      eventually ((== 40) . length <$> readIORef pushes)
    seen <- readIORef pushes
    filter (`notElem` [Push [SimpleString "news", Integer 1], Push [SimpleString "news", Integer 2]]) seen `shouldBe` []

  it "sends a command however many pushes come" . within 20 $ do
    asked <- newIORef (0 :: Int)
    feed <- newIORef (pure ())
    let settings = plainSettings {muxOnPush = const (join (readIORef feed))}
        -- The peer is silent until it has received all four. The submitter of the last one does not
        -- send it, because enough commands are in flight.
        answer fake _ = do
          heard <- atomicModifyIORef' asked (\n -> (n + 1, n + 1))
          when (heard == 4) $ do
            writeIORef feed (pure ())
            say fake "+1\r\n+2\r\n+3\r\n+4\r\n"
    withMux settings goodManners answer $ \fake mux -> do
      -- Every push is followed by another one, so there is always something to read.
      pushed <- newIORef (0 :: Int)
      writeIORef feed (modifyIORef' pushed (+ 1) *> say fake ">1\r\n+again\r\n")
      say fake ">1\r\n+again\r\n"
      eventually ((> 10) <$> readIORef pushed)
      slots <- mapM (usually submitCommandAsync mux . tokenRequest) [1 .. 4]
      mapM (fmap outcomeText . waitSlotResult) slots
        >>= (`shouldBe` map (Right . SimpleString) ["1", "2", "3", "4"])

  it "sends each command to a peer that answers nothing" . within 20 $ do
    heard <- newIORef (0 :: Int)
    withMux plainSettings goodManners (\_ _ -> modifyIORef' heard (+ 1)) $ \_ mux ->
      -- So many that the submitters leave the later ones to the reader, which sends them before it
      -- reads.
      forM_ [1 .. 24] $ \n -> do
        void (usually submitCommandAsync mux (tokenRequest n))
        eventually ((== n) <$> readIORef heard)

  it "keeps the attributes of a reply" . within 10 $
    withMux plainSettings goodManners (\fake _ -> say fake "|1\r\n+ttl\r\n:9\r\n$1\r\nx\r\n") $ \_ mux ->
      (outcomeText <$> usually submitCommand mux (request ["GET", "k"]))
        >>= (`shouldBe` Right (WithAttributes [(SimpleString "ttl", Integer 9)] (BulkString "x")))

  it "takes a reply of 64 MB, and small ones behind it" . within 25 $ do
    let large = ByteString.replicate (64 * 1024 * 1024) 120
        answer fake = \case
          ["LARGE"] -> say fake (bulk large)
          parts -> echoing fake parts
    withMux plainSettings goodManners {mannersReadMost = 1024 * 1024} answer $ \_ mux -> do
      slot <- usually submitCommandAsync mux (request ["LARGE"])
      behind <- usually submitCommandAsync mux (tokenRequest 1)
      got <- outcomeText <$> waitSlotResult slot
      (got == Right (BulkString large)) `shouldBe` True
      (outcomeText <$> waitSlotResult behind) >>= (`shouldBe` Right (BulkString (token 1)))

  it "sends a request of 64 MB to a peer that reads slowly, and others behind it" . within 25 $ do
    fake <- newFake goodManners {mannersWindow = 100000, mannersWriteMost = 65536} 1
    let size = 64 * 1024 * 1024
        small = 40 * 31
        large = ByteString.replicate size 120
    mux <- openMux plainSettings fake
    slots <- newEmptyMVar
    void . forkIO $ do
      first <- usually submitCommandAsync mux (request [large])
      rest <- replicateM 40 (usually submitCommandAsync mux (request ["ECHO", Char8.replicate 10 'y']))
      putMVar slots (first : rest)
    let everything = size + ByteString.length "*1\r\n$67108864\r\n\r\n" + small
        drain heard
          | heard >= everything = pure heard
          | otherwise = hear fake >>= maybe (pure heard) (drain . (heard +) . ByteString.length)
    drain 0 >>= (`shouldBe` everything)
    replicateM_ 41 (say fake "+OK\r\n")
    takeMVar slots >>= mapM (fmap outcomeText . waitSlotResult) >>= (`shouldBe` replicate 41 (Right (SimpleString "OK")))
    abortMultiplexer mux
    breaches fake >>= (`shouldBe` [])

  it "answers what is in flight when it is closed with grace, and refuses what comes later" . within 10 $ do
    gate <- newEmptyMVar
    withMux plainSettings goodManners (\fake parts -> readMVar gate *> echoing fake parts) $ \_ mux -> do
      slots <- mapM (usually submitCommandAsync mux . tokenRequest) [1 .. 9]
      closed <- newEmptyMVar
      void . forkIO $ closeMultiplexer 20 mux *> putMVar closed ()
      eventually (not <$> isOpen mux)
      late <- outcomeText <$> usually submitCommand mux (tokenRequest 10)
      late `shouldBe` Left (ConnectionError (ConnectionFailure "" NotSent (muxEndpoint mux) ClosedLocally))
      putMVar gate ()
      takeMVar closed
      mapM (fmap outcomeText . waitSlotResult) slots >>= (`shouldBe` [Right (BulkString (token n)) | n <- [1 .. 9]])

  it "refuses a run that is longer than the connection can hold" . within 10 $
    withMux plainSettings {muxMaxInFlight = 4} goodManners echoing $ \_ mux -> do
      slots <- usually submitRun mux (map tokenRequest [1 .. 17])
      mapM (fmap outcomeText . waitSlotResult) slots >>= (`shouldBe` replicate 17 (Left (RefusedError (RunTooLong 17))))
      perform mux 1 Waits >>= (`shouldBe` [])
  where
    perform' mux who = concat <$> forM [0 .. 20] (\step -> perform mux (who * 1000 + step * 10) (Runs 5))
    number = \case
      [_, text] -> fst <$> Char8.readInt (Char8.drop 6 text)
      _ -> Nothing
    -- Each run has five commands, and nothing else is sent.
    chunksByRun numbers = case splitAt 5 numbers of
      ([], _) -> []
      (run, rest) -> run : chunksByRun rest
    contiguous run = case run of
      first : _ -> run == [first .. first + 4]
      [] -> True

-- | The property with callers to which exceptions are thrown.
givesEveryCallerItsOwn :: String -> Disturbance -> Spec
givesEveryCallerItsOwn who disturbance =
  -- 40 cases; --qc-max-success for more.
  modifyMaxSuccess ((`quot` 5) . (* 2)) . prop ("gives every caller its own reply, for any interleaving and any transport, also callers " <> who) $
    forAll (vectorOf 6 (vectorOf 12 (genAct disturbance))) $ \plans ->
      forAll genManners $ \manners ->
        forAll (elements [3, 5, 64]) $ \maxInFlight -> ioProperty . within 20 $ do
          let settings = plainSettings {muxMaxInFlight = maxInFlight, muxMaxQueued = 200, muxPolling = PollUpTo (microseconds 100)}
          found <- withMux settings manners echoing $ \fake mux -> do
            ends <- forM (zip [0 ..] plans) $ \(caller, plan) -> do
              end <- newEmptyMVar
              -- Masked between two acts; otherwise an interrupt would end the thread.
              thread <- mask $ \restore -> forkIO $ do
                problems <- forM (zip [0 ..] plan) $ \(step, act) ->
                  try (restore (perform mux (caller * 1000000 + step * 1000) act)) >>= \case
                    Right problems -> pure problems
                    Left (Interrupt _) -> pure []
                putMVar end (concat problems)
              pure (thread, end)
            -- Interrupts two callers at a time, wherever they are: each time some more bytes have
            -- been sent and some threads have had a turn.
            disturber <- forkIO . when (disturbance == AreInterrupted) . forM_ (cycle [1 .. 7 :: Int]) $ \n -> do
              forM_ (take 2 (drop (n `rem` 6) (map fst ends))) (`throwTo` Interrupt n)
              sent <- heardBytes fake
              atomically (readTVar (fakeAccepted fake) >>= check . (>= sent + n * 80))
              replicateM_ n yield
            found <- concat <$> mapM (readMVar . snd) ends `finally` killThread disturber
            eventually ((== 0) . gaugeInFlight <$> muxGauges mux)
            pure found
          pure (found === [])
