-- | A worker's settings, the entries that it hands out, and the events that it reports.
module Redis.Patterns.Worker.Settings
  ( Worker (..),
    worker,
    Entry (..),
    WorkerEvent (..),
    renderWorkerEvent,
    trySupplied,
    tellOf,
    retryDelay,
    heartbeatTime,
    deadLettersOf,
  )
where

import Control.Concurrent.STM (STM, retry)
import Control.Exception (SomeAsyncException (..), SomeException, displayException, fromException, throwIO, try)
import Control.Monad (void)
import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Data.Char (isPrint)
import Data.Int (Int64)
import Data.List (find)
import Data.List.NonEmpty (NonEmpty ((:|)))
import Data.Maybe (fromMaybe)
import Data.Text qualified as Text
import Data.Text.Encoding qualified as Text
import Data.Text.Encoding.Error qualified as Text
import Redis (Backoff (backoffCap, backoffFirst), Duration, Error, backoffDefaults, seconds)
import Redis.Cluster.Slot (keySlot)
import Redis.Commands (GroupFrom (GroupAfter), StreamId (StreamId))
import Redis.Duration (inMicroseconds, inSeconds, microseconds, minutes)

-- | The settings of a worker: which streams it reads, and how. Made by 'worker', and changed by its
-- fields.
data Worker = Worker
  { -- | The streams it reads: an entry of an earlier stream is taken before any of a later one. In
    -- a cluster they must share a slot.
    workerStreams :: NonEmpty ByteString,
    -- | The group whose workers share the entries. The worker creates it, and the stream, if it
    -- does not exist.
    workerGroup :: ByteString,
    -- | The worker's own name in the group. Two workers must not have the same name at the same
    -- time. 'Nothing', the default, makes a new name for each run.
    workerConsumer :: Maybe ByteString,
    -- | Where a group begins that the worker creates: by default at the stream's first entry. A
    -- group that was lost (by FLUSHALL or a fail-over) also begins there again.
    workerFrom :: GroupFrom,
    -- | How many entries are handled at once. Default: 1. The worker never takes more than that
    -- from the server.
    workerConcurrency :: Int,
    -- | How often an entry is given out in total before it becomes a dead letter. Default: 5.
    workerMaxAttempts :: Int,
    -- | How long an entry rests after its handler threw. Default: from 1 s to 5 minutes.
    workerBackoff :: Backoff,
    -- | The time without a report from an entry's worker after which other workers take the entry.
    -- Default: 30 s. A worker reports three times in this time, however long its handlers take.
    workerClaimAfter :: Duration,
    -- | The stream of dead letters; 'Nothing', the default, is the stream's name in braces and @:dead@
    -- (see 'deadLettersOf'). In a cluster it must share the streams' slot.
    workerDeadLetters :: Maybe ByteString,
    -- | About how many dead letters are kept; 'Nothing', the default, keeps all.
    workerDeadLimit :: Maybe Int64,
    -- | Whether entries are also deleted from their stream when they have been handled. Default:
    -- 'False'. If 'True' and the server knows XACKDEL (Redis since 8.2), an entry goes when the last
    -- group of the stream has acknowledged it, so the workers of all groups should delete. On other
    -- servers no other group should read the stream.
    workerDelete :: Bool,
    -- | How often the worker looks for entries whose rest is over or that others left. Default:
    -- 1 s. If it found more than it had hands for, it looks again at once.
    workerPollInterval :: Duration,
    -- | When this succeeds, the worker stops: it takes no more entries, and 'workerGrace' begins.
    -- Default: never.
    workerUntil :: STM (),
    -- | How long handlers may continue when the worker stops. Default: 10 s. Those that still run
    -- are then interrupted, and their entries go to others.
    workerGrace :: Duration,
    -- | Called with each event, by the thread in which it happens. Exceptions that it throws are
    -- ignored, except asynchronous ones: these interrupt the thread. @putStrLn . renderWorkerEvent@
    -- prints a line for each; 'show' may take many.
    workerReport :: WorkerEvent -> IO ()
  }

-- | A worker with the default settings, for a stream and a group.
worker :: ByteString -> ByteString -> Worker
worker stream group =
  Worker
    { workerStreams = stream :| [],
      workerGroup = group,
      workerConsumer = Nothing,
      workerFrom = GroupAfter (StreamId 0 0),
      workerConcurrency = 1,
      workerMaxAttempts = 5,
      workerBackoff = backoffDefaults {backoffFirst = seconds 1, backoffCap = minutes 5},
      workerClaimAfter = seconds 30,
      workerDeadLetters = Nothing,
      workerDeadLimit = Nothing,
      workerDelete = False,
      workerPollInterval = seconds 1,
      workerUntil = retry,
      workerGrace = seconds 10,
      workerReport = const (pure ())
    }

-- | An entry, as a handler gets it.
data Entry = Entry
  { -- | The key of its stream.
    entryStream :: ByteString,
    entryId :: StreamId,
    -- | The fields, in the order in which they were added.
    entryFields :: [(ByteString, ByteString)],
    -- | How often the entry was given out, including this time.
    entryDeliveries :: Int64
  }
  deriving stock (Eq, Show)

