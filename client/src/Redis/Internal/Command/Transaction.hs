-- | A transaction as a value: the commands that are queued, and how EXEC's reply is read.
--
-- The type is an 'Applicative' and not a 'Monad'. A command cannot depend on another's result,
-- because there is none before EXEC; a program that tries does not compile.
module Redis.Internal.Command.Transaction
  ( Transaction,
    queued,
    tryQueued,
    ExecCondition (..),
    conditioned,
    transactionConditions,
    transactionCommands,
    transactionExec,
    transactionFacts,
    transactionKeys,
    Bounds (..),
    transactionRefusal,
    transactionResult,
    transactionLabel,
    queuedLabels,
  )
where

import Control.Applicative (liftA2, (<|>))
import Data.Bifunctor (first)
import Data.ByteString (ByteString)
import Data.Foldable (asum, toList)
import Data.Sequence (Seq)
import Data.Sequence qualified as Seq
import Redis.Error
import Redis.Internal.Command
import Redis.Internal.Command.Make (fromArguments)
import Redis.Internal.Command.Shown (shownLabel, shownPart, shownTransaction)
import Redis.Internal.Protocol.Encode (requestExceeds, requestIsOne)
import Redis.Internal.Protocol.Slot (keySlot)
import Redis.Value (Value (..))

-- | The conditions of EXEC, commands that run together, with no other client's command in between,
-- and a function that makes a result of their replies.
data Transaction a = Transaction [ExecCondition] (Seq Queued) (Results -> Reading a)

-- | A condition that the server compares when EXEC comes.
data ExecCondition
  = -- | IFEQ: the key holds this value, a string.
    ExecIfEqual ByteString ByteString
  | -- | IFNE: the key does not exist, or holds another string.
    ExecIfNotEqual ByteString ByteString
  | -- | NX: the key does not exist.
    ExecIfAbsent ByteString
  | -- | XX: the key exists.
    ExecIfPresent ByteString
  deriving stock (Eq, Show)

conditionKey :: ExecCondition -> ByteString
conditionKey = \case
  ExecIfEqual name _ -> name
  ExecIfNotEqual name _ -> name
  ExecIfAbsent name -> name
  ExecIfPresent name -> name

-- | The transaction under these conditions, too.
conditioned :: [ExecCondition] -> Transaction a -> Transaction a
conditioned more (Transaction conditions queue reading) = Transaction (more <> conditions) queue reading

transactionConditions :: Transaction a -> [ExecCondition]
transactionConditions (Transaction conditions _ _) = conditions

-- | EXEC, with the conditions.
transactionExec :: Transaction a -> Command Value
transactionExec (Transaction conditions _ _) = fromArguments ("EXEC" : concatMap condition conditions)
  where
    condition = \case
      ExecIfEqual name value -> ["IFEQ", name, value]
      ExecIfNotEqual name value -> ["IFNE", name, value]
      ExecIfAbsent name -> ["NX", name]
      ExecIfPresent name -> ["XX", name]

data Queued = Queued
  { -- | As it is sent; its reply is the server's confirmation that it is queued.
    queuedCommand :: Command Value,
    queuedKeys :: [ByteString],
    -- | The reason to refuse the command, if there is one.
    queuedRefusal :: Bounds -> Maybe Refusal
  }

-- | What a transaction must keep to.
data Bounds = Bounds
  { -- | Whether keys decide where it goes, because there are several nodes.
    boundsSeveralNodes :: Bool,
    -- | The keys that are watched, whose slot it must share then.
    boundsWatched :: [ByteString],
    -- | The most bytes that an argument may have.
    boundsArgument :: Int
  }

-- | The number of commands in the transaction, and the replies not read yet.
data Results = Results Int [Value]

-- | The result that the first replies give, and the remaining replies.
type Reading a = (Either Error a, Results)

instance Functor Transaction where
  fmap f (Transaction conditions queue reading) = Transaction conditions queue (first (fmap f) . reading)

instance Applicative Transaction where
  pure a = Transaction [] Seq.empty ((,) (Right a))
  Transaction conditionsF queueF readingF <*> Transaction conditionsA queueA readingA =
    Transaction (conditionsF <> conditionsA) (queueF <> queueA) $ \results ->
      let (f, others) = readingF results
          (a, rest) = readingA others
       in (f <*> a, rest)

-- | A transaction of one command. If the command fails when it runs, the transaction fails with
-- its error; the commands beside it have run all the same.
queued :: Command a -> Transaction a
queued given = single given $ \results@(Results count _) -> first (first (inPart count)) (next given results)
  where
    -- The error of one command tells nothing about the others, which have run.
    inPart count = \case
      ReplyError failed | count > 1 -> ReplyError failed {serverErrorDelivery = MaybeExecuted}
      other -> other

-- | A transaction of one command, with its own result or 'Error': if it fails, the transaction does
-- not. The error's delivery is that of this command alone.
tryQueued :: Command a -> Transaction (Either Error a)
tryQueued given = single given (first Right . next given)

single :: Command a -> (Results -> Reading b) -> Transaction b
single given = Transaction [] (Seq.singleton (queuedOf given))

