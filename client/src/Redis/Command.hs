-- | Commands as values: what they say of themselves, and how they are changed.
--
-- One value serves every way of running it — waiting, asynchronously, in a
-- pipeline, in a cluster. "Redis.Commands" has those that servers know;
-- "Redis.Command.Build" makes others.
module Redis.Command
  ( Command,
    commandName,
    commandWords,
    commandKeys,
    decoded,

    -- * Changing a command
    decodedBy,
    repeatable,
    timeLimit,
    readFrom,

    -- * Naming nodes
    onNode,
    onEvery,
    onEach,
    Audience (..),

    -- * What the server does with it
    Facts,
    commandFacts,
    factReadOnly,
    factRepeatable,
    factBlocking,
    factScope,
    Blocking (..),
    Scope (..),
  )
where

import Redis.Internal.Command
