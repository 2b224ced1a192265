-- | The result of "Coverage" for people: a table by group for the terminal, and
-- @docs/commands.md@.
module Page (summary, page) where

import Coverage
import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Data.Char (toUpper)
import Data.Foldable (toList)
import Data.List (intercalate, nub)
import Data.Maybe (fromMaybe)
import Redis.Documentation
import Redis.Internal.Command.Make (splitStep)
import Redis.Internal.Protocol.CommandTable
import Redis.Internal.Protocol.KeySpec (FindKeys (..), KeySpec (..))

-- | A line for each group, one for all commands, and one for each missing command.
summary :: [Covered] -> [String]
summary those =
  row ("group" : columns) :
  [row (Char8.unpack group : counts inside) | (group, inside) <- byGroup those]
    <> [row ("all" : counts those)]
    <> ["missing: " <> Char8.unpack (spaced name) | name <- missing those]
    <> [count' run <> ", and " <> count' beyond <> " that only servers have which were not run"]
  where
    run = filter (not . onlyDocumented) those
    beyond = filter onlyDocumented those
    count' some = show (length some - length (missing some)) <> " of " <> show (length some)
    columns = ["commands", "typed", "blocking", "connection", "refused", "missing"]
    counts inside = map show [length inside, count isTyped inside, count isBlocking inside, count isScoped inside, count isRefused inside, length (missing inside)]
    count which = length . filter (which . coveredOffer)
    row cells = concat (zipWith padded (14 : repeat 12) cells)
    padded width cell = cell <> replicate (width - length cell) ' '
    isTyped = \case Typed _ -> True; _ -> False
    isBlocking = \case TypedBlocking _ -> True; _ -> False
    isScoped = \case OnConnection _ -> True; _ -> False
    isRefused = \case Refused _ -> True; _ -> False

-- | The whole text of @docs/commands.md@.
page :: [Covered] -> String
page those = unlines (introduction those <> concatMap section (byGroup those))

introduction :: [Covered] -> [String]
introduction covers =
  [ "# Commands",
    "",
    "Every command and subcommand that Redis 7.0, 8.0 and 8.6 and Valkey 9.1 know, and the functions of",
    "`Redis.Commands` that make it: " <> counted run <> ", and " <> counted covers <> " with those below. It refuses the others,",
    "which are for replication, debugging and the servers themselves. `make coverage` writes this page from the",
    "tests' cases and from what the servers say of their commands.",
    "",
    "There are " <> show (length beyond) <> " more, of Redis 8.8 and 8.10. They are made from the documentation of these servers, and were",
    "*not run on a server*: the tests compare their words and the documented replies. The same holds for the options that",
    "these servers, and Valkey 9.2, added to older commands.",
    "",
    "- *Since* is the first version of the server that has the command. One version is that of both",
    "  families; a family that is not named lacks it.",
    "- *In a cluster* says where a command goes by itself. `onNode`, `onEvery` and `onEach` name other",
    "  nodes. A command for *a named node* is refused until they do.",
    "- A command that changes its connection is refused where callers share one. `withDedicated` lends one.",
    "- *Newest servers* are Redis 8.6 and Valkey 9.1: those of them that have the command.",
    "",
    "Each function can send each word that a server describes for its command (`COMMAND DOCS`), but for these:",
    "",
    "| Commands | Words | Why not |",
    "|---|---|---|"
  ]
    <> [ "| " <> intercalate ", " (nub (map (Char8.unpack . spaced . fst) those)) <> " | " <> intercalate ", " (nub (map (\one -> "`" <> Char8.unpack (snd one) <> "`") those)) <> " | " <> reason <> " |"
         | reason <- nub (map snd withoutOption),
           let those = [one | (one, why) <- withoutOption, why == reason]
       ]
    <> [""]
  where
    run = filter (not . onlyDocumented) covers
    beyond = filter onlyDocumented covers
    counted some = show (length (filter (offered . coveredOffer) some)) <> " of " <> show (length some)
    offered = \case
      Refused _ -> False
      Missing -> False
      _ -> True

