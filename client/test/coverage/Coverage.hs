-- | Whether and how the library offers every command that servers know.
--
-- A command is typed if it is among the cases that the tests run ("Redis.CommandCases"), so no list
-- has to name it. It needs a connection of its own if the library itself says so. Each refused
-- command has its reason here. All other commands are missing, which is an error.
module Coverage
  ( Offer (..),
    Covered (..),
    covered,
    missing,
    byGroup,
    untypedOptions,

    -- * The lists by hand
    refused,
    otherwiseOffered,
    sameOptions,
    withoutOption,
    documentedServers,
    onlyDocumented,
    withoutReply,
  )
where

import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Data.Char (toUpper)
import Data.List (nub, sortOn)
import Data.List.NonEmpty (NonEmpty)
import Data.List.NonEmpty qualified as NonEmpty
import Data.Map.Strict (Map)
import Data.Map.Strict qualified as Map
import Data.Maybe (fromMaybe)
import Data.Set (Set)
import Data.Set qualified as Set
import Redis.CommandCase (Case (..))
import Redis.CommandCases (cases)
import Redis.Documentation
import Redis.Internal.Protocol.CommandTable

-- | How the library offers a command.
data Offer
  = -- | By these functions, the plain form first.
    Typed (NonEmpty String)
  | -- | By these functions, on a dedicated connection.
    TypedBlocking (NonEmpty String)
  | -- | On a connection that the caller holds, in this way.
    OnConnection String
  | -- | Not at all, for this reason.
    Refused String
  | -- | There is no decision about it.
    Missing
  deriving stock (Eq, Show)

-- | A command, its documentation by the servers, and how the library offers it.
data Covered = Covered
  { coveredEntry :: CommandEntry,
    coveredDocs :: Maybe Documentation,
    coveredOffer :: Offer
  }

-- | Every command, by name, except those that only contain subcommands.
covered :: [Covered]
covered =
  [ Covered {coveredEntry, coveredDocs, coveredOffer = offer coveredEntry}
    | coveredEntry <- allCommands,
      not (entryContainer coveredEntry),
      let coveredDocs = lookupDocumentation (entryName coveredEntry)
  ]

offer :: CommandEntry -> Offer
offer entry
  | Just functions <- Map.lookup name typed = if entryBlocking entry then TypedBlocking functions else Typed functions
  | Just reason <- lookup name refused = Refused reason
  | changesConnection entry = OnConnection (fromMaybe "`withDedicated`, by `raw`" (lookup name otherwiseOffered))
  | otherwise = Missing
  where
    name = entryName entry

-- | The functions that make each command, the shortest name first.
typed :: Map ByteString (NonEmpty String)
typed =
  Map.mapMaybe (NonEmpty.nonEmpty . sortOn length . nub) . Map.fromListWith (flip (<>)) $
    [ (entryName entry, [caseName])
      | Case {caseName, caseWords} <- cases,
        Just entry <- [lookupCommand caseWords]
    ]

-- | Each typed command with the words of its arguments, as servers describe them, that no case sends.
untypedOptions :: [(ByteString, ByteString)]
untypedOptions =
  [ (name, word)
    | Covered {coveredEntry, coveredDocs} <- covered,
      let name = entryName coveredEntry,
      Just sent <- [Map.lookup name sentWords],
      word <- foldMap docOptions coveredDocs,
      not (word `Set.member` sent)
  ]

