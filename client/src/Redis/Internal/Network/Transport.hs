-- | A byte stream to one server, as a record of actions, so that TCP, Unix
-- sockets, TLS and test doubles plug in without a type class.
--
-- The attempts never block; waiting is separate. So one thread of a connection can poll for a
-- while, another can send on behalf of its caller, and both can fall back to waiting when the
-- kernel says so.
--
-- Contract: at most one thread reads and at most one thread writes at a time;
-- the two may be different threads. 'transportShutdown' may be called from any
-- thread at any time and wakes both. 'transportClose' frees the descriptor and
-- must be called exactly once, after no thread uses the transport any more:
-- a descriptor number that is reused while somebody still reads from it would
-- hand one connection's bytes to another.
--
-- Wait only after an attempt that said what to wait for: TLS may hold bytes
-- that it has already taken from the socket, and then the socket is not
-- readable though an attempt would succeed.
module Redis.Internal.Network.Transport
  ( Transport (..),
    Attempt,
    attemptEnd,
    attemptWouldRead,
    attemptWouldWrite,
  )
where

import Data.Word (Word8)
import Foreign.Ptr (Ptr)
import Redis.Error (Endpoint)

-- | The result of an attempt to read or write: the number of bytes if it is positive, otherwise one
-- of 'attemptEnd', 'attemptWouldRead', 'attemptWouldWrite'. An 'Int', because one is returned for
-- every system call and a sum type would be allocated each time.
type Attempt = Int

-- | Reading: the peer has finished. Writing: never.
attemptEnd :: Attempt
attemptEnd = 0

-- | Nothing can be done until the socket is readable.
attemptWouldRead :: Attempt
attemptWouldRead = -1

-- | Nothing can be done until the socket is writable.
attemptWouldWrite :: Attempt
attemptWouldWrite = -2

-- | One connected byte stream.
data Transport = Transport
  { -- | The endpoint at the other end.
    transportEndpoint :: Endpoint,
    -- | Reads at most so many bytes (at least one) to the memory.
    -- Throws @IOException@ when the connection is broken.
    transportTryRead :: Ptr Word8 -> Int -> IO Attempt,
    -- | Writes at most so many bytes (at least one) from the memory. After
    -- 'attemptWouldRead' or 'attemptWouldWrite' the next call must pass the
    -- same memory and size again (TLS demands it).
    -- Throws @IOException@ when the connection is broken.
    transportTryWrite :: Ptr Word8 -> Int -> IO Attempt,
    -- | Blocks until the socket is readable, or shut down.
    transportWaitReadable :: IO (),
    -- | Blocks until the socket is writable, or shut down.
    transportWaitWritable :: IO (),
    -- | Runs an action once the socket is readable, or shut down; at once if it is already. The
    -- action must not block and not throw. Returns an action that withdraws the request, and that
    -- does nothing once the first action has run.
    transportWatchReadable :: IO () -> IO (IO ()),
    -- | Whether the peer is known to have ended the connection. Bytes that it sent before can still be
    -- read. Called by the thread that may write; never blocks, never throws.
    transportHungUp :: IO Bool,
    -- | Waits until so many bytes can be read, for at most so many microseconds.
    -- Blocks the capability, not only the thread. 'Nothing' where bytes are no
    -- measure of what can be read.
    transportGather :: Maybe (Int -> Int -> IO ()),
    -- | Ends both directions at once and wakes every thread that waits. Idempotent, never blocks,
    -- never throws.
    transportShutdown :: IO (),
    -- | Frees the descriptor.
    transportClose :: IO ()
  }
