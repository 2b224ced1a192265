-- | The only place that starts threads.
--
-- A worker is labelled, begins masked, and is tied to one capability: a
-- connection's threads share a cache with the callers they serve, and two
-- capabilities working on one connection lose most of its throughput (see
-- @docs/guide/tuning.md@).
module Redis.Internal.Network.Worker
  ( spawnOn,
    spawn,
  )
where

import Control.Concurrent (ThreadId, forkIO, forkOn)
import Control.Exception (mask_)
import GHC.Conc (labelThread)

-- | Starts a masked thread on a capability. Its body must end by itself, unless
-- whoever started it keeps the thread and ends it, and must not leak exceptions.
spawnOn :: Int -> String -> IO () -> IO ThreadId
spawnOn capability label body = mask_ $ do
  thread <- forkOn capability body
  labelThread thread label
  pure thread

-- | Starts a masked thread wherever the runtime likes.
spawn :: String -> IO () -> IO ThreadId
spawn label body = mask_ $ do
  thread <- forkIO body
  labelThread thread label
  pure thread
