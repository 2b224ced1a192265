-- | The callers: what each of them does, over and over, and what it notes.
--
-- A caller has counters, keys and lists that nobody else writes, so it knows what
-- every answer must be; some counters it shares. It pauses between two calls, so
-- that the servers have time for each other.
module Soak.Load
  ( Load,
    startLoad,
    loadCallers,
    parked,
    underWay,
    stopLoad,
    ledgers,
  )
where

import Control.Concurrent (threadDelay)
import Control.Concurrent.Async
import Control.Concurrent.STM
import Control.Exception (SomeException, try)
import Control.Monad (forM, forM_, when)
import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Data.IORef
import Data.IntSet qualified as IntSet
import Data.List.NonEmpty qualified as NonEmpty
import Data.Map.Strict qualified as Map
import Data.Maybe (fromMaybe)
import GHC.Clock (getMonotonicTime)
import Redis
import Redis.Command (commandName)
import Redis.Commands qualified as Redis
import Redis.Value (Value (..))
import Soak.Audit
import Soak.Book
import Soak.Lag
import Soak.Places
import System.Random (StdGen, mkStdGen, randomR)
import System.Timeout (timeout)

-- | Callers at work.
data Load = Load
  { loadCallersOf :: [Caller],
    loadThreads :: [Async ()],
    loadGate :: TVar Gate
  }

data Gate = Open | Shut | Over
  deriving stock (Eq)

data Caller = Caller
  { callerName :: ByteString,
    callerPlace :: Place,
    callerSpeaker :: Speaker,
    callerLag :: Lag,
    callerRandom :: IORef StdGen,
    callerLedger :: IORef Ledger,
    -- | Which of the keys of that number it uses now: one that has many writes in
    -- doubt is left alone.
    callerGenerations :: IORef (Map.Map Int Int),
    callerParked :: TVar Bool,
    -- | When the call began that is under way, and what it is.
    callerUnderWay :: IORef (Maybe (Double, String)),
    -- | Told of everything that is wrong, at once.
    callerAlarm :: String -> IO ()
  }

-- | Starts the callers: for each place, with each of its clients, so many that do
-- everything, and one pair that hands elements from one to the other.
startLoad :: Lag -> Int -> Int -> (String -> IO ()) -> [Place] -> IO Load
startLoad lag seed each alarm places = do
  gate <- newTVarIO Open
  callers <-
    sequence
      [ (,) work <$> caller number name place speaker
        | (number, (work, name, place, speaker)) <- zip [1 ..] wanted
      ]
  threads <- forM callers $ \(work, one) -> async (looping gate one (work one))
  pure Load {loadCallersOf = map snd callers, loadThreads = threads, loadGate = gate}
  where
    wanted =
      concat
        [ [(anything, named place speaker number, place, speaker) | number <- [1 .. each]]
            <> [(handsOver, named place speaker (each + 1), place, speaker), (takesOver, named place speaker (each + 1), place, speaker)]
          | place <- places,
            speaker <- placeSpeakers place
        ]
    named place speaker number = placeName place <> speakerName speaker <> Char8.pack (show number)
    caller :: Int -> ByteString -> Place -> Speaker -> IO Caller
    caller number name place speaker =
      Caller name place speaker lag
        <$> newIORef (mkStdGen (seed * 1000 + number))
        <*> newIORef mempty
        <*> newIORef Map.empty
        <*> newTVarIO False
        <*> newIORef Nothing
        <*> pure alarm

-- | How many there are.
loadCallers :: Load -> Int
loadCallers = length . loadCallersOf

-- | Runs an action while nobody calls. 'Left' tells who does not come back within
-- so many seconds.
parked :: Load -> Double -> IO a -> IO (Either [String] a)
parked load patience action = do
  atomically (writeTVar (loadGate load) Shut)
  arrived <- timeout (round (patience * 1e6)) . atomically $ mapM_ (\one -> readTVar (callerParked one) >>= check) (loadCallersOf load)
  result <- case arrived of
    Just () -> Right <$> action
    Nothing -> Left <$> underWay load
  result <$ atomically (writeTVar (loadGate load) Open)

