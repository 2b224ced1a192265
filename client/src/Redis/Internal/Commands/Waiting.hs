-- | A command that waited on one node and goes on waiting on another.
--
-- The server counts a command's time from when it gets it, so a command that is
-- sent again as it stands would keep its caller waiting anew. What is left of
-- its time is written into its bytes instead: they are taken apart, which costs
-- only those commands anything.
module Redis.Internal.Commands.Waiting
  ( withRemaining,
  )
where

import Control.Monad (guard)
import Data.ByteString (ByteString)
import Redis.Command
import Redis.Internal.Protocol.CommandTable (lookupCommand, withTimeout)
import Redis.Internal.Protocol.Decode (DecodeLimits (..), decodeBytes)
import Redis.Internal.Protocol.Encode (Request, request, requestBytes)
import Redis.Value (Value (..))

-- | The command as it is to be sent when so many seconds have passed since it
-- was begun. One that does not wait, waits for ever, or has its timeout where
-- nobody knows, stays as it is. If no time is left, two milliseconds are, in which
-- the server says what it says when nothing came. \(O(n)\).
withRemaining :: Double -> Command a -> Command a
withRemaining passed command@Command {commandRequest, commandFacts} = case factBlocking commandFacts of
  BlocksFor limit
    | Just shortened <- shorten left ->
      command {commandRequest = shortened, commandFacts = commandFacts {factBlocking = BlocksFor left}}
    where
      left = max 0.002 (limit - max 0 passed)
  _ -> command
  where
    shorten left = do
      commandWords <- requestWords commandRequest
      entry <- lookupCommand commandWords
      request <$> withTimeout entry left commandWords

-- | The name and the arguments that a request was made of. \(O(n)\).
requestWords :: Request -> Maybe [ByteString]
requestWords encoded = case decodeBytes unlimited (requestBytes encoded) of
  Right (Array values, rest) -> do
    guard (rest == "")
    traverse word values
  _ -> Nothing
  where
    word = \case
      BulkString bytes -> Just bytes
      _ -> Nothing
    -- They are our own.
    unlimited = DecodeLimits {decodeMaxBulk = maxBound `quot` 2, decodeMaxElements = maxBound `quot` 2, decodeMaxDepth = 2}