section :: (ByteString, [Covered]) -> [String]
section (group, inside) =
  [ "## " <> title (Char8.unpack group),
    "",
    "| Command | Function | Since | Newest servers | In a cluster | Complexity on the server |",
    "|---|---|---|---|---|---|"
  ]
    <> map line inside
    <> [""]
  where
    title name = fromMaybe name (lookup name titles)
    titles =
      [ ("array", "Arrays"),
        ("bitmap", "Bitmaps"),
        ("cluster", "Clusters"),
        ("connection", "Connections"),
        ("generic", "Keys"),
        ("geo", "Positions"),
        ("hash", "Hashes"),
        ("hyperloglog", "HyperLogLogs"),
        ("list", "Lists"),
        ("module", "Vector sets"),
        ("pubsub", "Publishing and subscribing"),
        ("scripting", "Scripts and functions"),
        ("server", "Servers"),
        ("set", "Sets"),
        ("sorted-set", "Sorted sets"),
        ("stream", "Streams"),
        ("string", "Strings"),
        ("transactions", "Transactions")
      ]

line :: Covered -> String
line one@Covered {coveredEntry, coveredDocs, coveredOffer} =
  "| " <> intercalate " | " (map cell [Char8.unpack (spaced (entryName coveredEntry)), function, maybe "" since coveredDocs, if onlyDocumented one then "*not run*" else maybe "" newest coveredDocs, place, maybe "" (Char8.unpack . docComplexity) coveredDocs]) <> " |"
  where
    function = case coveredOffer of
      Typed names -> functions names <> held
      TypedBlocking names -> functions names <> (if changesConnection coveredEntry then held else "; on a connection of its own while it blocks")
      OnConnection how -> how
      Refused why -> "*refused.* " <> why
      Missing -> "**missing**"
    functions names = intercalate ", " ["`" <> name <> "`" | name <- toList names]
    held = if changesConnection coveredEntry then "; by `withDedicated`" else ""
    place = case coveredOffer of
      Refused _ -> ""
      _ -> inCluster coveredEntry
    cell = concatMap (\char -> if char == '|' then "\\|" else [char])

-- | A command's name as a user types it, with spaces before subcommands.
spaced :: ByteString -> ByteString
spaced = Char8.map (\char -> if char == '|' then ' ' else char)

since :: Documentation -> String
since Documentation {docSince, docServers} = case (versionOf "redis", versionOf "valkey") of
  (Just one, Just other) | one == other -> one
  (Just one, Just other) -> "Redis " <> one <> ", Valkey " <> other
  (Just one, Nothing) -> "Redis " <> one
  (Nothing, Just other) -> "Valkey " <> other
  -- The servers' documentation gives no version, so this lists the servers that have the command.
  (Nothing, Nothing) -> intercalate ", " (map (serverName . Char8.unpack) docServers)
  where
    serverName = \case
      first : rest -> toUpper first : map (\char -> if char == '-' then ' ' else char) rest
      [] -> ""
    versionOf family = Char8.unpack <$> lookup family docSince

-- | Which of the newest servers of both families have the command.
newest :: Documentation -> String
newest Documentation {docServers} = intercalate ", " [name | (name, server) <- [("Redis", "redis-8.6"), ("Valkey", "valkey-9.1")], server `elem` docServers]

-- | The node to which the client sends the command by itself.
inCluster :: CommandEntry -> String
inCluster entry
  | changesConnection entry = "the node of the connection"
  | Just _ <- splitStep entry = "split by the slots of its keys"
  | not (null (entryKeySpecs entry)) = if severalKeys then "by its keys, all of one slot" else "by its key"
  | otherwise = case whereAnswered entry of
    AnyNodeAnswers -> "any node"
    OneNodesOwn -> "a named node"
    EveryPrimaryAnswers how -> "every primary: " <> merged how
    EveryNodeAnswers how -> "every node: " <> merged how
  where
    severalKeys = case entryKeySpecs entry of
      [KeySpec _ (KeyRange 0 _ _) _] -> False
      _ -> True

merged :: Aggregation -> String
merged = \case
  AggSum -> "the sum"
  AggMin -> "the least"
  AggMax -> "the greatest"
  AggAnd -> "true if all are"
  AggOr -> "true if one is"
  AggAllSucceeded -> "all must succeed"
  AggOneSucceeded -> "one must succeed"
  AggConcatenated -> "all results"
  AggFirstFound -> "the first result"
