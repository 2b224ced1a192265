-- | What a worker is told, what it hands out, and what it tells.
module Redis.Patterns.Worker.Settings
  ( Worker (..),
    worker,
    Entry (..),
    WorkerEvent (..),
    retryDelay,
    heartbeatTime,
    deadLettersOf,
    sibling,
  )
where

import Control.Concurrent.STM (STM, retry)
import Control.Exception (SomeException)
import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Data.Int (Int64)
import Data.List.NonEmpty (NonEmpty ((:|)))
import Data.Maybe (fromMaybe)
import Redis (Backoff (backoffCap, backoffFirst), Duration, Error, defaultBackoff, seconds)
import Redis.Commands (GroupFrom (GroupAfter), StreamId (StreamId))
import Redis.Duration (inMicroseconds, microseconds, minutes)

-- | A worker: which streams it reads, and how it goes about it. Made by 'worker', and
-- changed in its fields.
--
-- @since 0.1.0.0
data Worker = Worker
  { -- | What it reads: an entry of an earlier stream is taken before any of a later one. In a
    -- cluster they must share a slot.
    workerStreams :: NonEmpty ByteString,
    -- | The group whose workers share the entries. It is made, with the stream, when it is not
    -- there.
    workerGroup :: ByteString,
    -- | Its own name in the group. Two workers at a time must not have the same; 'Nothing', the
    -- default, makes a new one for each run.
    workerConsumer :: Maybe ByteString,
    -- | Where a group that is made begins: by default at the stream's first entry. A group that
    -- was lost (FLUSHALL, a fail-over) begins there, too.
    workerFrom :: GroupFrom,
    -- | How many entries are handled at once, 1 by default. It never takes more than that from
    -- the server.
    workerConcurrency :: Int,
    -- | How often an entry is given out, all in all, before it is a dead letter: 5 by default.
    workerTries :: Int,
    -- | How long an entry rests after its handler threw: from 1 s to 5 minutes by default.
    workerBackoff :: Backoff,
    -- | For how long nobody must have said that an entry is in hand before others take it: 30 s
    -- by default. A worker says so three times in this time, however long its handlers take.
    workerAbandoned :: Duration,
    -- | The stream of dead letters; 'Nothing' is the stream's name in braces and @:dead@:
    -- @{mail}:dead@. In a cluster it must share the streams' slot.
    workerDeadLetters :: Maybe ByteString,
    -- | About how many dead letters are kept; 'Nothing', the default, is all.
    workerDeadLimit :: Maybe Int64,
    -- | Whether what was handled is deleted from its stream, too. By default it is not; if it
    -- is, no other group should read the stream.
    workerDelete :: Bool,
    -- | How often it looks for entries whose rest is over or that others left: 1 s by default.
    -- When it has found more than it had hands for it looks again at once.
    workerLook :: Duration,
    -- | When this comes true the worker stops: it takes no more, and 'workerGrace' begins.
    -- Never, by default.
    workerUntil :: STM (),
    -- | How long handlers may go on when the worker stops: 10 s by default. Those that still
    -- run are interrupted then, and others get what they had.
    workerGrace :: Duration,
    -- | Told what happens, by the thread to which it happens. What it throws is ignored.
    workerReport :: WorkerEvent -> IO ()
  }

-- | A worker of a stream, for a group.
--
-- > runWorker client (worker "mail" "senders") {workerConcurrency = 8} $ \entry -> send entry
--
-- @since 0.1.0.0
worker :: ByteString -> ByteString -> Worker
worker stream group =
  Worker
    { workerStreams = stream :| [],
      workerGroup = group,
      workerConsumer = Nothing,
      workerFrom = GroupAfter (StreamId 0 0),
      workerConcurrency = 1,
      workerTries = 5,
      workerBackoff = defaultBackoff {backoffFirst = seconds 1, backoffCap = minutes 5},
      workerAbandoned = seconds 30,
      workerDeadLetters = Nothing,
      workerDeadLimit = Nothing,
      workerDelete = False,
      workerLook = seconds 1,
      workerUntil = retry,
      workerGrace = seconds 10,
      workerReport = const (pure ())
    }

-- | An entry as a handler gets it.
--
-- @since 0.1.0.0
data Entry = Entry
  { -- | The key of its stream.
    entryStream :: ByteString,
    entryId :: StreamId,
    -- | In the order in which they were added.
    entryFields :: [(ByteString, ByteString)],
    -- | How often it was given out, this time included.
    entryDeliveries :: Int64
  }
  deriving stock (Eq, Show)

-- | What happens to a worker.
--
-- @since 0.1.0.0
data WorkerEvent
  = -- | A handler threw, and its entry rests for this long.
    HandlerFailed Entry SomeException Duration
  | -- | This entry, given out so often, has become a dead letter, and why.
    DeadLettered ByteString StreamId ByteString
  | -- | It took over an entry, whose turn had come again or that this consumer had left.
    TookOver ByteString StreamId ByteString
  | -- | It could not ask the server for something, and will again.
    WorkerTrouble Error
  | -- | A handler did not end in the time that is given to it when the worker stops.
    HandlerInterrupted ByteString StreamId
  deriving stock (Show)

-- | How long an entry rests that was given out so often: after the first time for the first
-- value, then twice as long each time, up to the cap. Nothing is drawn: an entry is due at the
-- same time for every worker. \(O(1)\).
--
-- > map (retryDelay defaultBackoff {backoffFirst = seconds 1, backoffCap = seconds 5}) [1 .. 4]
-- >   == map seconds [1, 2, 4, 5]
--
-- @since 0.1.0.0
retryDelay :: Backoff -> Int64 -> Duration
retryDelay backoff deliveries =
  microseconds (fromInteger (min longest (first * 2 ^ exponent')))
  where
    first = max 0 (toInteger (inMicroseconds (backoffFirst backoff)))
    longest = max 0 (toInteger (inMicroseconds (backoffCap backoff)))
    -- More would only make a larger number to be cut.
    exponent' = max 0 (min 62 (deliveries - 1))

-- | How often a worker says what it has in hand.
heartbeatTime :: Worker -> Duration
heartbeatTime Worker {workerAbandoned} = microseconds (max 1000 (inMicroseconds workerAbandoned `div` 3))

-- | Where dead letters of a stream go.
deadLettersOf :: Worker -> ByteString -> ByteString
deadLettersOf Worker {workerDeadLetters} stream = fromMaybe (sibling stream "dead") workerDeadLetters

-- | A key beside another, in its slot.
sibling :: ByteString -> ByteString -> ByteString
sibling name suffix
  | tagged = name <> ":" <> suffix
  | otherwise = "{" <> name <> "}:" <> suffix
  where
    tagged = case Char8.break (== '}') (Char8.drop 1 (Char8.dropWhile (/= '{') name)) of
      (tag, rest) -> not (Char8.null tag) && not (Char8.null rest)
