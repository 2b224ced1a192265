{-# LANGUAGE ExistentialQuantification #-}

-- | A command as a program writes it, the words that it must be, and what a server
-- answers.
--
-- One list of cases serves several suites: the unit tests compare the words, hold the
-- command to the table, and see that no exported command lacks a case. The
-- integration tests run every case on a server, with RESP2 and with RESP3.
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
  )
where

import Data.ByteString (ByteString)
import Redis.Command (Command)

-- | One use of a command.
data Case = forall a.
  (Eq a, Show a) =>
  Case
  { -- | The name under which the command is exported.
    caseName :: String,
    caseCommand :: Command a,
    -- | On the wire.
    caseWords :: [ByteString],
    -- | What is done before, on an empty server.
    caseGiven :: [[ByteString]],
    caseOutcome :: Outcome a,
    -- | What its options ask of a server, beyond the command itself.
    caseNeeds :: Needs,
    -- | Whether it concerns the connection, so that it is run on a lent one.
    caseLent :: Bool
  }

-- | What comes back.
data Outcome a
  = -- | This.
    Gives a
  | -- | Something of which this sentence is true, because it differs from one run to
    -- the next.
    Such String (a -> Bool)
  | -- | An error reply of this code, as from a server that stands alone.
    Fails ByteString
  | -- | A refusal, before anything is sent: no server takes such an argument.
    Unfit
  | -- | Nothing: the server ends. It is one that nothing else is asked of.
    EndsServer

-- | Which servers take it.
data Needs
  = -- | Those that have the command.
    TheCommand
  | -- | Of each family that does, those from this version on. Others refuse it.
    AtLeast [(Family, Version)]
  deriving stock (Eq, Show)

-- | Who makes a server.
data Family = IsRedis | IsValkey
  deriving stock (Eq, Show)

-- | Major and minor.
type Version = (Int, Int)

-- | On an empty server.
onEmpty :: (Eq a, Show a) => String -> Command a -> [ByteString] -> Outcome a -> Case
onEmpty = after []

-- | After these commands, on an empty server.
after :: (Eq a, Show a) => [[ByteString]] -> String -> Command a -> [ByteString] -> Outcome a -> Case
after caseGiven caseName caseCommand caseWords caseOutcome =
  Case {caseName, caseCommand, caseWords, caseGiven, caseOutcome, caseNeeds = TheCommand, caseLent = False}

-- | Only on these servers.
needs :: [(Family, Version)] -> Case -> Case
needs versions one = one {caseNeeds = AtLeast versions}

-- | On a lent connection.
lent :: Case -> Case
lent one = one {caseLent = True}