-- | An event of a worker. 'renderWorkerEvent' gives it in words.
data WorkerEvent
  = -- | A handler threw. Its entry, or its job, rests for this long and is tried again; 'Nothing': it is
    -- not tried again. An entry becomes a dead letter then ('DeadLettered' follows); a job has failed for
    -- good, was cancelled, or was settled by another worker. Of a job, 'entryDeliveries' is the number of
    -- its try.
    HandlerFailed Entry SomeException (Maybe Duration)
  | -- | The entry of this stream and id became a dead letter, for this reason; or a worker found that
    -- its job has failed for good, because workers died with it.
    DeadLettered ByteString StreamId ByteString
  | -- | The rest of the entry of this stream and id is over, and a handler gets it again.
    TriedAgain ByteString StreamId
  | -- | The worker took over the entry of this stream and id, which this consumer had left.
    TookOver ByteString StreamId ByteString
  | -- | A request to the server failed. The worker repeats it, or goes on with other entries if it
    -- would fail again.
    WorkerTrouble Error
  | -- | A handler did not end within 'workerGrace' and was interrupted.
    HandlerInterrupted ByteString StreamId
  deriving stock (Show)

-- | An event in words, as one line: of an exception's text the first thousand characters, without line
-- breaks. The words may change.
renderWorkerEvent :: WorkerEvent -> String
renderWorkerEvent = \case
  HandlerFailed Entry {entryStream, entryId, entryDeliveries} failed next ->
    about entryStream entryId ("try " <> show entryDeliveries <> " failed, " <> maybe "and was the last: " following next <> displayException failed)
  DeadLettered stream entry why -> about stream entry ("is a dead letter now: " <> inUtf8 why)
  TriedAgain stream entry -> about stream entry "is tried again"
  TookOver stream entry consumer -> about stream entry ("was left by " <> inUtf8 consumer <> ", and is taken over")
  WorkerTrouble failed -> oneLine (displayException failed)
  HandlerInterrupted stream entry -> about stream entry "was interrupted, because the worker stops"
  where
    following pause = "the next one follows after " <> show (inSeconds pause) <> " s: "
    about stream (StreamId time count) text = oneLine (inUtf8 stream <> " " <> show time <> "-" <> show count <> ": " <> text)
    inUtf8 = Text.unpack . Text.decodeUtf8With Text.lenientDecode
    oneLine = take 1000 . unwords . words . map (\c -> if isPrint c then c else ' ')

-- | Runs what the user supplied, and catches what that throws. An asynchronous exception is not its own: a
-- thread that ignored the one that interrupts it would go on for ever.
trySupplied :: IO a -> IO (Either SomeException a)
trySupplied action =
  try action >>= \case
    Left failed | Just (SomeAsyncException _) <- fromException failed -> throwIO failed
    done -> pure done

-- | Reports an event.
tellOf :: Worker -> WorkerEvent -> IO ()
tellOf settings = void . trySupplied . workerReport settings

-- | How long an entry rests that was given out this often: the backoff's first value after the
-- first time, then twice as long each time, up to the cap. Nothing is random, so an entry is due at
-- the same time for every worker. \(O(1)\).
--
-- > map (retryDelay backoffDefaults {backoffFirst = seconds 1, backoffCap = seconds 5}) [1 .. 4]
-- >   == map seconds [1, 2, 4, 5]
retryDelay :: Backoff -> Int64 -> Duration
retryDelay backoff deliveries =
  microseconds (fromInteger (min longest (first * 2 ^ exponent')))
  where
    first = max 0 (toInteger (inMicroseconds (backoffFirst backoff)))
    longest = max 0 (toInteger (inMicroseconds (backoffCap backoff)))
    -- A larger exponent would only give a larger number, which the cap cuts off.
    exponent' = max 0 (min 62 (deliveries - 1))

-- | The time between two reports of the entries in hand.
heartbeatTime :: Worker -> Duration
heartbeatTime Worker {workerClaimAfter} = microseconds (max 1000 (inMicroseconds workerClaimAfter `div` 3))

-- | The stream for the dead letters of one of the worker's streams: 'workerDeadLetters', or a key
-- made of the stream's name, in its slot. Takes a few milliseconds if the name has a @}@ and no hash
-- tag, since it must find a tag that has the name's slot; otherwise \(O(n)\) in the name's length.
--
-- > deadLettersOf (worker "mail" "senders") "mail" == "{mail}:dead"
-- > deadLettersOf (worker "{ada}:mail" "senders") "{ada}:mail" == "{ada}:mail:dead"
deadLettersOf :: Worker -> ByteString -> ByteString
deadLettersOf Worker {workerDeadLetters} stream = fromMaybe (sibling stream "dead") workerDeadLetters

-- | A key with another key's name and a suffix, in the slot of that key.
sibling :: ByteString -> ByteString -> ByteString
sibling name suffix
  | isTagged = name <> ":" <> suffix
  | canBeTag = "{" <> name <> "}:" <> suffix
  -- The whole name decides the slot, and cannot be a tag: some number has the same slot.
  | otherwise = "{" <> sameSlot <> "}" <> name <> ":" <> suffix
  where
    isTagged = case Char8.break (== '}') (Char8.drop 1 (Char8.dropWhile (/= '{') name)) of
      (tag, rest) -> not (Char8.null tag) && not (Char8.null rest)
    canBeTag = not (Char8.null name) && Char8.notElem '}' name
    sameSlot = fromMaybe "" (find ((== keySlot name) . keySlot) (map (Char8.pack . show) [0 :: Int ..]))
