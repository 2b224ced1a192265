-- | A caller: what it knows, how it calls and what it notes, and its keys.
--
-- A caller has keys that nobody else writes, so it knows what every answer must be; some
-- counters it shares.
module Soak.Caller
  ( Caller (..),
    newCaller,
    clientOf,
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
    -- | Which of the keys of that number it uses now: one that has many writes in
    -- doubt is left alone.
    callerGenerations :: IORef (Map.Map Int Int),
    -- | When the latest writes of keys were acknowledged, the latest first.
    callerAcknowledged :: IORef (Map.Map Key [(Int, Double)]),
    callerParked :: TVar Bool,
    -- | When the call began that is under way, and what it is.
    callerUnderWay :: IORef (Maybe (Double, String)),
    -- | Told of everything that is wrong, at once.
    callerAlarm :: String -> IO ()
  }

-- | One of that name, whose dice follow from a seed.
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

-- | Whether callers may go on, are to wait, or are to end.
data Gate = Open | Shut | Over
  deriving stock (Eq)

-- | Does it again and again while the gate is open, with a short rest after each.
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

-- | The last write of a key that was acknowledged before that time, as far as is kept.
lastAcknowledgedBefore :: Caller -> Key -> Double -> IO (Maybe Int)
lastAcknowledgedBefore caller key moment = do
  known <- Map.findWithDefault [] key <$> readIORef (callerAcknowledged caller)
  pure (listToMaybe [number | (number, at) <- known, at < moment])

-- | The first few, and nothing of the rest.
latest :: [a] -> [a]
latest entries = let kept = take 8 entries in length kept `seq` kept

dice :: Caller -> (Int, Int) -> IO Int
dice caller range = atomicModifyIORef' (callerRandom caller) (\generator -> let (rolled, next) = randomR range generator in (next, rolled))

-- | Runs a call that has so many seconds besides the command timeout, and notes how
-- long it took and what went wrong.
calling :: Caller -> String -> Double -> IO (Either Error a) -> IO (Outcome a)
calling caller kind extra action =
  timed caller kind (speakerTimeout (callerSpeaker caller) + extra) (either Failed Answered <$> action)

timed :: Caller -> String -> Double -> IO (Outcome a) -> IO (Outcome a)
timed caller kind limit action = do
  ended <- beginning caller kind
  outcome <- action
  ended limit (case outcome of Failed problem -> Just problem; _ -> Nothing)
  pure outcome

-- | A call begins. To be told when it ends, with its limit and what went wrong.
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

-- | One of those, which are only changed by transactions.
watchedOf :: Caller -> IO Key
watchedOf caller = do
  counter <- sharedOf caller <$> dice caller (0, counterCount - 1)
  pure (Key (keyName counter <> "t") (keyKeeping counter))

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
      modifyIORef' (callerAcknowledged caller) (Map.delete fresh)
      modifyIORef' (callerGenerations caller) (Map.insert number (generation + 1))
      pure (generationKey (generation + 1))
  where
    generationKey :: Int -> Key
    generationKey generation = keyOf caller ("v" <> Char8.pack (show generation) <> ".") number

-- | The next write of a key.
nextWrite :: Caller -> Key -> IO Int
nextWrite caller key = maybe 1 ((+ 1) . valueTried) . Map.lookup key . ledgerValues <$> readIORef (callerLedger caller)

mapped :: (a -> b) -> Outcome a -> Outcome b
mapped f = \case
  Answered result -> Answered (f result)
  Failed problem -> Failed problem
  Abandoned -> Abandoned
