-- | Commands that a server runs together, as a value: what is queued, and how EXEC's
-- reply is read.
--
-- The type is applicative and no more. A command cannot depend on the result of
-- another of the same transaction, which is not there before EXEC; such a program
-- does not compile.
module Redis.Internal.Command.Transaction
  ( Transaction,
    queued,
    tryQueued,
    transactionCommands,
    transactionFacts,
    transactionKeys,
    transactionRefusal,
    transactionResult,
  )
where

import Control.Applicative (liftA2, (<|>))
import Data.ByteString (ByteString)
import Data.Foldable (asum, toList)
import Data.Sequence (Seq)
import Data.Sequence qualified as Seq
import Redis.Error
import Redis.Internal.Command
import Redis.Internal.Protocol.Encode (requestIsOne)
import Redis.Internal.Protocol.Slot (keySlot)
import Redis.Value (Value (..))

-- | Commands that run together, with nothing of other clients in between, and what
-- their results are made into.
--
-- @since 0.1.0.0
data Transaction a = Transaction (Seq Queued) (Results -> Reading a)

-- | One command.
data Queued = Queued
  { -- | As it is sent; its reply is the server's word that it is queued.
    queuedCommand :: Command Value,
    queuedKeys :: [ByteString],
    -- | Given whether there are several nodes.
    queuedRefusal :: Bool -> Maybe Refusal
  }

-- | Replies that are not read yet, and how many commands there are in all.
data Results = Results Int [Value]

-- | What the first of them come to, and the others.
type Reading a = (Either Error a, Results)

instance Functor Transaction where
  fmap f (Transaction queue reading) = Transaction queue $ \results ->
    let (result, rest) = reading results in (f <$> result, rest)

instance Applicative Transaction where
  pure a = Transaction Seq.empty ((,) (Right a))
  Transaction queueF readingF <*> Transaction queueA readingA =
    Transaction (queueF <> queueA) $ \results ->
      let (f, others) = readingF results
          (a, rest) = readingA others
       in (f <*> a, rest)

-- | One command. If it fails when it runs, the transaction fails with its error; what
-- stands beside it has run all the same.
--
-- @since 0.1.0.0
queued :: Command a -> Transaction a
queued given = Transaction (Seq.singleton (queuedOf given)) $ \results@(Results count _) ->
  let (result, rest) = next given results
   in (either (Left . inPart count) Right result, rest)
  where
    -- Of a transaction that ran, an error of one command tells nothing of the others.
    inPart count = \case
      ReplyError failed | count > 1 -> ReplyError failed {serverErrorDelivery = MaybeExecuted}
      other -> other

-- | One command, with its own result or 'Error': it fails alone. The error's delivery
-- is the command's own.
--
-- @since 0.1.0.0
tryQueued :: Command a -> Transaction (Either Error a)
tryQueued given = Transaction (Seq.singleton (queuedOf given)) $ \results ->
  let (result, rest) = next given results in (Right result, rest)

next :: Command a -> Results -> Reading a
next given (Results count replies) = case replies of
  value : rest -> (fromReply (commandFacts given) value >>= decoded given, Results count rest)
  [] -> (Left (unexpected (show count <> " replies") "fewer"), Results count [])

queuedOf :: Command a -> Queued
queuedOf given =
  Queued
    { queuedCommand =
        Command
          { commandRequest = commandRequest given,
            commandRoute = AnyNode,
            commandFacts = commandFacts given,
            commandDecode = Right
          },
      queuedKeys = commandKeys given,
      queuedRefusal = \severalNodes -> asum [malformed, stateful, misplaced severalNodes]
    }
  where
    refused = Just (NotInTransaction (commandName given))
    malformed
      | null (commandWords given) = Just EmptyCommand
      | not (requestIsOne (commandRequest given)) = Just NotOneLine
      | Unsendable why <- commandRoute given = Just why
      | otherwise = Nothing
    stateful = case factScope (commandFacts given) of
      SharedConnection -> Nothing
      ControlLane -> Nothing
      OwnConnection -> refused
      ConnectionState -> refused
    misplaced severalNodes = case commandRoute given of
      PerNode _ _ -> refused
      OneNode _ -> refused
      AskServer _ -> refused
      Everywhere _ _ | severalNodes -> refused
      NodesOwn | severalNodes -> refused
      _ -> Nothing

-- | What is queued, in order. Their replies are the server's word that it has queued
-- them.
transactionCommands :: Transaction a -> [Command Value]
transactionCommands (Transaction queue _) = map queuedCommand (toList queue)

-- | It may be sent again if each of its commands may. It has the longest time that one
-- of them was given.
transactionFacts :: Transaction a -> Facts
transactionFacts (Transaction queue _) =
  writeFacts
    { factRepeatable = all (factRepeatable . factsOf) queue,
      factPatience = foldr (longest . factPatience . factsOf) Nothing queue
    }
  where
    factsOf = commandFacts . queuedCommand
    longest a b = liftA2 max a b <|> a <|> b

-- | All keys.
transactionKeys :: Transaction a -> [ByteString]
transactionKeys (Transaction queue _) = concatMap queuedKeys queue

-- | Why it is not sent, given whether there are several nodes.
transactionRefusal :: Bool -> Transaction a -> Maybe Refusal
transactionRefusal severalNodes transaction@(Transaction queue _) =
  asum (fmap (($ severalNodes) . queuedRefusal) queue) <|> crossing
  where
    crossing
      | severalNodes, not (sameSlot (transactionKeys transaction)) = Just (CrossSlot "MULTI")
      | otherwise = Nothing
    sameSlot keys = and (zipWith (==) slots (drop 1 slots))
      where
        slots = map keySlot keys

-- | What EXEC's reply comes to, error replies aside; 'Nothing' if a watched key had
-- changed.
transactionResult :: Transaction a -> Value -> Either Error (Maybe a)
transactionResult (Transaction queue reading) = \case
  Array replies
    | length replies == Seq.length queue -> Just <$> fst (reading (Results (Seq.length queue) replies))
    | otherwise -> Left (unexpected (show (Seq.length queue) <> " replies") (show (length replies)))
  Null -> Right Nothing
  other -> Left (unexpected "EXEC's array" (take 60 (show other)))

unexpected :: String -> String -> Error
unexpected decodeErrorExpected decodeErrorGot =
  UnexpectedReply DecodeError {decodeErrorPath = [], decodeErrorExpected, decodeErrorGot, decodeErrorCommand = "EXEC"}
