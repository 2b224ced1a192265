-- | A soak: a load on a cluster (TLS, a password) and on a single server (a user whose password
-- changes) while things break and nodes join and leave, and the audit of what its callers were told.
--
-- These are the promises. A run fails if one is broken:
--
-- * /Nothing is lost/: an increment, a write or an element that was acknowledged is
--   there at the end, on servers that keep what they acknowledge. These are the single server and
--   two of the cluster's pairs, although their primaries are killed: they append to a file before
--   they reply, and only do planned failovers. The third pair elects, and is not checked for this:
--   the servers lose what a dead primary had not passed on ("Soak.Places").
-- * /Nothing is there twice, or that was refused/: no counter is above what was
--   acknowledged and what is in doubt. Commands that ended with 'Redis.NotSent' or
--   'Redis.RefusedBeforeRun' left no trace. This holds everywhere.
-- * /No reply is another's/: each value names its key, each token comes back to who
--   sent it, the replies of a pipeline are those to its commands, in order.
-- * /Nobody waits too long/: each call returns within its time (the command timeout;
--   for BLPOP also the server's limit; for a caller that gives up, its time limit) and a second, half
--   of it for a connection that must be opened. The time for which the process was kept from running
--   meanwhile is added ("Soak.Lag"). Every call returns in the end.
-- * /Entries are handled/: each entry that was acknowledged is handled by a worker of the
--   stream's group, however many workers come and go; no entry is handled that was refused.
-- * /A lock has one holder/: two are never certain to hold it at a time, and fencing tokens
--   increase.
-- * /Each command is told of once/: its end, to a hook, at most once.
-- * /No error is unexpected/ ('Soak.Audit.isExpected').
-- * /Nothing gathers/: descriptors and live heap after the run are those of before.
-- * /It recovers/: when all is well again, every client serves every slot.
--
-- A primary that has been replaced and does not know it may answer a read. Such a read is stale,
-- counted, and must be right within seconds.
module Soak.Run
  ( Settings (..),
    Ending (..),
    soak,
  )
where

import Control.Concurrent (threadDelay)
import Control.Concurrent.Async (withAsync)
import Control.Exception (SomeException, evaluate, try)
import Control.Monad (forM, forever, join, unless)
import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Data.Either (fromRight)
import Data.IORef
import Data.List (isPrefixOf)
import Data.Map.Strict (Map)
import Data.Map.Strict qualified as Map
import Data.Maybe (isNothing, mapMaybe)
import GHC.Clock (getMonotonicTime)
import Redis
import Redis.Commands qualified as Redis
import Redis.TestKit.Command (Reply (..), replyText)
import Redis.TestKit.Wait (failure, pause, upTo)
import Soak.Audit
import Soak.Book
import Soak.Faults
import Soak.Lag
import Soak.Load
import Soak.Measure
import Soak.Places
import Soak.Report
import Soak.Traces
import System.Directory (createDirectoryIfMissing)
import System.FilePath (takeDirectory)
import System.IO (hFlush, stdout)

data Settings = Settings
  { settingsMinutes :: Double,
    settingsSeed :: Int,
    -- | The file for the JSON.
    settingsOut :: FilePath
  }

data Ending
  = Sound
  | -- | The audit failed.
    Unsound
  | -- | The servers could not be started, or did not come back.
    NotRun
  deriving stock (Eq, Show)

-- | Runs a soak, and prints its progress.
soak :: Settings -> IO Ending
soak settings =
  try (withLag (withSurroundings . run' settings)) >>= \case
    Right ending -> pure ending
    Left (problem :: SomeException) -> NotRun <$ say ("soak: it could not be run: " <> show problem)

run' :: Settings -> Lag -> Surroundings -> IO Ending
run' settings lag around = do
  say ("soak: seed " <> show seed <> ", " <> show (settingsMinutes settings) <> " minutes")
  recent <- newIORef (pure [])
  alarms <- newIORef (0 :: Int)
  let alarm wrong = do
        number <- atomicModifyIORef' alarms (\before -> (before + 1, before))
        unless (number >= 20) $ do
          faults <- join (readIORef recent)
          say (unlines (("WRONG: " <> wrong) : map ("  after " <>) faults))
  load <- startLoad lag seed callersEach alarm (thePlaces around)
  -- By then every connection is open and has been used once.
  pause 6
  before <- parked load 30 (holdings around) >>= either (failure . unlines) pure
  began <- getMonotonicTime
  lagBefore <- lagSoFar lag
  (done, journal) <- withFaults around seed $ \faults -> do
    writeIORef recent (recentFaults faults 6)
    withAsync (progress load faults began) $ \_ -> pause (60 * settingsMinutes settings)
    (,) <$> faultsSoFar faults <*> recentFaults faults 2000
  ended <- getMonotonicTime
  lagAfter <- lagSoFar lag
  unserved <- recovered around
  pause 3
  after <- parked load 30 (holdings around)
  lost <- undrained load 30
  stuck <- stopLoad load 15
  untrue <- tracesWrong (theTraces around)
  ledger <- mconcat <$> ledgers load
  held <- heldBy around ledger
  broken <- evaluate (forced (verdict held ledger <> unserved <> lost <> stuck <> untrue))
  told <- evaluate (withoutBooks ledger)
  callers <- evaluate (loadCallers load)
  -- By now the callers' books are garbage, which grow for as long as a soak takes; so is what they had subscribed to.
  bytes <- liveBytes
  let afterwards = (\holding -> holding {heldBytes = bytes}) <$> after
      summary =
        Summary
          { summarySeed = seed,
            summarySeconds = ended - began,
            summaryCallers = callers,
            summaryLedger = told,
            summaryFaults = done,
            summaryJournal = journal,
            summaryBefore = before,
            summaryAfter = fromRight before afterwards,
            summaryLag = lagAfter - lagBefore,
            summaryViolations = broken <> either (map ("does not return: " <>)) (grown before) afterwards
          }
  say (onScreen summary)
  createDirectoryIfMissing True (takeDirectory (settingsOut settings))
  writeFile (settingsOut settings) (asJson summary)
  say ("written: " <> settingsOut settings)
  case summaryViolations summary of
    _ : _ -> pure Unsound
    []
      | tooQuiet done -> NotRun <$ say "soak: fewer than half of the faults could be done, so it shows little"
      | otherwise -> pure Sound
  where
    forced texts = foldr (seq . length) () texts `seq` texts
    seed = settingsSeed settings
    callersEach = 9
    tooQuiet done = let unfinished = Map.findWithDefault 0 "unfinished" done in 2 * unfinished >= sum done

say :: String -> IO ()
say text = putStrLn text >> hFlush stdout

-- | Prints a line every ten seconds.
progress :: Load -> Faults -> Double -> IO ()
progress load faults began = forever $ do
  threadDelay 10000000
  now <- getMonotonicTime
  all' <- ledgers load
  done <- faultsSoFar faults
  latest <- recentFaults faults 1
  say $
    show (round (now - began) :: Int) <> " s: calls " <> show (sum (map (sum . ledgerCalls) all'))
      <> (", failed " <> show (sum (map ledgerFailures all')))
      <> (", wrong " <> show (sum (map ledgerWrongs all')))
      <> (", faults " <> show (sum done))
      <> concatMap ("; " <>) latest

-- | The clients that do not serve all slots within 20 seconds after the faults have ended.
recovered :: Surroundings -> IO [String]
recovered around =
  fmap concat . forM (thePlaces around) $ \place ->
    fmap concat . forM (placeSpeakers place) $ \speaker -> do
      served <- upTo 20 (mapM_ (untilServed speaker) (placeTags place))
      pure [Char8.unpack (placeName place <> speakerName speaker) <> " does not serve again" | isNothing served]
  where
    untilServed speaker (tag, keeping) = do
      answer <- tryRun (speakerClient speaker) (Redis.set ("{" <> tag <> "}served") "1")
      case answer of
        Right () -> pure ()
        Left _ -> pause 0.1 >> untilServed speaker (tag, keeping)

-- | The data on the servers for all keys in the ledger. Asks without the library.
heldBy :: Surroundings -> Ledger -> IO Held
heldBy around ledger = do
  counters <- asked ledgerCounters (\key -> ["GET", key]) (fmap number . text)
  values <- asked ledgerValues (\key -> ["GET", key]) text
  lists <- asked ledgerLists (\key -> ["LRANGE", key, "0", "-1"]) elements
  pure Held {heldCounters = counters, heldValues = values, heldLists = lists}
  where
    asked :: (Ledger -> Map Key book) -> (ByteString -> [ByteString]) -> (Reply -> Maybe a) -> IO (Map Key a)
    asked field question read' = fmap (Map.fromList . mapMaybe sequence) . forM (Map.keys (field ledger)) $ \key ->
      (,) key . read' <$> askHolder around (placeOf key) (keyName key) (question (keyName key))
    text = \case
      Text bytes -> Just (Just bytes)
      Nil -> Just Nothing
      _ -> Nothing
    number = maybe 0 (maybe 0 fst . Char8.readInt)
    elements = \case
      List replies -> Just (mapMaybe replyText replies)
      _ -> Nothing
    -- A caller's name begins with that of its place.
    placeOf key =
      case [place | place <- thePlaces around, Char8.unpack (placeName place) `isPrefixOf` drop 1 (dropWhile (/= '}') (Char8.unpack (keyName key)))] of
        place : _ -> place
        [] -> Place {placeName = "", placeSpeakers = [], placeFar = Nothing, placeTags = []}
