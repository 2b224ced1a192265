-- | A worker of a stream's consumer group: it takes entries, has them handled, several at once,
-- and acknowledges each when its handler has returned.
--
-- > runWorker client (worker "mail" "senders") {workerConcurrency = 8} $ \entry -> send entry
--
-- __Guaranteed__: each entry is handled at least once by some worker of the group, or has become a
-- dead letter; it is acknowledged only after its handler has returned. Workers may be killed,
-- connections cut, and the server restarted, as long as it keeps its data.
--
-- __Not guaranteed__: that an entry is handled only once, since a worker may be killed between its
-- work and its acknowledgement, or be taken for dead while it is frozen; nor any order. Handlers
-- should bear being run again. What a server forgets when it fails over, the entry itself or that
-- it was acknowledged, nobody knows.
--
-- * A handler that throws leaves its entry resting, for longer each time ('workerBackoff'). When it
--   was given out 'workerTries' times it becomes a dead letter, in one step with its
--   acknowledgement: an entry of another stream, with its fields and @dead:reason@,
--   @dead:deliveries@, @dead:stream@, @dead:group@ and @dead:id@.
-- * What a worker leaves that is killed, others take over after 'workerAbandoned'. An entry that
--   kills its worker each time becomes a dead letter, too.
-- * A handler may take as long as it likes: the worker says three times in 'workerAbandoned' that
--   it is at it.
-- * A server that is away is asked again, with pauses of up to 2 s. A group that is lost is made
--   again, from 'workerFrom' on.
-- * Of several streams the first that has something is read.
--
-- The worker needs one connection for as long as it waits for entries (see
-- 'Redis.Config.setMaxDedicated'). What it remembers of an entry is in the group's list of
-- what is pending, so XPENDING and XINFO show it: the consumer @(resting)@ has what rests.
--
-- Servers: since 6.2. In a cluster, the streams of a worker and their dead letters must share a
-- slot.
module Redis.Patterns.Worker
  ( runWorker,
    Worker (..),
    worker,
    Entry (..),
    retryDelay,
    WorkerEvent (..),
  )
where

import Redis (Client)
import Redis.Patterns.Worker.Engine
import Redis.Patterns.Worker.Settings

-- | Works until 'workerUntil' comes true, and then until the handlers are done, at most for
-- 'workerGrace'; it may take a second until it notices. Handlers run in threads of their
-- own. When it returns or throws none runs any more; one that is interrupted gets an exception
-- ('Control.Concurrent.Async.AsyncCancelled'), and its entry goes to others at once, without
-- being counted.
--
-- An exception thrown to its thread stops it without grace. It throws an 'Redis.Error' that would
-- be the same again: the client is closed, a key is no stream, the user may not.
--
-- @since 0.1.0.0
runWorker :: Client -> Worker -> (Entry -> IO ()) -> IO ()
runWorker client settings handle =
  runEngine client settings Handling {handlingRun = \_ entry -> Acknowledged <$ handle entry}