-- | The calls under way, and for how long.
underWay :: Load -> IO [String]
underWay load = do
  now <- getMonotonicTime
  calls <- forM (loadCallersOf load) $ \one -> fmap ((,) (callerName one)) <$> readIORef (callerUnderWay one)
  pure [Char8.unpack name <> ": " <> kind <> " for " <> show (now - began) <> " s" | Just (name, (began, kind)) <- calls]

-- | Ends it; tells who did not return within so many seconds.
stopLoad :: Load -> Double -> IO [String]
stopLoad load patience = do
  atomically (writeTVar (loadGate load) Over)
  ended <- timeout (round (patience * 1e6)) (mapM waitCatch (loadThreads load))
  case ended of
    Just results -> pure ["a caller's thread died: " <> show problem | Left problem <- results]
    Nothing -> do
      calls <- underWay load
      mapM_ cancel (loadThreads load)
      pure (map ("never returned: " <>) calls)

-- | What each has noted so far.
ledgers :: Load -> IO [Ledger]
ledgers = mapM (readIORef . callerLedger) . loadCallersOf

looping :: TVar Gate -> Caller -> IO () -> IO ()
looping gate caller once = go
  where
    go = do
      open <- readTVarIO gate
      case open of
        Open -> step >> go
        Over -> pure ()
        Shut -> do
          atomically (writeTVar (callerParked caller) True)
          atomically (readTVar gate >>= check . (/= Shut))
          atomically (writeTVar (callerParked caller) False)
          go
    step = do
      try once >>= \case
        Right () -> pure ()
        Left (problem :: SomeException) -> note caller (Wrong ("threw: " <> show problem))
      dice caller (1, 15) >>= threadDelay . (* 1000)

-- Noting and calling.

note :: Caller -> Event -> IO ()
note caller event = do
  before <- readIORef (callerLedger caller)
  let !after = observe event before
  writeIORef (callerLedger caller) after
  when (ledgerWrongs after > ledgerWrongs before) . forM_ (drop (length (ledgerWrong before)) (ledgerWrong after)) $ \wrong ->
    callerAlarm caller (Char8.unpack (callerName caller) <> ": " <> wrong)

dice :: Caller -> (Int, Int) -> IO Int
dice caller range = atomicModifyIORef' (callerRandom caller) (\generator -> let (rolled, next) = randomR range generator in (next, rolled))

-- | Runs a call that has so many seconds besides the command timeout, and notes how
-- long it took and what went wrong.
calling :: Caller -> String -> Double -> IO (Either Error a) -> IO (Outcome a)
calling caller kind extra action =
  timed caller kind (speakerTimeout (callerSpeaker caller) + extra) (either Failed Answered <$> action)

timed :: Caller -> String -> Double -> IO (Outcome a) -> IO (Outcome a)
timed caller kind limit action = do
  lagBefore <- lagSoFar (callerLag caller)
  began <- getMonotonicTime
  writeIORef (callerUnderWay caller) (Just (began, kind))
  outcome <- action
  ended <- getMonotonicTime
  writeIORef (callerUnderWay caller) Nothing
  lagAfter <- lagSoFar (callerLag caller)
  note caller $
    Returned
      Call {callKind = kind, callLimit = limit, callTook = ended - began, callLag = lagAfter - lagBefore}
      (case outcome of Failed problem -> Just problem; _ -> Nothing)
  pure outcome

plainly :: Caller -> Command a -> IO (Outcome a)
plainly caller command = calling caller (Char8.unpack (commandName command)) 0 (tryRun (clientOf caller) command)

-- | A call whose caller loses patience after so many microseconds.
givingUp :: Caller -> Int -> Command a -> IO (Outcome a)
givingUp caller micros command =
  timed caller "given up" (fromIntegral micros / 1e6) $
    maybe Abandoned (either Failed Answered) <$> timeout micros (tryRun (clientOf caller) command)

-- | A call on a thread of its own, which is killed after so many microseconds.
killed :: Caller -> Int -> Command a -> IO (Outcome a)
killed caller micros command =
  timed caller "killed" (fromIntegral micros / 1e6) $
    withAsync (tryRun (clientOf caller) command) $ \thread -> do
      threadDelay micros
      cancel thread
      either (const Abandoned) (either Failed Answered) <$> waitCatch thread

