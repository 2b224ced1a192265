-- | A caller: its state, its calls and their notes, and its keys.
--
-- A caller has keys that no other caller writes, so it knows what every reply must be. It shares
-- some counters with others.
module Soak.Caller
  ( Caller (..),
    newCaller,
    clientOf,
    speakingBy,
    dice,

    -- * Turns
    Gate (..),
    looping,

    -- * Noting
    note,
    lastAcknowledgedBefore,

    -- * Calling
    calling,
    timed,
    beginning,
    plainly,
    givingUp,
    killed,
    mapped,

    -- * Keys
    keyOf,
    sharedOf,
    watchedOf,
    keyCount,
    counterCount,
    valueKey,
    nextWrite,
  )
where

import Control.Concurrent (threadDelay)
import Control.Concurrent.Async
import Control.Concurrent.STM
import Control.Exception (SomeException, try)
import Control.Monad (forM_, when)
import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Data.IORef
import Data.Map.Strict qualified as Map
import Data.Maybe (fromMaybe, listToMaybe)
import GHC.Clock (getMonotonicTime)
import Redis
import Redis.Command (commandName)
import Soak.Audit
import Soak.Book
import Soak.Lag
import Soak.Places
import System.Random (StdGen, mkStdGen, randomR)
import System.Timeout (timeout)

data Caller = Caller
  { callerName :: ByteString,
    callerPlace :: Place,
    callerSpeaker :: Speaker,
    callerLag :: Lag,
    callerRandom :: IORef StdGen,
    callerLedger :: IORef Ledger,
    -- | The generation of keys that it uses now, by number. A key with many writes in doubt is no
    -- longer used.
    callerGenerations :: IORef (Map.Map Int Int),
    -- | When the latest writes of keys were acknowledged, the latest first.
    callerAcknowledged :: IORef (Map.Map Key [(Int, Double)]),
    callerParked :: TVar Bool,
    -- | When the current call began, and its kind.
    callerUnderWay :: IORef (Maybe (Double, String)),
    -- | Called at once with every violation.
    callerAlarm :: String -> IO ()
  }

-- | A caller with this name, whose random choices follow from a seed.
newCaller :: Lag -> (String -> IO ()) -> Int -> (ByteString, Place, Speaker) -> IO Caller
newCaller lag alarm seed (name, place, speaker) =
  Caller name place speaker lag
    <$> newIORef (mkStdGen seed)
    <*> newIORef mempty
    <*> newIORef Map.empty
    <*> newIORef Map.empty
    <*> newTVarIO False
    <*> newIORef Nothing
    <*> pure alarm

-- | Whether callers may go on, must wait, or must end.
data Gate = Open | Shut | Over
  deriving stock (Eq)

-- | Repeats the action while the gate is open, with a short pause after each turn.
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
  case event of
    Wrote key number (Answered ()) -> do
      now <- getMonotonicTime
      modifyIORef' (callerAcknowledged caller) (Map.insertWith (\new old -> latest (new <> old)) key [(number, now)])
    _ -> pure ()
  let !after = observe event before
  writeIORef (callerLedger caller) after
  when (ledgerWrongs after > ledgerWrongs before) . forM_ (drop (length (ledgerWrong before)) (ledgerWrong after)) $ \wrong ->
    callerAlarm caller (Char8.unpack (callerName caller) <> ": " <> wrong)

-- | The last write of a key that was acknowledged before that time, among those that are kept.
lastAcknowledgedBefore :: Caller -> Key -> Double -> IO (Maybe Int)
lastAcknowledgedBefore caller key moment = do
  known <- Map.findWithDefault [] key <$> readIORef (callerAcknowledged caller)
  pure (listToMaybe [number | (number, at) <- known, at < moment])

-- | The first few elements.
latest :: [a] -> [a]
latest entries = let kept = take 8 entries in length kept `seq` kept

dice :: Caller -> (Int, Int) -> IO Int
dice caller range = atomicModifyIORef' (callerRandom caller) (\generator -> let (rolled, next) = randomR range generator in (next, rolled))

-- | Runs a call with this number of seconds besides the command timeout, and notes how long it took
-- and its error.
calling :: Caller -> String -> Double -> IO (Either Error a) -> IO (Outcome a)
calling caller kind extra action =
  timed caller kind (speakerTimeout (callerSpeaker caller) + extra) (either Failed Answered <$> action)

