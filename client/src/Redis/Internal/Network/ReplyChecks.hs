-- | Checks that the replies on a connection belong to their commands.
--
-- A server that sends one reply too many or too few gives each later caller another's reply: servers without
-- the mend of CVE-2025-67733 can be made to by a script, whose error holds a line break. So each block that
-- is sent ends with @ECHO@ of a number that was not used before. The replies to the block are held until the
-- number comes at its place; if anything else comes there, also an error (@BUSY@), which a script could say,
-- the connection ends and what was held is dropped. While replies are held, their commands stay in the ring,
-- and so count as in flight.
--
-- The first number is drawn at random for each connection, or a script could say the number itself.
module Redis.Internal.Network.ReplyChecks
  ( ReplyChecks,
    newReplyChecks,
    checkKey,
    nextCheck,
    hold,
    heldReplies,
    release,
  )
where

import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Data.IORef
import Redis.Internal.Network.InFlight (OrderKey)
import Redis.Internal.Protocol.Encode (Request, request)
import Redis.Value (Value (BulkString))
import System.Random (randomRIO)

-- | The checks of one connection.
data ReplyChecks = ReplyChecks
  { checksFirst :: Int,
    -- | How many were queued. Written under the connection's lock.
    checksQueued :: IORef Int,
    -- | How many were right. Written by the reader.
    checksPassed :: IORef Int,
    -- | The replies since the last check, last first. Written by the reader.
    checksHeld :: IORef [Value],
    checksHeldCount :: IORef Int
  }

-- | No check yet, and nothing held.
newReplyChecks :: IO ReplyChecks
newReplyChecks = do
  -- Numbers of 19 digits, all of a connection's.
  checksFirst <- randomRIO (1000000000000000000, 9000000000000000000)
  ReplyChecks checksFirst <$> newIORef 0 <*> newIORef 0 <*> newIORef [] <*> newIORef 0

-- | The key by which the ring tells a check from a command.
checkKey :: OrderKey
checkKey = minBound

-- | The request for the next check, and an action that notes that it is queued. Under the lock.
nextCheck :: ReplyChecks -> IO (Request, IO ())
nextCheck checks = do
  count <- readIORef (checksQueued checks)
  pure (request ["ECHO", number checks count], writeIORef (checksQueued checks) $! count + 1)

-- | The number of the check before which so many were.
number :: ReplyChecks -> Int -> ByteString
number checks count = Char8.pack (show (checksFirst checks + count))

-- | Holds a reply until the next check. Only for the reader.
hold :: ReplyChecks -> Value -> IO ()
hold checks reply = do
  modifyIORef' (checksHeld checks) (reply :)
  modifyIORef' (checksHeldCount checks) (+ 1)

-- | How many replies are held. Only for the reader.
heldReplies :: ReplyChecks -> IO Int
heldReplies = readIORef . checksHeldCount

-- | The replies that were held, in order, given the answer to the next check; 'Nothing' if it is wrong.
release :: ReplyChecks -> Value -> IO (Maybe [Value])
release checks answer = do
  passed <- readIORef (checksPassed checks)
  if answer /= BulkString (number checks passed)
    then pure Nothing
    else do
      writeIORef (checksPassed checks) $! passed + 1
      held <- readIORef (checksHeld checks)
      writeIORef (checksHeld checks) []
      writeIORef (checksHeldCount checks) 0
      pure (Just (reverse held))
