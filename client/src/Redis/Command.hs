-- | Commands as values: what a command tells about itself, and functions that change it.
--
-- The same value can be run in every way: synchronously, asynchronously, in a pipeline,
-- in a cluster. "Redis.Commands" has the commands that servers know;
-- "Redis.Command.Build" makes others.
module Redis.Command
  ( Command,
    commandName,
    commandArguments,
    commandKeys,
    decoded,

    -- * Changing a command
    decodedBy,
    refine,
    idempotent,
    timeLimit,
    readFrom,

    -- * Naming nodes
    onNode,
    onEvery,
    onEach,
    NodeSet (..),

    -- * Facts
    Facts,
    commandFacts,
    factReadOnly,
    factIdempotent,
    factBlocking,
    factScope,
    Blocking (..),
    Scope (..),
  )
where

import Redis.Internal.Command
