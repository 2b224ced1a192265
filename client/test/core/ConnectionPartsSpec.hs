-- | The small parts of a connection, each compared with a simple model: a queue, a concatenation, a
-- count, an average.
module ConnectionPartsSpec (spec) where

import Control.Concurrent
import Control.Monad (foldM, forM, forM_, replicateM, replicateM_, unless, void, when)
import Data.ByteString (ByteString)
import Data.ByteString qualified as ByteString
import Data.IORef
import Data.Int (Int64)
import Data.List (nub)
import Data.List qualified as List
import Foreign.Ptr (castPtr)
import Redis.Config (Backoff (..), Polling (..), backoffDefaults)
import Redis.Duration
import Redis.Error
import Redis.Internal.Command.Make (fromArguments)
import Redis.Internal.Config (delayFor)
import Redis.Internal.Network.InFlight
import Redis.Internal.Network.Open
import Redis.Internal.Network.Outgoing
import Redis.Internal.Network.Reader
import Redis.Internal.Protocol.Encode (request, requestBytes, requestSize)
import Redis.Value
import Test.Hspec hiding (after, before)
import Test.Hspec.QuickCheck (prop)
import Test.QuickCheck hiding (Failure)

spec :: Spec
spec = describe "the parts of a connection" $ do
  describe "the ring of pending commands" ring
  describe "the slot of a reply" slots
  describe "the write buffer" buffer
  describe "the counts of a thread's commands" counts
  describe "the polling policy" polling
  describe "the backoff" backoff
  describe "reconnecting" reconnecting

ring :: Spec
ring = do
  prop "gives commands back in the order they came, however often it went round and grew" $
    -- Small rings wrap around, large ones grow: more commands are pushed than popped.
    forAll (elements [(1, 9), (200, 1000)] >>= chooseInt) $ \size -> forAll (listOf (frequency [(2, pure True), (1, pure False)])) $ \wishes -> ioProperty $ do
      nobody <- newFilledSlot (Reply Null)
      pendings <- newPendingRing size nobody
      let capacity = ringCapacity pendings
          go _ [] waiting = pure (Right waiting)
          go n (push : later) waiting
            | push,
              length waiting < capacity = do
              slot <- newFilledSlot (Reply (Integer (fromIntegral n)))
              pushed pendings (RingEntry slot (3 * n) (fromIntegral (5 * n)) (fromIntegral (6 * n)) (7 * n))
              go (n + 1) later (waiting <> [n])
            | not push,
              first : rest <- waiting = do
              looked <- ringHead pendings >>= ringPeek pendings >>= facts
              popped <- ringPop pendings >>= facts
              -- Only now and then, as the reader does after it has read many replies.
              when (first `rem` 3 == 0) (ringPublish pendings)
              if looked == factsOf first && popped == looked then go n later rest else pure (Left (first, popped))
            | otherwise = go n later waiting
      -- Many more commands than the ring has cells, so that it wraps around.
      end <- go 1 (concat (replicate 10 wishes)) []
      inside <- (-) <$> ringTail pendings <*> ringHead pendings
      pure (fmap length end === Right inside)

  prop "has room for as many as were asked for" $
    forAll (chooseInt (1, 5000)) $ \size -> ioProperty $ do
      nobody <- newFilledSlot (Reply Null)
      (>= size) . ringCapacity <$> newPendingRing size nobody

  it "loses nothing when it grows while commands are taken out" $ do
    nobody <- newFilledSlot (Reply Null)
    -- A new ring each time, because a ring grows only a few times.
    replicateM_ 200 $ do
      pendings <- newPendingRing 4096 nobody
      done <- newEmptyMVar
      let count = 4096 :: Int
          take' n
            | n == count = pure []
            | otherwise = do
              inside <- (-) <$> ringTail pendings <*> ringHead pendings
              if inside <= 0
                then yield *> take' n
                else do
                  found <- ringPop pendings >>= facts
                  ringPublish pendings
                  if found == factsOf n then take' (n + 1) else pure [(n, found)]
      void . forkIO $ take' 0 >>= putMVar done
      forM_ [0 .. count - 1] $ \n -> do
        slot <- newFilledSlot (Reply (Integer (fromIntegral n)))
        pushed pendings (RingEntry slot (3 * n) (fromIntegral (5 * n)) (fromIntegral (6 * n)) (7 * n))
      takeMVar done `shouldReturn` []

  it "keeps no slot that was taken out" $ do
    nobody <- newFilledSlot (Reply (SimpleString "nobody"))
    pendings <- newPendingRing 4 nobody
    slot <- newFilledSlot (Reply (Integer 1))
    pushed pendings (RingEntry slot 1 1 1 1)
    position <- ringHead pendings
    _ <- ringPop pendings
    RingEntry {entrySlot} <- ringPeek pendings position
    said <- outcomeOf entrySlot
    said `shouldBe` Just (SimpleString "nobody")

  it "uses no cell again before it was published that its command was taken out" $ do
    nobody <- newFilledSlot (Reply Null)
    pendings <- newPendingRing 64 nobody
    forM_ [1 .. 64] $ \n -> do
      slot <- newFilledSlot (Reply (Integer n))
      pushed pendings (RingEntry slot 0 0 0 0)
    replicateM_ 64 (ringPop pendings)
    ringReady pendings 1 `shouldReturn` False
    ringPublish pendings
    ringReady pendings 64 `shouldReturn` True

  it "remembers whose time is over" $ do
    nobody <- newFilledSlot (Reply Null)
    pendings <- newPendingRing 4 nobody
    forM_ [10, 20] $ \deadline -> pushed pendings (RingEntry nobody 0 deadline 0 0)
    ringExpire pendings 0
    mapM (fmap entryDeadline . ringPeek pendings) [0, 1] `shouldReturn` [expired, 20]
  where
    pushed pendings one = do
      ready <- ringReady pendings 1
      unless ready (ringReserve pendings 1)
      ringPush pendings one
    facts :: RingEntry -> IO (Maybe Value, Int, Int64, Int64, Int)
    facts RingEntry {entrySlot, entryEnd, entryDeadline, entryBegan, entryOrderKey} = do
      value <- outcomeOf entrySlot
      pure (value, entryEnd, entryDeadline, entryBegan, entryOrderKey)
    factsOf n = (Just (Integer (fromIntegral n)), 3 * n, fromIntegral (5 * n), fromIntegral (6 * n), 7 * n)
    outcomeOf slot =
      -- Every slot in these tests is filled.
      waitSlotResult slot >>= \case
        Reply value -> pure (Just value)
        _ -> pure Nothing

