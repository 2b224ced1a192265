-- | Kinds of operation that are more than one command, or that need a subscriber or a second
-- connection.
module Tool.Bench.Workload.Alone
  ( publishKind,
    channel,
    blpopKind,
    transactionKind,
  )
where

import Control.Exception (try)
import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Data.List.NonEmpty (NonEmpty (..))
import Redis qualified
import Redis.Command (Command, decodedBy)
import Redis.Command.Build qualified as Build
import Redis.Commands qualified as Commands
import Redis.Commands.Raw (raw)
import Redis.Decode (Decoder, mismatch)
import Redis.Duration (seconds)
import Redis.Error (Error)
import Redis.Value (Value (..))
import Tool.Bench.Workload.Dataset
import Tool.Bench.Workload.Keys
import Tool.Bench.Workload.Random
import Tool.Bench.Workload.Values

-- | Publishes a message to all subscribers, which are in "Tool.Bench.Workload.Subscribers". The server
-- replies with the number of subscribers that it reached.
publishKind :: Dataset -> Kind
publishKind dataset = plainKind "publish" "publish" [] $ \stream -> do
  value <- valueOf (datasetValues dataset) <$> drawKey dataset stream
  -- Routed like a key: that is where the subscribers are.
  pure (Build.command "PUBLISH" [Build.key channel, Build.arg value] reached)
  where
    subscribers = shapeSubscribers (datasetShape dataset)
    reached = \case
      Integer number
        | number == fromIntegral subscribers -> Right Done
        | otherwise -> Right (Wrong (Char8.pack (show number <> " subscribers")))
      other -> mismatch "a number of subscribers" other

channel :: ByteString
channel = "redis-client:bench"

-- | A pop that blocks on the server until something is pushed. The operation sends the pop, then
-- the push on another connection, and ends when the pop has returned the pushed value. Each thread
-- has a list of its own.
blpopKind :: Dataset -> Kind
blpopKind dataset =
  Kind
    { kindName = "blpop",
      kindStats = Just [("blpop", 1), ("rpush", 1)],
      kindMake = \kind stream -> do
        thread <- streamThread stream
        number <- drawKey dataset stream
        let key = "queue:" <> Char8.pack (show thread)
            value = valueOf (datasetValues dataset) number
        pure . DrawnAlone kind $ \client -> do
          popping <- Redis.submit client (Commands.blpop (key :| []) (Just (seconds 10)))
          pushed <- Redis.tryRun client (Commands.rpush key (value :| []))
          popped <- Redis.tryAwaitReply popping
          pure (verdict value <$> (pushed *> popped)),
      kindSteps = []
    }
  where
    verdict value = \case
      Just (_, found)
        | found == value -> Hit
        | otherwise -> Wrong found
      Nothing -> Miss

-- | Sets a key and reads it back in one transaction: four commands, one after the other, on a
-- connection that no other thread uses meanwhile.
transactionKind :: Dataset -> Kind
transactionKind dataset =
  Kind
    { kindName = "transaction",
      kindStats = Just [("multi", 1), ("set", 1), ("get", 1), ("exec", 1)],
      kindMake = \kind stream -> do
        number <- drawKey dataset stream
        let key = keyOf (datasetKeys dataset) number
            value = valueOf (datasetValues dataset) number
        pure . DrawnAlone kind $ \client ->
          try @Error
            ( Redis.withDedicated client (Redis.AtKey key) $ \connection -> do
                -- An error here throws, and that closes the connection.
                Redis.runOn connection (part ["MULTI"] (is "OK"))
                Redis.runOn connection (part ["SET", key, value] (is "QUEUED"))
                Redis.runOn connection (part ["GET", key] (is "QUEUED"))
                Redis.runOn connection (part ["EXEC"] (executed value))
            ),
      kindSteps = []
    }
  where
    executed value = \case
      Array [SimpleString "OK", BulkString found]
        | found == value -> Right Hit
        | otherwise -> Right (Wrong found)
      other -> mismatch "what SET and GET answer" other
    is :: ByteString -> Decoder ()
    is wanted = \case
      SimpleString found | found == wanted -> Right ()
      other -> mismatch (Char8.unpack wanted) other

-- A command of a transaction.
part :: [ByteString] -> Decoder a -> Command a
part arguments decoder = raw arguments `decodedBy` decoder
