-- | "Redis.Commands.Command".
module Redis.Cases.Command (commandCases) where

import Data.List.NonEmpty (NonEmpty ((:|)))
import Redis.CommandCase
import Redis.Commands.Command

commandCases :: [Case]
commandCases =
  [ onEmpty
      "commandInfo"
      (commandInfo ("get" :| ["config|get", "nosuch"]))
      ["COMMAND", "INFO", "get", "config|get", "nosuch"]
      (Such "knows two of them" ((== [Just ("get", 2), Just ("config|get", -3), Nothing]) . map (fmap (\found -> (commandInfoName found, commandInfoArity found))))),
    onEmpty
      "commandInfo"
      (commandInfo ("dbsize" :| []))
      ["COMMAND", "INFO", "dbsize"]
      ( Such
          "has flags, categories and tips"
          ( \case
              [Just found] -> "readonly" `elem` commandInfoFlags found && "@read" `elem` commandInfoCategories found && "request_policy:all_shards" `elem` commandInfoTips found
              _ -> False
          )
      ),
    onEmpty
      "commandInfoAll"
      commandInfoAll
      ["COMMAND", "INFO"]
      (Such "has CONFIG and its subcommands" (\found -> ["config|get"] == [commandInfoName inner | outer <- found, commandInfoName outer == "config", inner <- commandInfoSubcommands outer, commandInfoName inner == "config|get"])),
    onEmpty
      "commandDocs"
      (commandDocs ("get" :| ["object", "nosuch"]))
      ["COMMAND", "DOCS", "get", "object", "nosuch"]
      ( Such
          "tells of two"
          ( \found ->
              fmap (\docs -> (commandDocsGroup docs, commandDocsSince docs, commandDocsComplexity docs)) (lookup "get" found) == Just ("string", Just "1.0.0", Just "O(1)")
                && fmap (any ((== "object|encoding") . fst) . commandDocsSubcommands) (lookup "object" found) == Just True
                && length found == 2
          )
      ),
    onEmpty "commandDocsAll" commandDocsAll ["COMMAND", "DOCS"] (Such "tells of some hundred" ((> 100) . length)),
    onEmpty "commandGetkeys" (commandGetkeys ("GET" :| ["k"])) ["COMMAND", "GETKEYS", "GET", "k"] (Gives ["k"]),
    onEmpty "commandGetkeys" (commandGetkeys ("PING" :| [])) ["COMMAND", "GETKEYS", "PING"] (Fails "ERR"),
    onEmpty
      "commandGetkeysandflags"
      (commandGetkeysandflags ("RENAME" :| ["a", "b"]))
      ["COMMAND", "GETKEYSANDFLAGS", "RENAME", "a", "b"]
      (Gives [("a", ["RW", "access", "delete"]), ("b", ["OW", "update"])]),
    onEmpty "commandCount" commandCount ["COMMAND", "COUNT"] (Such "is some hundred" (> 100)),
    onEmpty "commandList" commandList ["COMMAND", "LIST"] (Such "has GET" (elem "get")),
    onEmpty "commandListOf" (commandListOf (OfModule "nosuch")) ["COMMAND", "LIST", "FILTERBY", "MODULE", "nosuch"] (Gives []),
    onEmpty "commandListOf" (commandListOf (OfCategory "geo")) ["COMMAND", "LIST", "FILTERBY", "ACLCAT", "geo"] (Such "has GEOADD and not GET" (\names -> elem "geoadd" names && notElem "get" names)),
    onEmpty "commandListOf" (commandListOf (OfPattern "xrea*p")) ["COMMAND", "LIST", "FILTERBY", "PATTERN", "xrea*p"] (Gives ["xreadgroup"]),
    onEmpty "commandHelp" commandHelp ["COMMAND", "HELP"] (Such "has lines" (not . null))
  ]