next :: Command a -> Results -> Reading a
next given (Results count replies) = case replies of
  value : rest -> (first located (first itsOwn (fromReply info (commandRequest given) value) >>= first UnexpectedReply . commandDecode given), Results count rest)
  [] -> (Left (unlike (show count <> " replies") "fewer" "EXEC"), Results count [])
  where
    info = factInfo (commandFacts given)
    located = withLabel (shownPart (count - length replies + 1) count (commandLabel given))
    -- Servers redirect before they queue. Here the script itself says so, perhaps after a write.
    itsOwn = \case
      ReplyError failed | infoFailsHalfway info, serverErrorCode failed `elem` ["MOVED", "ASK"] -> ReplyError failed {serverErrorDelivery = MaybeExecuted}
      other -> other

queuedOf :: Command a -> Queued
queuedOf given =
  Queued
    { queuedCommand =
        given
          { commandRoute = case commandRoute given of
              AnyNodeFor slot -> AnyNodeFor slot
              _ -> AnyNode,
            commandDecode = Right
          },
      queuedKeys = commandKeys given,
      queuedRefusal = \Bounds {boundsSeveralNodes, boundsArgument} -> asum [malformed boundsArgument, stateful, misplaced boundsSeveralNodes]
    }
  where
    refused = Just (NotInTransaction (commandName given))
    malformed longest
      | null (commandArguments given) = Just EmptyCommand
      | not (requestIsOne (commandRequest given)) = Just NotOneLine
      | Unsendable why <- commandRoute given = Just why
      | commandRequest given `requestExceeds` longest = Just (ArgumentTooLong (commandName given))
      | otherwise = Nothing
    stateful = case factScope (commandFacts given) of
      SharedConnection -> Nothing
      ControlConnection -> Nothing
      OwnConnection -> refused
      ConnectionState -> refused
    misplaced severalNodes = case commandRoute given of
      PerNode _ _ -> refused
      OneNode _ -> refused
      AskServer _ _ -> refused
      Everywhere _ _ | severalNodes -> refused
      NodesOwn | severalNodes -> refused
      _ -> Nothing

-- | The commands, in order. The reply to each is the server's confirmation that it is queued.
transactionCommands :: Transaction a -> [Command Value]
transactionCommands (Transaction _ queue _) = map queuedCommand (toList queue)

-- | The transaction as errors name it.
transactionLabel :: Transaction a -> ByteString
transactionLabel (Transaction _ queue _) = shownTransaction (map queuedLabel (toList queue))

-- | Its commands as errors name them, in order.
queuedLabels :: Transaction a -> [ByteString]
queuedLabels (Transaction _ queue _) = zipWith (`shownPart` length queue) [1 ..] (map queuedLabel (toList queue))

queuedLabel :: Queued -> ByteString
queuedLabel Queued {queuedCommand, queuedKeys} = shownLabel (commandName queuedCommand) queuedKeys

-- | The facts of a transaction. It may be sent again if each of its commands may, but not under a
-- condition: what it has done may let the condition fail, so the second answer would say that
-- nothing was done. Its time limit is the longest that one of its commands has.
transactionFacts :: Transaction a -> Facts
transactionFacts (Transaction conditions queue _) =
  writeFacts
    { factOptions =
        noOptions
          { optionIdempotent = null conditions && all (factIdempotent . factsOf) queue,
            optionTimeLimit = foldr (longest . optionTimeLimit . factOptions . factsOf) Nothing queue
          }
    }
  where
    factsOf = commandFacts . queuedCommand
    longest a b = liftA2 max a b <|> a <|> b

-- | All keys of its conditions and commands.
transactionKeys :: Transaction a -> [ByteString]
transactionKeys (Transaction conditions queue _) = map conditionKey conditions <> concatMap queuedKeys queue

-- | The reason to refuse a transaction, if there is one. Then nothing of it is sent.
transactionRefusal :: Bounds -> Transaction a -> Maybe Refusal
transactionRefusal bounds transaction@(Transaction conditions queue _) =
  asum (fmap (($ bounds) . queuedRefusal) queue) <|> tooLong <|> crossing
  where
    tooLong
      | null conditions = Nothing
      | commandRequest (transactionExec transaction) `requestExceeds` boundsArgument bounds = Just (ArgumentTooLong "EXEC")
      | otherwise = Nothing
    crossing
      | boundsSeveralNodes bounds, not (sameSlot (boundsWatched bounds <> transactionKeys transaction)) = Just (CrossSlot "MULTI")
      | otherwise = Nothing
    sameSlot keys = and (zipWith (==) slots (drop 1 slots))
      where
        slots = map keySlot keys

-- | The result that EXEC's reply gives, which is not an error reply; 'Nothing' if a
-- watched key had changed, or a condition does not hold.
transactionResult :: Transaction a -> Value -> Either Error (Maybe a)
transactionResult (Transaction _ queue reading) = \case
  Array replies
    | length replies == Seq.length queue -> Just <$> fst (reading (Results (Seq.length queue) replies))
    | otherwise -> Left (unlike (show (Seq.length queue) <> " replies") (show (length replies)) "EXEC")
  Null -> Right Nothing
  other -> Left (unlike "EXEC's array" (take 60 (show other)) "EXEC")
