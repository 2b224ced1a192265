-- | Processor time.
--
-- On one core, operations per second say as much about the server as about the client. Processor
-- time per command shows the cost of the client alone.
module Tool.Bench.Cpu
  ( Nanos,
    ownCpu,
    endedChildrenCpu,
    monotonic,
  )
where

import Data.Int (Int64)
import GHC.Clock (getMonotonicTimeNSec)
import System.CPUTime (getCPUTime)

-- | Nanoseconds.
type Nanos = Int

-- | User and system time of this process, of all its threads. \(O(1)\).
ownCpu :: IO Nanos
ownCpu = (\picoseconds -> fromInteger (picoseconds `div` 1000)) <$> getCPUTime

-- | User and system time of the children that have ended and been waited for. The difference
-- between before and after one child's life is the time of that child, if no other child ends
-- meanwhile. \(O(1)\).
endedChildrenCpu :: IO Nanos
endedChildrenCpu = fromIntegral <$> childrenNanos

foreign import ccall unsafe "redis_client_tool_children_cpu_nanos"
  childrenNanos :: IO Int64

-- | A clock that only goes forward, from an arbitrary point. \(O(1)\).
monotonic :: IO Nanos
monotonic = fromIntegral <$> getMonotonicTimeNSec
