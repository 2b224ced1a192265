{-# LANGUAGE ExistentialQuantification #-}

-- | A use of a command, with the words that it must send and the outcome on a server.
--
-- One list of cases serves several suites. The unit tests compare the words, check the command
-- against the table, and check that every exported command has a case. The integration tests run
-- every case on a server, with RESP2 and with RESP3. A server that lacks the command must refuse it; so
-- where no server at hand has it, the unit tests compare the outcome with documented replies.
module Redis.CommandCase
  ( Case (..),
    Outcome (..),
    Needs (..),
    Family (..),
    Version,
    onEmpty,
    after,
    needs,
    lent,
    documented,
  )
where

import Data.ByteString (ByteString)
import Redis.Command (Command)
import Redis.Value (Value)

-- | One use of a command.
data Case = forall a.
  (Eq a, Show a) =>
  Case
  { -- | The name under which the command is exported.
    caseName :: String,
    caseCommand :: Command a,
    -- | The words on the wire.
    caseWords :: [ByteString],
    -- | The commands that run before it, on an empty server.
    caseGiven :: [[ByteString]],
    caseOutcome :: Outcome a,
    -- | Which server versions the command's options need, beyond the command itself.
    caseNeeds :: Needs,
    -- | Whether the command changes its connection, so that it runs on a dedicated one.
    caseLent :: Bool,
    -- | Replies with this outcome as the servers' documentation has them, in the forms of both
    -- protocols: for commands that no server at hand knows.
    caseReplies :: [Value]
  }

-- | The expected outcome.
data Outcome a
  = -- | This result.
    Gives a
  | -- | A result that differs from one run to the next. The sentence describes it, and the function
    -- checks it.
    Such String (a -> Bool)
  | -- | An error reply with this code, as from a standalone server.
    Fails ByteString
  | -- | A refusal before anything is sent: no server accepts such an argument.
    Unfit
  | -- | No reply: the command ends its server. The server is used for this case only.
    EndsServer

-- | Which servers accept the command.
data Needs
  = -- | Every server that has the command.
    TheCommand
  | -- | The servers of each listed family from this version on. Others refuse the command.
    AtLeast [(Family, Version)]
  deriving stock (Eq, Show)

-- | The project that makes a server.
data Family = IsRedis | IsValkey
  deriving stock (Eq, Show)

-- | Major and minor version.
type Version = (Int, Int)

-- | A case on an empty server.
onEmpty :: (Eq a, Show a) => String -> Command a -> [ByteString] -> Outcome a -> Case
onEmpty = after []

-- | A case on an empty server, after these commands.
after :: (Eq a, Show a) => [[ByteString]] -> String -> Command a -> [ByteString] -> Outcome a -> Case
after caseGiven caseName caseCommand caseWords caseOutcome =
  Case {caseName, caseCommand, caseWords, caseGiven, caseOutcome, caseNeeds = TheCommand, caseLent = False, caseReplies = []}

-- | Limits a case to these servers.
needs :: [(Family, Version)] -> Case -> Case
needs versions one = one {caseNeeds = AtLeast versions}

-- | Runs a case on a dedicated connection.
lent :: Case -> Case
lent one = one {caseLent = True}

-- | Has these replies by the documentation.
documented :: [Value] -> Case -> Case
documented replies one = one {caseReplies = replies}
