-- | The deadlines of the commands on a connection, and the watchdog: the thread that notices replies
-- and capacity that do not come in time, silent peers, and news on a socket that nobody watches.
--
-- No command has a timer. The connection remembers the earliest deadline of the commands in flight, and at a
-- tick the watchdog compares one word with the clock. Only when that deadline has passed does it look at
-- each command in flight: if all have the same timeout, once per timeout. A reply that comes too late is
-- dropped by its slot, which is already filled.
--
-- A peer counts as silent when it has said nothing for the silence limit while commands were in flight, and
-- then does not answer a probe for as long again. While a command in flight has a longer time limit than
-- both together, the limit is half of that: a server that is busy with a command for as long as its caller
-- waits is not silent. A command that may wait for ever changes nothing.
module Redis.Internal.Network.Deadlines
  ( watchdogLoop,

    -- * What submitters note and ask
    usualLimit,
    noteTimes,
    noteShortest,
    allOverdue,
  )
where

import Control.Concurrent.STM
import Control.Monad (unless, when)
import Data.Maybe (catMaybes, fromMaybe)
import Redis.Error (ConnectionCause (SilentPeer), Delivery (MaybeExecuted))
import Redis.Internal.Network.Connection
import Redis.Internal.Network.InFlight
import Redis.Internal.Network.Outgoing (refuseLate, waitingForCapacity)
import Redis.Internal.Network.Runtime
import Redis.Internal.Network.Wakeup

-- | What the watchdog saw at earlier ticks.
data Watch = Watch
  { -- | 'WordReads' at the last tick, and when the peer was last seen to read or write.
    watchReads :: Int,
    watchReadAt :: Nanos,
    -- | 'WordSent' at the last tick.
    watchSent :: Int,
    -- | When a probe was sent in the present silence, if one was.
    watchProbedAt :: Maybe Nanos,
    -- | Ticks in a row with nothing in flight.
    watchIdle :: Int
  }

