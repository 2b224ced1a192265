-- | Whether every command that servers know is offered, and how.
--
-- A command is typed if it is among the cases that the tests run
-- ("Redis.CommandCases"), so nobody has to note it. It is scoped to a connection if the
-- library says so itself. What is refused has a reason here. All others are missing,
-- which is an error.
module Coverage
  ( Offer (..),
    Covered (..),
    covered,
    missing,
    byGroup,

    -- * The lists by hand
    refused,
    otherwiseOffered,
  )
where

import Data.ByteString (ByteString)
import Data.List (nub, sortOn)
import Data.List.NonEmpty (NonEmpty)
import Data.List.NonEmpty qualified as NonEmpty
import Data.Map.Strict (Map)
import Data.Map.Strict qualified as Map
import Data.Maybe (fromMaybe)
import Redis.CommandCase (Case (..))
import Redis.CommandCases (cases)
import Redis.Internal.Protocol.CommandTable
import Redis.Internal.Protocol.CommandTable.Documentation

-- | How a command is offered.
data Offer
  = -- | By these functions, the plain form first.
    Typed (NonEmpty String)
  | -- | By these; it gets a connection of its own.
    TypedBlocking (NonEmpty String)
  | -- | Where a connection is held, in this way.
    OnConnection String
  | -- | Not at all, for this reason.
    Refused String
  | -- | Nobody has decided.
    Missing
  deriving stock (Eq, Show)

-- | A command, what servers say of it, and how it is offered.
data Covered = Covered
  { coveredEntry :: CommandEntry,
    coveredDocs :: Maybe Documentation,
    coveredOffer :: Offer
  }

-- | Every command, by name; those that only have subcommands are none.
covered :: [Covered]
covered =
  [ Covered {coveredEntry, coveredDocs, coveredOffer = offer coveredEntry coveredDocs}
    | coveredEntry <- allCommands,
      not (entryContainer coveredEntry),
      let coveredDocs = lookupDocumentation (entryName coveredEntry)
  ]

offer :: CommandEntry -> Maybe Documentation -> Offer
offer entry docs
  | Just functions <- Map.lookup name typed = if entryBlocking entry then TypedBlocking functions else Typed functions
  | Just reason <- lookup name refused = Refused reason
  | fmap docGroup docs == Just "module" = Refused "A module's: `Redis.Command.Build` makes it."
  | changesConnection entry = OnConnection (fromMaybe "`withDedicated`, by `raw`" (lookup name otherwiseOffered))
  | otherwise = Missing
  where
    name = entryName entry

-- | The functions that make each command, in the order of the cases.
typed :: Map ByteString (NonEmpty String)
typed =
  Map.mapMaybe (NonEmpty.nonEmpty . sortOn length . nub) . Map.fromListWith (flip (<>)) $
    [ (entryName entry, [caseName])
      | Case {caseName, caseWords} <- cases,
        Just entry <- [lookupCommand caseWords]
    ]

missing :: [Covered] -> [ByteString]
missing those = [entryName (coveredEntry one) | one <- those, coveredOffer one == Missing]

-- | By group, in the order of their names.
byGroup :: [Covered] -> [(ByteString, [Covered])]
byGroup those = Map.toList (Map.fromListWith (flip (<>)) [(maybe "unknown" docGroup (coveredDocs one), [one]) | one <- those])

-- | What is refused, and why.
refused :: [(ByteString, String)]
refused =
  [ ("CLUSTER|SYNCSLOTS", "Between nodes that move slots."),
    ("DEBUG", "For tests of servers: each version has other subcommands, and some end the server. `raw` sends it."),
    ("MONITOR", "Its answer never ends: `withWire` reads it."),
    ("PSYNC", "Between a replica and its primary: `withWire` speaks it."),
    ("REPLCONF", "Between a replica and its primary: `withWire` speaks it."),
    ("RESTORE-ASKING", "Between nodes that move slots: ASKING and RESTORE say the same."),
    ("SCRIPT|DEBUG", "Makes a debugger of the connection: `withWire` speaks to it."),
    ("SYNC", "Between a replica and its primary: `withWire` speaks it.")
  ]

-- | Of those that concern a connection: what is offered in another way than by 'raw' on
-- a connection that is lent.
otherwiseOffered :: [(ByteString, String)]
otherwiseOffered =
  [ ("DISCARD", "`watching`"),
    ("EXEC", "`runTransaction`"),
    ("MULTI", "`runTransaction`"),
    ("UNWATCH", "`watching`"),
    ("WATCH", "`watching`")
  ]
    -- It is answered by no reply.
    <> [("CLIENT|REPLY", "`withWire`, as bytes")]
    <> [(name, "`withSubscription`") | name <- ["PSUBSCRIBE", "SSUBSCRIBE", "SUBSCRIBE"]]
    <> [(name, "`unsubscribe`") | name <- ["PUNSUBSCRIBE", "SUNSUBSCRIBE", "UNSUBSCRIBE"]]