clientOf :: Caller -> Client
clientOf = speakerClient . callerSpeaker

-- Keys.

-- | The caller's key of this kind and number; its slot is one of the place's.
keyOf :: Caller -> ByteString -> Int -> Key
keyOf caller kind number = Key ("{" <> tag <> "}" <> callerName caller <> kind <> Char8.pack (show number)) keeping
  where
    tags = placeTags (callerPlace caller)
    (tag, keeping) = fromMaybe ("t", Kept) (lookup (number `mod` max 1 (length tags)) (zip [0 ..] tags))

-- | A counter that all callers of the place increment.
sharedOf :: Caller -> Int -> Key
sharedOf caller = keyOf caller {callerName = placeName (callerPlace caller) <> "all"} "n"

keyCount, counterCount :: Int
keyCount = 16
counterCount = 4

-- | The key of that number that is in use.
valueKey :: Caller -> Int -> IO Key
valueKey caller number = do
  generation <- Map.findWithDefault 0 number <$> readIORef (callerGenerations caller)
  let fresh = generationKey generation
  doubts <- maybe 0 doubtsOf . Map.lookup fresh . ledgerValues <$> readIORef (callerLedger caller)
  if doubts < 24
    then pure fresh
    else do
      -- Its story ends here: what is still in doubt would grow without end.
      modifyIORef' (callerLedger caller) (\ledger -> ledger {ledgerValues = Map.delete fresh (ledgerValues ledger)})
      modifyIORef' (callerGenerations caller) (Map.insert number (generation + 1))
      pure (generationKey (generation + 1))
  where
    generationKey :: Int -> Key
    generationKey generation = keyOf caller ("v" <> Char8.pack (show generation) <> ".") number

-- | The next write of a key.
nextWrite :: Caller -> Key -> IO Int
nextWrite caller key = maybe 1 ((+ 1) . valueTried) . Map.lookup key . ledgerValues <$> readIORef (callerLedger caller)

-- What a caller does.

anything :: Caller -> IO ()
anything caller = do
  chance <- dice caller (1, 100)
  case () of
    _
      | chance <= 20 -> increments
      | chance <= 30 -> incrementsShared
      | chance <= 45 -> writes
      | chance <= 60 -> someKey >>= readsBack caller
      | chance <= 68 -> writesMany
      | chance <= 74 -> readsMany
      | chance <= 82 -> pipelines caller
      | chance <= 87 -> transacts caller
      | chance <= 90 -> asksEveryNode
      | chance <= 93 -> readsFar
      | chance <= 97 -> losesPatience
      | otherwise -> isKilled
  where
    someKey = dice caller (0, keyCount - 1) >>= valueKey caller
    someKeys = do
      first <- dice caller (0, keyCount - 1)
      size <- dice caller (2, 8)
      mapM (\offset -> valueKey caller ((first + offset) `mod` keyCount)) [1 .. size]

    increments = do
      counter <- keyOf caller "c" <$> dice caller (0, counterCount - 1)
      outcome <- plainly caller (Redis.incr (keyName counter))
      note caller (Counted counter [outcome])

    incrementsShared = do
      counter <- sharedOf caller <$> dice caller (0, counterCount - 1)
      outcome <- plainly caller (Redis.incr (keyName counter))
      note caller (CountedShared counter (mapped (> 0) outcome))

    writes = do
      key <- someKey
      number <- nextWrite caller key
      outcome <- plainly caller (Redis.set (keyName key) (valueFor key number))
      note caller (Wrote key number outcome)

    writesMany = do
      keys <- someKeys
      numbers <- mapM (nextWrite caller) keys
      forM_ (NonEmpty.nonEmpty (zip keys numbers)) $ \numbered -> do
        outcome <- plainly caller (Redis.mset (fmap (\(key, number) -> (keyName key, valueFor key number)) numbered))
        forM_ numbered $ \(key, number) -> note caller (Wrote key number outcome)

    readsMany = do
      keys <- someKeys
      forM_ (NonEmpty.nonEmpty keys) $ \some ->
        plainly caller (Redis.mget (fmap keyName some)) >>= \case
          Answered values
            | length values == length keys -> forM_ (zip keys values) $ uncurry (sees caller)
            | otherwise -> note caller (Wrong ("MGET of " <> show (length keys) <> " keys answers with " <> show (length values)))
          _ -> pure ()

    readsFar = forM_ (placeFar (callerPlace caller)) $ \far -> do
      key <- someKey
      let patient = caller {callerSpeaker = (callerSpeaker caller) {speakerTimeout = commandTimeout True}}
      calling patient "GET from a replica" 0 (tryRun far (Redis.get (keyName key))) >>= \case
        Answered value -> note caller (ReadFar key value)
        _ -> pure ()

    asksEveryNode = do
      token <- (\number -> callerName caller <> "?" <> Char8.pack (show number)) <$> dice caller (1, 1000000)
      calling caller "ECHO on every primary" 0 (tryRun (clientOf caller) (onEvery Primaries (Redis.echo token))) >>= \case
        Answered echoes
          | null echoes -> note caller (Wrong "no node was asked")
          | otherwise -> forM_ echoes (note caller . Echoed token)
        _ -> pure ()

    losesPatience = do
      micros <- dice caller (1, 20000)
      counter <- keyOf caller "c" <$> dice caller (0, counterCount - 1)
      outcome <- givingUp caller micros (Redis.incr (keyName counter))
      note caller (Counted counter [outcome])

    isKilled = do
      micros <- dice caller (1, 3000)
      key <- someKey
      number <- nextWrite caller key
      outcome <- killed caller micros (Redis.set (keyName key) (valueFor key number))
      note caller (Wrote key number outcome)

