-- | A worker of a stream's consumer group: it takes entries, runs a handler for each, several at
-- once, and acknowledges an entry when its handler has returned.
--
-- > runWorker client (worker "mail" "senders") {workerConcurrency = 8} $ \entry -> send entry
--
-- __Guaranteed__: each entry is handled at least once by some worker of the group, or becomes a
-- dead letter. It is acknowledged only after its handler has returned. Workers may be killed,
-- connections cut, and the server restarted, as long as the server keeps its data.
--
-- __Not guaranteed__: that an entry is handled only once, since a worker may be killed between its
-- work and its acknowledgement, or be taken for dead while it is frozen; nor any order. Handlers
-- should tolerate running again for the same entry. If a server fails over and loses an entry, or
-- its acknowledgement, no worker can know of it.
--
-- * A handler that throws leaves its entry resting, for longer each time ('workerBackoff'). When it
--   was given out 'workerMaxAttempts' times, the entry becomes a dead letter, in one step with its
--   acknowledgement: an entry of another stream, with its fields and @dead:reason@,
--   @dead:deliveries@, @dead:stream@, @dead:group@, @dead:id@ and @dead:worker@ (the worker that made
--   the letter). An entry of any size can become one, up to the number of words that a command may have
--   (so at most 524280 fields). If the server refuses a letter, its entry stays pending, the worker reports
--   that, and goes on.
-- * What a worker leaves that is killed, others take over after 'workerClaimAfter'. An entry that
--   kills its worker each time becomes a dead letter, too. A handler may take as long as it likes: the
--   worker says three times in that time that it still handles the entry.
-- * A server that is away is asked again, with pauses of up to 2 s. A group that is lost is made
--   again, and begins at 'workerFrom'.
-- * Of several streams the first that has something is read.
--
-- The worker needs one dedicated connection for as long as it waits for entries (see
-- 'Redis.Config.setMaxDedicated'). All that it remembers of an entry is in the group's list of
-- pending entries, so XPENDING and XINFO show it: the consumer @(resting)@ has the entries that
-- rest.
--
-- Servers: since 6.2. In a cluster, the streams of a worker and of their dead letters must share a
-- slot.
module Redis.Patterns.Worker
  ( runWorker,
    Worker (..),
    worker,
    Entry (..),
    retryDelay,
    deadLettersOf,
    WorkerEvent (..),
    renderWorkerEvent,
  )
where

import Redis (Client)
import Redis.Patterns.Worker.Engine
import Redis.Patterns.Worker.Settings

-- | Works until 'workerUntil' succeeds, and then until the handlers have ended, at most for
-- 'workerGrace'. It may take a second to notice that it should stop. Handlers run in threads of
-- their own. When this returns or throws, no handler runs any more. A handler that is interrupted
-- gets an exception ('Control.Concurrent.Async.AsyncCancelled'); its entry goes to other workers at
-- once, and the delivery does not count.
--
-- An exception thrown to the calling thread stops the worker without grace. Throws an 'Redis.Error'
-- that would come again when it reads: the client is closed, a key is no stream, the user may not read.
-- An entry that cannot be settled (the user may not run XACK) comes again; that is only reported ('WorkerTrouble').
runWorker :: Client -> Worker -> (Entry -> IO ()) -> IO ()
runWorker client settings handle =
  runEngine client settings Handling {handlingRun = \_ entry -> Acknowledged <$ handle entry}