-- | The body of the watchdog. The action sends a probe.
watchdogLoop :: Multiplexer -> IO () -> IO ()
watchdogLoop mux sendProbe = do
  now <- coarseNanos
  loop Watch {watchReads = 0, watchReadAt = now, watchSent = 0, watchProbedAt = Nothing, watchIdle = 0}
  where
    loop watch = do
      life <- lifeOf mux
      unless (life == Dead) $ do
        pause mux
        now <- coarseNanos
        -- There may be room for callers that stood behind one whose time is over.
        withLock mux (refuseLate (muxAdmission mux) now *> admitWaiting mux *> forgetShortest mux *> transition mux Ticked) >>= wake mux
        busy <- anythingWaitedFor mux
        (if busy then look now watch {watchIdle = 0} else idle now watch) >>= loop

    look now watch = do
      expire mux now
      reads' <- readWord mux WordReads
      sent <- readWord mux WordSent
      sender <- wakeupSender <$> wakeup mux
      -- The socket is full, and yet takes bytes: the peer reads. A probe would stand behind them all.
      let takes = sender == Writing && sent /= watchSent watch
          alive = takes || reads' /= watchReads watch
          watch' = watch {watchReads = reads', watchSent = sent}
      if alive then pure (calm now watch') else silence now watch'

    idle now watch
      | watchIdle watch < idleTicks = pure (calm now watch) {watchIdle = watchIdle watch + 1}
      | otherwise = do
        rests <- withLock mux $ do
          busy <- anythingWaitedFor mux
          (== Sleep) . stepAnswer <$> transition mux (WouldRest busy)
        when rests (atomically (takeTMVar (muxWatchdogWake mux)))
        now' <- coarseNanos
        pure (calm now' watch) {watchIdle = 0}

    calm now watch = watch {watchReadAt = now, watchProbedAt = Nothing}

    -- Counted from the probe: after this process has stood still, the silence is as long as that,
    -- and the answer to the probe still needs its time.
    silence now watch = case muxSilenceLimit (muxSettings mux) of
      Nothing -> pure watch
      Just shortest -> do
        longest <- longestLimit mux
        let limit = max shortest (longest `quot` 2)
            quiet = now - watchReadAt watch
        case watchProbedAt watch of
          Just probed
            | now - probed >= limit -> watch <$ killMultiplexer mux (SilentPeer (durationFromNanos quiet))
          Nothing
            | quiet >= limit -> watch {watchProbedAt = Just now} <$ sendProbe
          _ -> pure watch

-- | Whether commands are in flight, or callers wait for room.
anythingWaitedFor :: Multiplexer -> IO Bool
anythingWaitedFor mux = do
  busy <- inFlight mux
  waiting <- waitingForCapacity (muxAdmission mux)
  pure (busy + waiting > 0)

-- | Waits for one tick, or until a command comes whose time limit is too short for it.
pause :: Multiplexer -> IO ()
pause mux = do
  shortest <- fromIntegral <$> readWord mux WordShortest
  let tick = tickFor (shortest : catMaybes [muxCommandTimeout settings, muxSilenceLimit settings])
  over <- expiry (secondsFromNanos tick)
  atomically (takeTMVar (muxWatchdogWake mux) `orElse` over)
  where
    settings = muxSettings mux

-- | The longest time limit in flight that is not for ever, and no less than the command timeout. Zero if there is none.
longestLimit :: Multiplexer -> IO Nanos
longestLimit mux = withLock mux $ do
  own <- longestOwn mux
  pure (max (fromIntegral own) (fromMaybe 0 (muxCommandTimeout (muxSettings mux))))

-- | The longest time limit in flight that is not the usual one, or zero. Call it under the lock.
longestOwn :: Multiplexer -> IO Int
longestOwn mux = do
  answered <- ringHead (muxRing mux)
  until' <- readWord mux WordLongestUntil
  if answered >= until' then pure 0 else readWord mux WordLongest
{-# INLINE longestOwn #-}

-- | The result of a look at the commands in flight.
data Deadlines = Deadlines
  { -- | The earliest deadline of the commands that have time left.
    deadlinesEarliest :: Nanos,
    -- | Whether any command has time left.
    deadlinesInTime :: Bool,
    -- | The commands that have none, and whose callers have not been told.
    deadlinesLate :: [RingEntry]
  }

-- | Fails all commands whose deadlines have passed. \(O(1)\) if there are none, else \(O(n)\) in those in flight.
expire :: Multiplexer -> Nanos -> IO ()
expire mux now = do
  due <- withLock mux $ do
    due <- (<= now) . fromIntegral <$> readWord mux WordEarliest
    -- A command that is submitted from now on lowers it again.
    due <$ when due (writeWord mux WordEarliest maxBound)
  when due $ do
    from <- ringHead (muxRing mux)
    to <- ringTail (muxRing mux)
    go from from to Deadlines {deadlinesEarliest = maxBound, deadlinesInTime = False, deadlinesLate = []}
  where
    go began from to found
      | from < to = do
        let next = min to (from + mostAtATime)
        found' <- withLock mux $ do
          answered <- ringHead (muxRing mux)
          collect (max from answered) next found
        mapM_ tellLate (deadlinesLate found')
        go began next to found' {deadlinesLate = []}
      | otherwise = withLock mux $ do
        known <- readWord mux WordEarliest
        writeWord mux WordEarliest (min known (fromIntegral (deadlinesEarliest found)))
        unless (deadlinesInTime found) $ do
          writeWord mux WordOverdueFrom began
          writeWord mux WordOverdue to

    collect from to found
      | from >= to = pure found
      | otherwise = do
        pending <- ringPeek (muxRing mux) from
        let deadline = entryDeadline pending
        when (deadline <= now) (ringExpire (muxRing mux) from)
        collect (from + 1) to $
          if deadline > now
            then found {deadlinesEarliest = min deadline (deadlinesEarliest found), deadlinesInTime = True}
            else if deadline == expired then found else found {deadlinesLate = pending : deadlinesLate found}

    tellLate RingEntry {entrySlot, entryBegan, entryDeadline} =
      -- What a slot does with it must not end the watchdog.
      quietly (fillSlot entrySlot entryBegan (Failure (timedOut MaybeExecuted Deadline {deadlineBegan = entryBegan, deadlineAt = entryDeadline})))

-- | The length of a tick: a twentieth of the shortest limit, between 1 ms and 100 ms.
tickFor :: [Nanos] -> Nanos
tickFor limits = max 1000000 (minimum (100000000 : map (`quot` 20) limits))

-- | The lock is not held for more commands than this at a time.
mostAtATime :: Int
mostAtATime = 4096

-- | Ticks of idleness before the watchdog rests.
idleTicks :: Int
idleTicks = 20

-- | The usual time limit of a command.
usualLimit :: Multiplexer -> Nanos
usualLimit mux = fromMaybe never (muxCommandTimeout (muxSettings mux))
{-# INLINE usualLimit #-}

-- | Notes the deadline of a command that was queued, for the watchdog. Call it under the lock.
noteTimes :: Multiplexer -> Deadline -> IO ()
noteTimes mux deadline = do
  earliest <- readWord mux WordEarliest
  when (end < earliest) (writeWord mux WordEarliest end)
  when (limit /= usualLimit mux) $ do
    noteShortest mux limit
    -- A command that waits for ever does not lengthen the silence limit.
    when (limit < never) $ do
      longest <- longestOwn mux
      ringTail (muxRing mux) >>= writeWord mux WordLongestUntil
      writeWord mux WordLongest (max longest (fromIntegral limit))
  where
    limit = deadlineLimit deadline
    end = fromIntegral (deadlineAt deadline)
{-# INLINE noteTimes #-}

-- | Makes the watchdog tick more often if this limit is the shortest so far. Call it under the lock.
noteShortest :: Multiplexer -> Nanos -> IO ()
noteShortest mux limit = do
  next <- readWord mux WordShortestNext
  when (fromIntegral limit < next) $ do
    writeWord mux WordShortestNext (fromIntegral limit)
    shortest <- readWord mux WordShortest
    when (fromIntegral limit < shortest) $ do
      writeWord mux WordShortest (fromIntegral limit)
      wakeWatchdog mux

-- | Forgets the limits of commands that are answered, unless callers wait for room. In two generations,
-- because some command with a limit of its own may be in flight at every tick. Call it under the lock.
forgetShortest :: Multiplexer -> IO ()
forgetShortest mux = do
  answered <- ringHead (muxRing mux)
  until' <- readWord mux WordShortestUntil
  waiting <- waitingForCapacity (muxAdmission mux)
  when (answered >= until' && waiting == 0) $ do
    readWord mux WordShortestNext >>= writeWord mux WordShortest
    writeWord mux WordShortestNext maxBound
    -- Behind the last command with a limit of its own.
    readWord mux WordLongestUntil >>= writeWord mux WordShortestUntil

-- | Whether commands are in flight and all of them are past their deadlines. Then no caller waits for room:
-- a thread that submits many commands to a frozen server would wait anew for each. A late reply ends this
-- state. Call it under the lock.
allOverdue :: Multiplexer -> IO Bool
allOverdue mux = do
  same <- (==) <$> readWord mux WordOverdue <*> ringTail (muxRing mux)
  unanswered <- (==) <$> readWord mux WordOverdueFrom <*> ringHead (muxRing mux)
  busy <- inFlight mux
  pure (same && unanswered && busy > 0)