mapped :: (a -> b) -> Outcome a -> Outcome b
mapped f = \case
  Answered result -> Answered (f result)
  Failed problem -> Failed problem
  Abandoned -> Abandoned

-- | Reads a key that it writes.
readsBack :: Caller -> Key -> IO ()
readsBack caller key =
  plainly caller (Redis.get (keyName key)) >>= \case
    Answered value -> sees caller key value
    _ -> pure ()

-- | Notes what was read. What may have been read from a node that was just
-- replaced is read again, until it is certain.
sees :: Caller -> Key -> Maybe ByteString -> IO ()
sees caller key seen = do
  book <- Map.findWithDefault mempty key . ledgerValues <$> readIORef (callerLedger caller)
  note caller (Read key False seen)
  case judge key book seen of
    Stale _ -> again (20 :: Int)
    _ -> pure ()
  where
    again tries = do
      threadDelay 500000
      plainly caller (Redis.get (keyName key)) >>= \case
        Answered value -> do
          book <- Map.findWithDefault mempty key . ledgerValues <$> readIORef (callerLedger caller)
          case judge key book value of
            Stale _ | tries > 0 -> again (tries - 1)
            _ -> note caller (Read key True value)
        _ | tries > 0 -> again (tries - 1)
        _ -> pure ()

-- | Echoes, increments of one counter, writes, and reads of other keys, all under
-- way together.
pipelines :: Caller -> IO ()
pipelines caller = do
  size <- dice caller (2, 6)
  counter <- keyOf caller "c" <$> dice caller (0, counterCount - 1)
  written <- mapM (valueKey caller) [0 .. size - 1]
  numbers <- mapM (nextWrite caller) written
  readKeys <- mapM (valueKey caller) [keyCount - size .. keyCount - 1]
  let tokens = [callerName caller <> "!" <> Char8.pack (show number) | number <- take size numbers]
      each token key number readKey =
        (,,,)
          <$> tryPipelined (Redis.echo token)
          <*> tryPipelined (Redis.incr (keyName counter))
          <*> tryPipelined (Redis.set (keyName key) (valueFor key number))
          <*> tryPipelined (Redis.get (keyName readKey))
      commands = sequenceA [each token key number readKey | (token, (key, number), readKey) <- zip3 tokens (zip written numbers) readKeys]
  -- A connection to each node may have to be opened, one after the other.
  outcome <- calling caller "pipeline" 0 (tryRunPipeline (clientOf caller) commands)
  case outcome of
    Answered results -> do
      note caller (Counted counter [either Failed Answered counted | (_, counted, _, _) <- results])
      forM_ (zip (zip3 tokens (zip written numbers) readKeys) results) $ \((token, (key, number), readKey), (echoed, _, set, got)) -> do
        mapM_ (note caller . Echoed token) echoed
        note caller (Wrote key number (either Failed Answered set))
        mapM_ (sees caller readKey) got
    _ -> note caller (Wrong "a pipeline failed whose commands fail alone")

