-- | The thread that notices what does not happen: replies that do not come in
-- time, peers that say nothing, and a socket that nobody watches.
--
-- Commands share one timeout, so the oldest in flight expires first: a tick
-- looks from the oldest on and stops at the first that still has time. That
-- makes a timeout cost one clock reading per command instead of a timer each.
-- A reply that comes too late is dropped by its slot, which is already filled.
--
-- It sleeps when nothing is in flight.
module Redis.Internal.Network.Watchdog
  ( watchdogLoop,
  )
where

import Control.Concurrent (threadDelay)
import Control.Concurrent.MVar
import Control.Monad (when)
import Data.IORef (readIORef)
import Data.Maybe (catMaybes)
import Redis.Error (ConnectionCause (SilentPeer), Delivery (MaybeExecuted), Error (TimeoutError))
import Redis.Internal.Network.Clock
import Redis.Internal.Network.MuxState
import Redis.Internal.Network.PendingRing
import Redis.Internal.Network.ResponseSlot
import Redis.Internal.Network.Sender (flushQueued)

-- | How far the watchdog has come.
data Watch = Watch
  { -- | Commands before this one have been looked at and expired.
    watchCursor :: Int,
    -- | 'flagReads' at the last tick, and when the peer was last seen to read or write.
    watchReads :: Int,
    watchReadAt :: Nanos,
    -- | 'flagSent' at the last tick.
    watchSent :: Int,
    -- | When the present silence was probed.
    watchProbedAt :: Maybe Nanos,
    -- | Ticks in a row with nothing in flight.
    watchIdle :: Int
  }

-- | The body of the watchdog. The action sends a probe.
watchdogLoop :: Multiplexer -> IO () -> IO ()
watchdogLoop mux sendProbe = do
  now <- coarseNanos
  loop (tickFor limits) Watch {watchCursor = 0, watchReads = 0, watchReadAt = now, watchSent = 0, watchProbedAt = Nothing, watchIdle = 0}
  where
    settings = muxSettings mux
    limits = catMaybes [muxCommandTimeout settings, muxSilenceLimit settings]

    loop tick watch =
      readIORef (muxStatus mux) >>= \case
        Dead _ -> pure ()
        _ -> do
          threadDelay (fromIntegral (tick `quot` 1000))
          now <- coarseNanos
          busy <- inFlight mux
          flushQueued mux
          unwatched <- readFlag mux flagUnwatched
          when (unwatched /= 0) $ do
            withLock mux (writeFlag mux flagWatchWanted 1)
            kickReader mux
          watch' <- if busy > 0 then look now watch {watchIdle = 0} else idle now watch
          loop tick watch'

    look now watch = do
      cursor <- expire now (watchCursor watch)
      reads' <- readFlag mux flagReads
      sent <- readFlag mux flagSent
      writerBusy <- readFlag mux flagWriterBusy
      -- The socket is full, and yet takes bytes: somebody reads them. A probe would
      -- stand behind all that waits to be sent.
      let takes = writerBusy /= 0 && sent /= watchSent watch
          alive = takes || reads' /= watchReads watch
          watch' = watch {watchCursor = cursor, watchReads = reads', watchSent = sent}
      if alive then pure (calm now watch') else silence now watch'

    idle now watch
      | watchIdle watch < idleTicks = pure (calm now watch) {watchIdle = watchIdle watch + 1}
      | otherwise = do
        asleep <- withLock mux $ do
          busy <- inFlight mux
          unwatched <- readFlag mux flagUnwatched
          status <- readIORef (muxStatus mux)
          case status of
            Open | busy == 0 && unwatched == 0 -> True <$ writeFlag mux flagWatchdogParked 1
            _ -> pure False
        when asleep $ do
          takeMVar (muxWatchdogWake mux)
          withLock mux (writeFlag mux flagWatchdogParked 0)
        now' <- coarseNanos
        pure (calm now' watch) {watchIdle = 0}

    calm now watch = watch {watchReadAt = now, watchProbedAt = Nothing}

    -- Fails whoever has waited too long and returns the next to look at.
    expire now cursor = case muxCommandTimeout settings of
      Nothing -> pure cursor
      Just timeout -> do
        -- Under the lock, so that no cell is used again while it is looked at.
        (next, expired) <- withLock mux $ do
          from <- max cursor <$> ringHead (muxRing mux)
          to <- ringTail (muxRing mux)
          collect (now - timeout) from (min to (from + mostPerTick)) []
        mapM_ (`fillSlot` Failure (TimeoutError MaybeExecuted (secondsFromNanos timeout))) expired
        pure next

    collect before from to slots
      | from >= to = pure (from, slots)
      | otherwise = do
        pending <- ringPeek (muxRing mux) from
        if pendingSince pending <= before
          then collect before (from + 1) to (pendingSlot pending : slots)
          else pure (from, slots)

    -- Ends by the time of the probe: after this process has stood still, the silence is
    -- as long as that, and the answer to the probe still needs its time.
    silence now watch = case (muxSilenceLimit settings, watchProbedAt watch) of
      (Just limit, Just probed)
        | now - probed >= limit -> watch <$ killMultiplexer mux (SilentPeer (secondsFromNanos quiet))
      (Just limit, Nothing)
        | quiet >= limit -> watch {watchProbedAt = Just now} <$ sendProbe
      _ -> pure watch
      where
        quiet = now - watchReadAt watch

-- | A twentieth of the shortest limit, between 1 ms and 100 ms.
tickFor :: [Nanos] -> Nanos
tickFor limits = max 1000000 (minimum (100000000 : map (`quot` 20) limits))

-- | The lock is not held for more commands than this at a time.
mostPerTick :: Int
mostPerTick = 4096

-- | Ticks of idleness before the watchdog sleeps.
idleTicks :: Int
idleTicks = 20
