-- | "Redis.Commands.Config".
module Redis.Cases.Config (configCases) where

import Data.List.NonEmpty (NonEmpty ((:|)))
import Redis.CommandCase
import Redis.Commands.Config

configCases :: [Case]
configCases =
  [ onEmpty
      "configGet"
      (configGet ("maxmemory" :| ["hz*"]))
      ["CONFIG", "GET", "maxmemory", "hz*"]
      (Such "has both" (\settings -> lookup "maxmemory" settings == Just "0" && lookup "hz" settings == Just "10")),
    onEmpty "configSet" (configSet (("hz", "10") :| [("maxmemory", "0")])) ["CONFIG", "SET", "hz", "10", "maxmemory", "0"] (Gives ()),
    onEmpty "configSet" (configSet (("nosuch", "1") :| [])) ["CONFIG", "SET", "nosuch", "1"] (Fails "ERR"),
    onEmpty "configResetstat" configResetstat ["CONFIG", "RESETSTAT"] (Gives ()),
    onEmpty "configRewrite" configRewrite ["CONFIG", "REWRITE"] (Gives ()),
    onEmpty "configHelp" configHelp ["CONFIG", "HELP"] (Such "has lines" (not . null))
  ]