-- | Increments a shared counter by WATCH, GET, MULTI, SET and EXEC on a connection
-- that is lent.
transacts :: Caller -> IO ()
transacts caller = do
  counter <- sharedOf caller <$> dice caller (0, counterCount - 1)
  let transactional = Key (keyName counter <> "t") (keyKeeping counter)
      name = keyName transactional
      timeouts = speakerTimeout (callerSpeaker caller)
  lagBefore <- lagSoFar (callerLag caller)
  began <- getMonotonicTime
  writeIORef (callerUnderWay caller) (Just (began, "lend"))
  result <- try $
    withDedicated (clientOf caller) (AtKey name) $ \connection -> do
      arrived <- getMonotonicTime
      writeIORef (callerUnderWay caller) Nothing
      lagAfter <- lagSoFar (callerLag caller)
      note caller (Returned Call {callKind = "lend", callLimit = timeouts, callTook = arrived - began, callLag = lagAfter - lagBefore} Nothing)
      let step kind command = calling caller kind 0 (tryRunOn connection command)
      step "WATCH" (raw ["WATCH", name]) >>= \case
        Answered _ ->
          step "GET while watched" (Redis.get name) >>= \case
            Answered held -> do
              let next = maybe 0 fst (held >>= Char8.readInt) + 1
              begun <- step "MULTI" (raw ["MULTI"])
              queued <- step "SET in MULTI" (raw ["SET", name, Char8.pack (show next)])
              case (begun, queued) of
                (Answered _, Answered (SimpleString "QUEUED")) -> do
                  executed <- step "EXEC" (raw ["EXEC"])
                  note caller (CountedShared transactional (mapped happened executed))
                (Answered _, Answered other) -> note caller (Wrong ("SET in MULTI answers with " <> show other))
                _ -> pure ()
            _ -> pure ()
        _ -> pure ()
  case result of
    Right () -> pure ()
    Left (problem :: Error) -> do
      ended <- getMonotonicTime
      writeIORef (callerUnderWay caller) Nothing
      lagAfter <- lagSoFar (callerLag caller)
      note caller (Returned Call {callKind = "lend", callLimit = timeouts, callTook = ended - began, callLag = lagAfter - lagBefore} (Just problem))
  where
    happened = \case
      Array _ -> True
      _ -> False

-- | Pushes the next element of a list that somebody else pops from.
handsOver :: Caller -> IO ()
handsOver caller = do
  number <- (+ 1) . maybe 0 pushes . Map.lookup list . ledgerLists <$> readIORef (callerLedger caller)
  outcome <- plainly caller (Redis.rpush (keyName list) (pure (valueFor list number)))
  note caller (Pushed list number (mapped (const ()) outcome))
  where
    list = listOf caller
    pushes ListBook {listPushed, listDoubts, listRefused} =
      maximum (0 : [fst greatest | Just greatest <- map IntSet.maxView [listPushed, listDoubts, listRefused]])

-- | Waits for elements for at most half a second, and sometimes loses patience.
takesOver :: Caller -> IO ()
takesOver caller = do
  chance <- dice caller (1, 20)
  let blpop = Redis.blpop (pure (keyName list)) (Just (milliseconds 300))
  outcome <-
    if chance == 1
      then dice caller (1, 400000) >>= \micros -> givingUp caller micros blpop
      else calling caller "BLPOP" 0.3 (tryRun (clientOf caller) blpop)
  note caller (Popped list outcome)
  where
    list = listOf caller

-- | The list of the pair; in a slot that keeps.
listOf :: Caller -> Key
listOf caller = keyOf caller "l" 0
