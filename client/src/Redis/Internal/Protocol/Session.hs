-- | Follows what a server remembers of a connection, from the commands on it and the kinds of their
-- replies: this tells whether a lent connection is again as its handshake left it.
--
-- The changes with a way back, when the server accepts them: the keys that it watches (UNWATCH, EXEC, DISCARD),
-- queueing after MULTI (EXEC, DISCARD), the database and the client's name (the same command with the first
-- one), CLIENT TRACKING, NO-EVICT and NO-TOUCH with ON (with OFF), READONLY (READWRITE), and ASKING (the next
-- command, or the end of the transaction that it begins). Anything else that changes a connection, or may,
-- has none.
--
-- In doubt a connection counts as spoilt: also after a reply that does not fit. Queued commands
-- change nothing until EXEC runs them.
module Redis.Internal.Protocol.Session
  ( Session,
    Memory (..),
    Mode (..),
    newSession,
    isAsLeft,
    sessionDatabase,

    -- * One step
    Change (..),
    effectOf,
    Heard (..),
    answerOf,
    step,
  )
where

import Data.ByteString (ByteString)
import Data.ByteString qualified as ByteString
import Data.ByteString.Char8 qualified as Char8
import Data.List qualified as List
import Data.Set (Set)
import Data.Set qualified as Set
import Redis.Error (ServerError (..), serverErrorFromText)
import Redis.Internal.Protocol.CommandTable (changesConnection, lookupCommand)
import Redis.Internal.Protocol.KeySpec (upper)
import Redis.Value (Value (..), withoutAttributes)

-- | The known state of a connection.
data Session
  = -- | Commands run as they come.
    Running Memory
  | -- | After MULTI: what EXEC would do, the latest command first.
    Queueing Memory [Change]
  | -- | The state is not known, or there is no way back.
    Spoilt
  deriving stock (Eq, Ord, Show)

-- | What a server remembers of a connection.
data Memory = Memory
  { memoryDatabase :: Int,
    -- | The client's name, empty for none.
    memoryName :: ByteString,
    -- | The modes that are on.
    memoryModes :: Set Mode
  }
  deriving stock (Eq, Ord, Show)

-- | A mode, which is on or off.
data Mode
  = Watching
  | Tracking
  | ReadingReplicas
  | NotTouching
  | NotEvicted
  | Asking
  deriving stock (Eq, Ord, Show, Enum, Bounded)

-- | A session as a handshake leaves it: in this database, under this name.
newSession :: Int -> ByteString -> Session
newSession database name = Running Memory {memoryDatabase = database, memoryName = name, memoryModes = Set.empty}

-- | Whether the second session is as the first, a new one. A spoilt session never is. \(O(1)\).
isAsLeft :: Session -> Session -> Bool
isAsLeft before = \case
  Spoilt -> False
  now -> now == before

-- | The database in which the next command runs, if it is known.
sessionDatabase :: Session -> Maybe Int
sessionDatabase = \case
  Running memory -> Just (memoryDatabase memory)
  Queueing memory _ -> Just (memoryDatabase memory)
  Spoilt -> Nothing

-- | What a command does to a connection when the server accepts it.
data Change
  = -- | Nothing.
    Harmless
  | -- | MULTI
    BeginsQueue
  | -- | EXEC
    RunsQueue
  | -- | DISCARD
    DropsQueue
  | Selects Int
  | Names ByteString
  | TurnsOn Mode
  | TurnsOff Mode
  | -- | Changes something without a way back. It counts as soon as it is sent, whatever the reply.
    Spoils
  deriving stock (Eq, Ord, Show)

