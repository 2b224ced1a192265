-- | "Redis.Commands.Slowlog".
module Redis.Cases.Slowlog (slowlogCases) where

import Data.ByteString (ByteString)
import Redis.CommandCase
import Redis.Commands.Slowlog

slowlogCases :: [Case]
slowlogCases =
  [ after
      [slowerThan "0", ["SLOWLOG", "RESET"], ["ECHO", "m"], slowerThan "-1"]
      "slowlogGet"
      (slowlogGet 10)
      ["SLOWLOG", "GET", "10"]
      (Such "has the command" (elem ["ECHO", "m"] . map slowlogCommand)),
    after [slowerThan "-1", ["SLOWLOG", "RESET"]] "slowlogLen" slowlogLen ["SLOWLOG", "LEN"] (Gives 0),
    onEmpty "slowlogReset" slowlogReset ["SLOWLOG", "RESET"] (Gives ()),
    onEmpty "slowlogHelp" slowlogHelp ["SLOWLOG", "HELP"] (Such "has lines" (not . null)),
    after
      [slowerThan "0", ["SLOWLOG", "RESET"], ["ECHO", "m"], slowerThan "-1"]
      "commandlogGet"
      (commandlogGet SlowCommands (-1))
      ["COMMANDLOG", "GET", "-1", "slow"]
      (Such "has the command and a time" (any (\entry -> commandlogCommand entry == ["ECHO", "m"] && isTime (commandlogAmount entry)))),
    after
      [["CONFIG", "SET", "commandlog-request-larger-than", "1"], ["ECHO", "m"], ["CONFIG", "SET", "commandlog-request-larger-than", "-1"]]
      "commandlogGet"
      (commandlogGet LargeRequests 2)
      ["COMMANDLOG", "GET", "2", "large-request"]
      (Such "has the command and its bytes" (any (\entry -> (commandlogCommand entry, commandlogAmount entry) == (["ECHO", "m"], HadBytes 21)))),
    after [["COMMANDLOG", "RESET", "large-reply"]] "commandlogGet" (commandlogGet LargeReplies 2) ["COMMANDLOG", "GET", "2", "large-reply"] (Gives []),
    after [["COMMANDLOG", "RESET", "large-reply"]] "commandlogLen" (commandlogLen LargeReplies) ["COMMANDLOG", "LEN", "large-reply"] (Gives 0),
    onEmpty "commandlogReset" (commandlogReset SlowCommands) ["COMMANDLOG", "RESET", "slow"] (Gives ()),
    onEmpty "commandlogHelp" commandlogHelp ["COMMANDLOG", "HELP"] (Such "has lines" (not . null))
  ]
  where
    slowerThan micros = ["CONFIG", "SET", "slowlog-log-slower-than", micros] :: [ByteString]
    isTime = \case
      RanFor _ -> True
      HadBytes _ -> False