-- | The words that the cases of each command send, in capitals, and those of the commands whose
-- options are the same type.
sentWords :: Map ByteString (Set ByteString)
sentWords = Map.mapWithKey (\name own -> own <> foldMap of' (concat (filter (name `elem`) sameOptions))) sent
  where
    of' name = Map.findWithDefault Set.empty name sent
    sent =
      Map.fromListWith
        (<>)
        [ (entryName entry, Set.fromList (map (Char8.map toUpper) caseWords))
          | Case {caseWords} <- cases,
            Just entry <- [lookupCommand caseWords]
        ]

missing :: [Covered] -> [ByteString]
missing those = [entryName (coveredEntry one) | one <- those, coveredOffer one == Missing]

-- | The commands by group, in the order of the groups' names.
byGroup :: [Covered] -> [(ByteString, [Covered])]
byGroup those = Map.toList (Map.fromListWith (flip (<>)) [(maybe "unknown" docGroup (coveredDocs one), [one]) | one <- those])

-- | The servers of which only the documentation is known: none was run.
documentedServers :: [ByteString]
documentedServers = ["redis-8.10", "valkey-9.2"]

-- | Whether only such servers have a command.
onlyDocumented :: Covered -> Bool
onlyDocumented Covered {coveredDocs} = maybe False (all (`elem` documentedServers) . docServers) coveredDocs

-- | The typed commands of such servers of which no case has a documented reply.
withoutReply :: [ByteString]
withoutReply = [name | one <- covered, onlyDocumented one, let name = entryName (coveredEntry one), name `Map.member` typed, name `Set.notMember` replied]
  where
    replied = Set.fromList [entryName entry | Case {caseWords, caseReplies} <- cases, not (null caseReplies), Just entry <- [lookupCommand caseWords]]

-- | The refused commands, with the reasons.
refused :: [(ByteString, String)]
refused =
  [ ("CLUSTER|SYNCSLOTS", "Between nodes that move slots."),
    ("DEBUG", "For tests of servers: each version has other subcommands, and some end the server. `raw` sends it."),
    ("MONITOR", "Its answer never ends: `withWire` reads it."),
    ("PSYNC", "Between a replica and its primary: `withWire` speaks it."),
    ("REPLCONF", "Between a replica and its primary: `withWire` speaks it."),
    ("RESTORE-ASKING", "Between nodes that move slots: ASKING and RESTORE say the same."),
    ("SCRIPT|DEBUG", "Makes a debugger of the connection: `withWire` speaks to it."),
    ("SYNC", "Between a replica and its primary: `withWire` speaks it."),
    ("XIDMPRECORD", "Between a server and its own files: it restores what XADD with IDMP has remembered.")
  ]

-- | Commands that concern a connection, and that the library offers in another way than by 'raw' on
-- a dedicated connection.
otherwiseOffered :: [(ByteString, String)]
otherwiseOffered =
  [ ("DISCARD", "`watching`"),
    ("EXEC", "`runTransaction`"),
    ("MULTI", "`runTransaction`"),
    ("UNWATCH", "`watching`"),
    ("WATCH", "`watching`")
  ]
    -- No reply answers it.
    <> [("CLIENT|REPLY", "`withWire`, as bytes")]
    <> [(name, "`withSubscription`") | name <- ["PSUBSCRIBE", "SSUBSCRIBE", "SUBSCRIBE"]]
    <> [(name, "`unsubscribe`") | name <- ["PUNSUBSCRIBE", "SUNSUBSCRIBE", "UNSUBSCRIBE"]]

-- | Words of arguments that no typed command sends, with the reasons.
withoutOption :: [((ByteString, ByteString), String)]
withoutOption =
  concat
    [ without "The default: no word says the same, also to older servers." $
        [(name, "BYTE") | name <- ["BITCOUNT", "BITPOS"]]
          <> [("ARGREP", "OR")]
          <> [("FUNCTION|RESTORE", "APPEND")]
          <> [(name, "ASC") | name <- ["SORT", "SORT_RO"]]
          <> [(name, word) | name <- ["XADD", "XTRIM"], word <- ["=", "KEEPREF"]]
          <> [(name, "SUM") | name <- ["ZINTER", "ZINTERSTORE", "ZUNION", "ZUNIONSTORE"]],
      without "Another name of MASTER or REPLICA, which all servers know." [("CLIENT|KILL", word) | word <- ["PRIMARY", "SLAVE"]],
      without "PXAT says the same, to the millisecond." [(name, "EXAT") | name <- ["GETEX", "HGETEX", "HSETEX", "INCREX", "MSETEX", "SET"]],
      without "The ranges of a match tell its length." [("LCS", "WITHMATCHLEN")],
      without "ZRANGE says the same, and all servers that know the word have it." $
        [(name, "XX") | name <- ["ZRANGEBYLEX", "ZRANGEBYSCORE", "ZREVRANGE", "ZREVRANGEBYLEX", "ZREVRANGEBYSCORE"]]
    ]
  where
    without reason those = [(one, reason) | one <- those]

-- | Commands whose functions take the same type of options, so that one function of the library writes
-- their words. A case of one of them then shows that all can send a word.
sameOptions :: [[ByteString]]
sameOptions =
  [ ["CLIENT|KILL", "CLIENT|LIST"],
    ["COMMANDLOG|GET", "COMMANDLOG|LEN", "COMMANDLOG|RESET"],
    ["EXPIRE", "EXPIREAT", "PEXPIRE", "PEXPIREAT"],
    ["FLUSHALL", "FLUSHDB", "FUNCTION|FLUSH", "SCRIPT|FLUSH"],
    ["GEORADIUS", "GEORADIUSBYMEMBER", "GEORADIUSBYMEMBER_RO", "GEORADIUS_RO", "GEOSEARCH", "GEOSEARCHSTORE"],
    ["GETEX", "HGETEX", "HSETEX", "INCREX", "MSETEX", "SET"],
    ["HEXPIRE", "HEXPIREAT", "HPEXPIRE", "HPEXPIREAT"],
    ["SORT", "SORT_RO"],
    ["ZINTER", "ZINTERSTORE", "ZUNION", "ZUNIONSTORE"]
  ]