timed :: Caller -> String -> Double -> IO (Outcome a) -> IO (Outcome a)
timed caller kind limit action = do
  ended <- beginning caller kind
  outcome <- action
  ended limit (case outcome of Failed problem -> Just problem; _ -> Nothing)
  pure outcome

-- | Begins a call. Returns the action to run when it ends, with its limit and its error.
beginning :: Caller -> String -> IO (Double -> Maybe Error -> IO ())
beginning caller kind = do
  lagBefore <- lagSoFar (callerLag caller)
  began <- getMonotonicTime
  writeIORef (callerUnderWay caller) (Just (began, kind))
  pure $ \limit failed -> do
    ended <- getMonotonicTime
    writeIORef (callerUnderWay caller) Nothing
    lagAfter <- lagSoFar (callerLag caller)
    note caller (Returned Call {callKind = kind, callLimit = limit, callTook = ended - began, callLag = lagAfter - lagBefore} failed)

plainly :: Caller -> Command a -> IO (Outcome a)
plainly caller command = calling caller (Char8.unpack (commandName command)) 0 (tryRun (clientOf caller) command)

-- | A call whose caller gives up after this number of microseconds.
givingUp :: Caller -> Int -> Command a -> IO (Outcome a)
givingUp caller micros command =
  timed caller "given up" (fromIntegral micros / 1e6) $
    maybe Abandoned (either Failed Answered) <$> timeout micros (tryRun (clientOf caller) command)

-- | A call on a thread of its own, which is killed after this number of microseconds.
killed :: Caller -> Int -> Command a -> IO (Outcome a)
killed caller micros command =
  timed caller "killed" (fromIntegral micros / 1e6) $
    withAsync (tryRun (clientOf caller) command) $ \thread -> do
      threadDelay micros
      cancel thread
      either (const Abandoned) (either Failed Answered) <$> waitCatch thread

clientOf :: Caller -> Client
clientOf = speakerClient . callerSpeaker

-- | The caller with another client.
speakingBy :: Client -> Caller -> Caller
speakingBy client caller = caller {callerSpeaker = (callerSpeaker caller) {speakerClient = client}}

-- Keys.

-- | The caller's key of this kind and number. Its slot is one of the place's.
keyOf :: Caller -> ByteString -> Int -> Key
keyOf caller kind number = Key ("{" <> tag <> "}" <> callerName caller <> kind <> Char8.pack (show number)) keeping
  where
    tags = placeTags (callerPlace caller)
    (tag, keeping) = fromMaybe ("t", Kept) (lookup (number `mod` max 1 (length tags)) (zip [0 ..] tags))

-- | A counter that all callers of the place increment.
sharedOf :: Caller -> Int -> Key
sharedOf caller = keyOf caller {callerName = placeName (callerPlace caller) <> "all"} "n"

-- | One of the shared counters that only transactions change.
watchedOf :: Caller -> IO Key
watchedOf caller = do
  counter <- sharedOf caller <$> dice caller (0, counterCount - 1)
  pure (Key (keyName counter <> "t") (keyKeeping counter))

keyCount, counterCount :: Int
keyCount = 16
counterCount = 4

-- | The key of that number that is currently used.
valueKey :: Caller -> Int -> IO Key
valueKey caller number = do
  generation <- Map.findWithDefault 0 number <$> readIORef (callerGenerations caller)
  let fresh = generationKey generation
  doubts <- maybe 0 doubtsOf . Map.lookup fresh . ledgerValues <$> readIORef (callerLedger caller)
  if doubts < 24
    then pure fresh
    else do
      -- This key is no longer used or checked: its writes in doubt would grow without end.
      modifyIORef' (callerLedger caller) (\ledger -> ledger {ledgerValues = Map.delete fresh (ledgerValues ledger)})
      modifyIORef' (callerAcknowledged caller) (Map.delete fresh)
      modifyIORef' (callerGenerations caller) (Map.insert number (generation + 1))
      pure (generationKey (generation + 1))
  where
    generationKey :: Int -> Key
    generationKey generation = keyOf caller ("v" <> Char8.pack (show generation) <> ".") number

-- | The number of the next write of a key.
nextWrite :: Caller -> Key -> IO Int
nextWrite caller key = maybe 1 ((+ 1) . valueTried) . Map.lookup key . ledgerValues <$> readIORef (callerLedger caller)

mapped :: (a -> b) -> Outcome a -> Outcome b
mapped f = \case
  Answered result -> Answered (f result)
  Failed problem -> Failed problem
  Abandoned -> Abandoned