-- | The effect of a command with these words. One that the table lacks may do anything. \(O(\log n)\).
effectOf :: [ByteString] -> Change
effectOf commandArguments = case map upper (take 3 commandArguments) of
  ["MULTI"] -> BeginsQueue
  ["EXEC"] -> RunsQueue
  ["DISCARD"] -> DropsQueue
  "WATCH" : _ -> TurnsOn Watching
  ["UNWATCH"] -> TurnsOff Watching
  ["SELECT", digits]
    | Just (database, "") <- Char8.readInt digits, Char8.pack (show database) == digits -> Selects database
  ["CLIENT", "SETNAME", _] | [_, _, name] <- commandArguments -> Names name
  ["CLIENT", option, "ON"] | Just mode <- lookup option modes -> TurnsOn mode
  ["CLIENT", option, "OFF"] | Just mode <- lookup option modes -> TurnsOff mode
  ["READONLY"] -> TurnsOn ReadingReplicas
  ["READWRITE"] -> TurnsOff ReadingReplicas
  ["ASKING"] -> TurnsOn Asking
  -- HELLO alone only says what there is.
  ["HELLO"] -> Harmless
  -- These commands depend on the connection, and leave it as it is.
  name : _ | name `elem` ["WAIT", "WAITAOF"] -> Harmless
  _
    | Just entry <- lookupCommand commandArguments, not (changesConnection entry) -> Harmless
    | otherwise -> Spoils
  where
    modes = [("TRACKING", Tracking), ("NO-TOUCH", NotTouching), ("NO-EVICT", NotEvicted)]

-- | A reply, as far as it tells what a command has done.
data Heard
  = -- | Any other reply.
    Accepted
  | -- | An error of this code.
    Refused ByteString
  | -- | The reply to a command between MULTI and EXEC.
    Queued
  | -- | A list, as from EXEC: whether each command was accepted.
    Ran [Bool]
  | -- | A null, as from EXEC after a watched key was changed.
    Missing
  deriving stock (Eq, Show)

-- | What a reply tells. \(O(n)\) in the number of elements of a list.
answerOf :: Value -> Heard
answerOf value = case withoutAttributes value of
  ErrorReply text
    | code <- serverErrorCode (serverErrorFromText text) ->
      Refused (if "EXECABORT" `ByteString.isPrefixOf` text && code /= "NOAUTH" then "EXECABORT" else code)
  SimpleString "QUEUED" -> Queued
  Array elements -> Ran (map (not . isError . withoutAttributes) elements)
  Null -> Missing
  _ -> Accepted
  where
    isError = \case
      ErrorReply _ -> True
      _ -> False

-- | The session after a command with this effect and this answer. \(O(1)\), EXEC \(O(n)\) in what was queued.
step :: Change -> Heard -> Session -> Session
step effect answer = \case
  Spoilt -> Spoilt
  _ | Spoils <- effect -> Spoilt
  -- The server has forgotten the connection's authentication.
  _ | Refused "NOAUTH" <- answer -> Spoilt
  Running memory -> running effect answer memory
  Queueing memory queue -> queueing effect answer memory queue

running :: Change -> Heard -> Memory -> Session
running effect answer memory = case (effect, answer) of
  (RunsQueue, Refused "ERR") -> Running (withoutMode Asking memory)
  (RunsQueue, _) -> Spoilt
  (_, Refused _) -> Running (withoutMode Asking memory)
  (BeginsQueue, _) -> Queueing memory []
  (DropsQueue, _) -> Spoilt
  (TurnsOn Asking, _) -> Running (applied effect memory)
  _ -> Running (applied effect (withoutMode Asking memory))

queueing :: Change -> Heard -> Memory -> [Change] -> Session
queueing effect answer memory queue = case (effect, answer) of
  (RunsQueue, Ran accepted)
    | length accepted == length queue ->
      over (List.foldl' (flip applied) memory [queued | (queued, True) <- zip (reverse queue) accepted])
  (RunsQueue, Missing) -> over memory
  (RunsQueue, Refused "EXECABORT") -> over memory
  -- It depends on the server whether other replies end the transaction.
  (RunsQueue, _) -> Spoilt
  (_, Refused _) -> Queueing memory queue
  (DropsQueue, Accepted) -> over memory
  (_, Queued) | mayBeQueued -> Queueing memory (effect : queue)
  _ -> Spoilt
  where
    -- Servers run these at once, or refuse them.
    mayBeQueued = effect `notElem` [BeginsQueue, DropsQueue, TurnsOn Watching]
    over = Running . withoutMode Watching . withoutMode Asking

applied :: Change -> Memory -> Memory
applied effect memory = case effect of
  Selects database -> memory {memoryDatabase = database}
  Names name -> memory {memoryName = name}
  TurnsOn mode -> memory {memoryModes = Set.insert mode (memoryModes memory)}
  TurnsOff mode -> withoutMode mode memory
  _ -> memory

withoutMode :: Mode -> Memory -> Memory
withoutMode mode memory = memory {memoryModes = Set.delete mode (memoryModes memory)}