slots :: Spec
slots = do
  it "keeps what it was filled with first, of whatever kind" $
    forM_ [(first, second) | first <- outcomes, second <- outcomes] $ \(first, second) -> do
      slot <- newResponseSlot
      mapM_ (fillSlot slot 0) [first, second]
      outcome <- waitSlotResult slot
      show (asEither outcome) `shouldBe` show (asEither first)

  it "keeps it beside a function that a failure is handed on to, which is told once, and of nothing that comes after a plain reply" $
    forM_ [(first, second) | first <- outcomes, second <- outcomes] $ \(first, second) -> do
      told <- newIORef []
      reply <- newEmptyMVar
      let given = fromArguments ["PING"]
          handedOn client _ node Handover {handoverBegan, handoverOutcome, handoverResult} = do
            modifyIORef' told ((client, node, handoverBegan, asEither handoverOutcome) :)
            void (tryPutMVar handoverResult (Right Null))
          slot = Retrying reply given 'c' 'n' handedOn
      sequence_ [fillSlot (anySlot slot) began outcome | (began, outcome) <- [(7, first), (8, second)]]
      arrival <- waitArrival (anySlot slot)
      troubles <- readIORef told
      case (asEither first, arrival) of
        (Right value@(Integer _), Plain kept) -> (kept, troubles) `shouldBe` (value, [])
        (trouble, HandedOn kept result) -> do
          (asEither kept, troubles) `shouldBe` (trouble, [('c', 'n', 7, trouble)])
          -- The result that the function has filled in.
          tryReadMVar result `shouldReturn` Just (Right Null)
        _ -> expectationFailure (show (asEither first) <> " was kept as something else")

  it "tells its action once, of what came first" $ do
    told <- newIORef []
    slot <- newTellingSlot (\outcome -> modifyIORef' told (asEither outcome :))
    mapM_ (fillSlot slot 0) outcomes
    readIORef told `shouldReturn` [Right (Integer 1)]
  where
    outcomes = [Reply (Integer 1), Reply (ErrorReply "ERR"), Failure (TimeoutError (TimeoutFailure "" MaybeExecuted (seconds 1) Nothing))]
    asEither = \case
      Reply value -> Right value
      Failure failure -> Left failure

buffer :: Spec
buffer = do
  prop "sends what was appended, all of it, in that order, whenever it is swapped" $
    forAll (listOf (frequency [(4, Just <$> genParts), (1, pure Nothing)])) $ \steps -> ioProperty $ do
      writes <- newWriteBuffer (16 * 1024)
      taken <- forM (steps <> [Nothing]) $ \case
        Just parts -> do
          before <- bufferedBytes writes
          size <- appended writes (request parts)
          after <- bufferedBytes writes
          pure (after - before == size && size == ByteString.length (requestBytes (request parts)), "")
        Nothing -> do
          waiting <- bufferedBytes writes
          block <- swapBlocks writes
          left <- bufferedBytes writes
          bytes <- withBlock block $ \start -> ByteString.packCStringLen (castPtr start, blockSize block)
          releaseBlock writes block
          pure (left == 0 && waiting == blockSize block, bytes)
      pure $
        property (all fst taken)
          .&&. ByteString.concat (map snd taken) === ByteString.concat [requestBytes (request parts) | Just parts <- steps]

  prop "takes appends while the other block is being sent" $
    forAll (listOf genParts) $ \first -> forAll (listOf genParts) $ \second -> ioProperty $ do
      writes <- newWriteBuffer (16 * 1024)
      forM_ first (appended writes . request)
      block <- swapBlocks writes
      forM_ second (appended writes . request)
      bytes <- withBlock block $ \start -> ByteString.packCStringLen (castPtr start, blockSize block)
      waiting <- bufferedBytes writes
      let whole = ByteString.concat . map (requestBytes . request)
      pure (bytes === whole first .&&. waiting === ByteString.length (whole second))
  where
    appended writes encoded = do
      ready <- bufferReady writes (requestSize encoded)
      unless ready (bufferReserve writes (requestSize encoded))
      appendRequest writes encoded
    genParts :: Gen [ByteString]
    genParts = resize 4 (listOf1 part)
    part =
      frequency
        [ (60, ByteString.pack <$> arbitrary),
          (9, flip ByteString.replicate 120 <$> chooseInt (8000, 40000)),
          (1, flip ByteString.replicate 121 <$> chooseInt (1000000, 1200000))
        ]

counts :: Spec
counts = do
  prop "say that something of a thread's is in flight just when more of its was submitted than answered" $
    forAll (listOf ((,) <$> chooseInt (0, 4) <*> arbitrary)) $ \steps -> ioProperty $ do
      table <- newOrderCounts
      keys <- someKeys 5
      let go _ [] = pure True
          go flying ((index, submit) : later) = case drop index (zip keys flying) of
            (key, open) : _
              | submit || open > 0 -> do
                (if submit then countSubmitted else countAnswered) table key
                let flying' = [if at == index then known + (if submit then 1 else -1) else known | (at, known) <- zip [0 ..] flying]
                seen <- mapM (inFlightOf table) keys
                if seen == map (\n -> if n > 0 then Some else None) flying' then go flying' later else pure False
            _ -> go flying later
      go (replicate 5 (0 :: Int)) steps

  prop "never deny a thread's own, whoever shares its cell, and do not take another's alone for its own" $
    forAll (listOf ((,) <$> chooseInt (0, 2) <*> arbitrary)) $ \steps -> ioProperty $ do
      table <- newOrderCounts
      first <- orderKeyOf <$> myThreadId
      let keys = [first, first + 4096, first + 2 * 4096]
          go _ [] = pure (property True)
          go flying ((index, submit) : later) = case drop index (zip keys flying) of
            (key, open) : _
              | submit || open > 0 -> do
                (if submit then countSubmitted else countAnswered) table key
                let flying' = [if at == index then known + (if submit then 1 else -1) else known | (at, known) <- zip [0 ..] flying]
                seen <- mapM (inFlightOf table) keys
                let alone = length (filter (> 0) flying') == 1
                    right said n
                      | n > 0 = said /= None
                      | alone && said == Some = False
                      | otherwise = True
                if and (zipWith right seen flying') then go flying' later else pure (counterexample (show (flying', seen)) False)
            _ -> go flying later
      go (replicate 3 (0 :: Int)) steps

  it "know whose commands they are while only one thread of a cell has some" $ do
    table <- newOrderCounts
    mine <- orderKeyOf <$> myThreadId
    let theirs = mine + 4096
    countSubmitted table theirs
    mapM (inFlightOf table) [mine, theirs] `shouldReturn` [None, Some]
    countSubmitted table mine
    mapM (inFlightOf table) [mine, theirs] `shouldReturn` [Perhaps, Perhaps]
    replicateM_ 2 (countAnswered table mine)
    countSubmitted table mine
    mapM (inFlightOf table) [mine, theirs] `shouldReturn` [Some, None]

  it "count nothing for commands that nobody orders" $ do
    table <- newOrderCounts
    keys <- someKeys 20
    replicateM_ 3 (countSubmitted table noOrderKey)
    countAnswered table noOrderKey
    mapM (inFlightOf table) keys >>= (`shouldBe` map (const None) keys)

  it "have a cell of its own for each of threads that began together" $ do
    keys <- someKeys 100
    length (nub (map (`rem` 4096) keys)) `shouldBe` 100
  where
    someKeys count = replicateM count $ do
      key <- newEmptyMVar
      _ <- forkIO (myThreadId >>= \thread -> putMVar key $! orderKeyOf thread)
      takeMVar key

polling :: Spec
polling = do
  prop "never polls for longer than the cap, whatever was waited" $
    forAll (chooseInt (-5, 2000)) $ \cap -> forAll (listOf genWait) $ \waits ->
      let budget = pollBudget (after waits (PollUpTo (microseconds (fromIntegral cap))))
       in counterexample (show budget) (budget >= 0 && budget <= 1000 * fromIntegral (max 0 cap))

  prop "never polls when it is told not to" $
    forAll (listOf genWait) $ \waits ->
      (pollBudget (after waits NeverPoll), wouldPoll (after waits NeverPoll)) === (0, False)

  it "polls from the start" $ do
    newPollPolicy (PollUpTo (microseconds 200)) `shouldSatisfy` wouldPoll
    pollBudget (newPollPolicy (PollUpTo (microseconds 200))) `shouldSatisfy` (> 0)

  prop "polls for about twice as long as replies take" $
    forAll (choose (0, 200000)) $ \wait ->
      let budget = pollBudget (after (replicate 300 wait) (PollUpTo (microseconds 200)))
          most = min 200000 (2 * wait + 20000)
       in counterexample (show budget) (budget <= most && budget >= most - 14)

  prop "stops for a server that is farther away than the cap, and begins again when it is near" $
    forAll (choose (200100, 10000000000)) $ \long -> forAll (choose (0, 150000)) $ \short ->
      let far = replicate 300 long
       in (wouldPoll (after far (PollUpTo (microseconds 200))), wouldPoll (after (far <> replicate 300 short) (PollUpTo (microseconds 200)))) === (False, True)

  prop "waits for short replies to gather with many in flight only, and for a quarter of them at most" $
    forAll (listOf genWait) $ \waits -> forAll (chooseInt (0, 2000)) $ \busy ->
      forAll (chooseInt (0, 500)) $ \replies -> forAll (chooseInt (3, 200)) $ \size ->
        let policy = after waits (PollUpTo (microseconds 200))
            wanted = worthGathering (Haul replies (size * replies)) busy policy
            worth = busy >= 128 && replies > 0 && size <= 64 && wouldPoll policy
         in if worth then fmap gatherBytes wanted === Just (size * min 256 (busy `quot` 4)) else wanted === Nothing

  prop "keeps its capability waiting for a tenth of a millisecond at most, and for less when less is in flight" $
    forAll (chooseInt (128, 20000)) $ \busy -> forAll (chooseInt (1, 500)) $ \replies ->
      let limit = maybe 0 gatherMicros (worthGathering (Haul replies (5 * replies)) busy (newPollPolicy (PollUpTo (microseconds 200))))
       in counterexample (show limit) (limit >= 30 && limit <= if busy < 304 then 30 else 102)

  prop "does not wait for them when it is told not to poll" $
    forAll (chooseInt (0, 2000)) $ \busy -> forAll (chooseInt (1, 500)) $ \replies ->
      worthGathering (Haul replies (5 * replies)) busy (newPollPolicy NeverPoll) === Nothing

  prop "goes on after one stall of a server that is near" $
    forAll (choose (0, 100000)) $ \wait -> forAll genWait $ \stall ->
      wouldPoll (after (replicate 300 wait <> [stall]) (PollUpTo (microseconds 200)))
  where
    after waits policy = List.foldl' (flip observeWait) (newPollPolicy policy) waits
    genWait = oneof [choose (0, 1000), choose (0, 1000000), choose (0, 100000000000)]

backoff :: Spec
backoff = do
  prop "lies between one half and the whole of the doubled delay, as far as either, and never beyond the cap" $
    forAll genBackoff $ \times -> forAll (chooseInt (1, 30)) $ \attempt -> forAll (choose (0, 1)) $ \random ->
      let delay = delayFor times attempt random
          full = min (inSeconds (backoffCap times)) (inSeconds (backoffFirst times) * 2 ^ (attempt - 1))
          ends = map (delayFor times attempt) [0, 1]
       in counterexample (show (delay, full)) (delay >= full / 2 && delay <= full) .&&. ends === [full / 2, full]

  prop "is anything in between, as the random number says" $
    forAll genBackoff $ \times -> forAll (chooseInt (1, 30)) $ \attempt -> forAll (choose (0, 1)) $ \random ->
      let delay = delayFor times attempt
       in counterexample (show (map delay [0, random, 1])) $
            (abs (2 * delay 0 - delay 1) <= 1e-9 * delay 1) .&&. (abs (delay random - delay 0 - random * (delay 1 - delay 0)) <= 1e-9 * delay 1)

  prop "stays within the cap after any number of failures" $
    forAll genBackoff $ \times -> forAll (oneof [chooseInt (1, 100000), pure maxBound]) $ \attempt -> forAll (choose (0, 1)) $ \random ->
      let delay = delayFor times attempt random
       in counterexample (show delay) (delay >= 0 && delay <= inSeconds (backoffCap times))

  prop "does not shrink from one failure to the next" $
    forAll genBackoff $ \times -> forAll (chooseInt (1, 100)) $ \attempt -> forAll (choose (0, 1)) $ \random ->
      delayFor times attempt random <= delayFor times (attempt + 1) random
  where
    genBackoff = do
      first <- choose (0.0001, 2)
      cap <- choose (first, 60)
      pure backoffDefaults {backoffFirst = seconds first, backoffCap = seconds cap}

reconnecting :: Spec
reconnecting = do
  it "lets any number of attempts begin while nothing has failed" $
    replicateM 3 (Right NoFailure) `shouldBe` mapM (const (beginAttempt 0 NoFailure)) [1 .. 3 :: Int]

  it "lets none begin before the delay has passed, then one, and tells the others why" $ do
    let (delay, troubled) = failed 1000 "first" NoFailure
    delay `shouldBe` 1
    beginAttempt (1000 + second - 1) troubled `shouldBe` Left (ConnectFailed "first")
    let trying = beginAttempt (1000 + second) troubled
    (trying >>= beginAttempt (1000 + 9 * second)) `shouldBe` Left (ConnectFailed "first")
    fmap (beginAttempt (1000 + 9 * second) . attemptAbandoned) trying `shouldBe` fmap Right trying

  it "waits longer after every failure, and not for those that failed together" $ do
    let together = iterate (snd . failed 0 "refused") NoFailure
        next now state = either (const (0, state)) (failed now "refused") (beginAttempt now state)
        delays = map fst (take 4 (iterate (next (100 * second) . snd) (failed 0 "refused" NoFailure)))
    forM_ (take 5 (drop 1 together)) $ \state -> beginAttempt second state `shouldSatisfy` either (const False) (const True)
    take 2 delays `shouldBe` [1, 2]

  it "lets any number begin when a connection was had, but forgets the failures only when one has answered somebody" $ do
    let onTrial = troubledBy 2 >>= beginAttempt (100 * second) >>= had (100 * second)
        next = fmap (beginAttempt (100 * second)) onTrial
    next `shouldBe` fmap Right onTrial
    fmap (lost (100 * second) (life (100 * second))) onTrial `shouldSatisfy` waitsUntil (104 * second)
    fmap (lost (100 * second) (life (100 * second)) {lifetimeAnswered = True}) onTrial `shouldBe` Right NoFailure
    fmap (fst . failed (100 * second) "refused") onTrial `shouldBe` Right 4

  it "forgets the failures when nothing went wrong for the longest delay" $ do
    let onTrial = troubledBy 2 >>= beginAttempt (100 * second) >>= had (100 * second)
    fmap (fst . failed (160 * second - 1) "refused") onTrial `shouldBe` Right 4
    fmap (fst . failed (160 * second) "refused") onTrial `shouldBe` Right 1
    fmap (lost (160 * second) (life (100 * second))) onTrial `shouldBe` Right NoFailure

  it "takes the loss of a connection that answered nobody for a failure, whose delay counts from when it was had" $ do
    waitsUntil (101 * second) (Right (lost (100 * second) (life (100 * second)) NoFailure)) `shouldBe` True
    beginAttempt (101 * second) (lost (101 * second) (life (100 * second)) NoFailure) `shouldSatisfy` either (const False) (const True)
    let hangingUp now state = lost now (life now) (attemptSucceeded times now state)
        untilAllowed now state = either (const (untilAllowed (now + second) state)) ((,) now) (beginAttempt now state)
        round' (now, state) = untilAllowed now (hangingUp now state)
        begun = map fst (take 9 (iterate round' (0, NoFailure)))
    zipWith (-) (drop 1 begun) begun `shouldBe` map (* second) [1, 2, 4, 8, 16, 32, 60, 60]

  it "waits for anything from one half of the delay to the whole, as the random number says" $ do
    [fst (attemptFailed times 0 random (ConnectFailed "refused") NoFailure) | random <- [0, 0.5, 1]] `shouldBe` [0.5, 0.75, 1]
    forM_ [(0, 0.5), (0.5, 0.75), (1, 1)] $ \(random, delay) ->
      waitsUntil (100 * second + round (delay * fromIntegral second :: Double)) (Right (connectionLost times (100 * second) random (life (100 * second)) NoFailure)) `shouldBe` True

  it "takes it for none if the connection answered, lived for long or was closed from here" $ do
    lost (100 * second) (life (100 * second)) {lifetimeAnswered = True} NoFailure `shouldBe` NoFailure
    lost (160 * second) (life (100 * second)) NoFailure `shouldBe` NoFailure
    lost (100 * second) (life (100 * second)) {lifetimeEnd = ClosedLocally} NoFailure `shouldBe` NoFailure

  prop "does not change its mind after a failure for what began before it" $
    forAll (choose (0, 99)) $ \before -> forAll arbitrary $ \answered ->
      let troubled = snd (failed (100 * second) "refused" NoFailure)
          older = (life (before * second)) {lifetimeAnswered = answered}
       in (lost (100 * second) older troubled, attemptSucceeded times (100 * second) troubled) === (troubled, troubled)

  prop "says the same if a connection is lost before it is known that it was had" $
    forAll (chooseInt (0, 5)) $ \count -> forAll arbitrary $ \answered ->
      let trying = troubledBy count >>= beginAttempt (100 * second)
          end = lost (100 * second) (life (100 * second)) {lifetimeAnswered = answered}
          succeeded = attemptSucceeded times (100 * second)
       in fmap (succeeded . end) trying === fmap (end . succeeded) trying
  where
    second = 1000000000
    times = backoffDefaults {backoffFirst = seconds 1, backoffCap = seconds 60}
    failed now cause = attemptFailed times now 1 (ConnectFailed cause)
    lost now = connectionLost times now 1
    had now = Right . attemptSucceeded times now
    life began = Lifetime {lifetimeBegan = began, lifetimeAnswered = False, lifetimeEnd = ClosedByPeer}
    -- A state after the given number of failures; the delay after the last one ends at 50 s.
    troubledBy count = foldM (\state _ -> snd . failed 0 "refused" <$> beginAttempt (50 * second) state) NoFailure [1 .. count :: Int]
    waitsUntil time = \case
      Right state -> either (const True) (const False) (beginAttempt (time - 1) state) && either (const False) (const True) (beginAttempt time state)
      Left _ -> False
