-- | "Redis.Commands.Module". The server is not configured to load modules.
module Redis.Cases.Module (moduleCases) where

import Data.ByteString.Char8 qualified as Char8
import Redis.CommandCase
import Redis.Commands.Module

moduleCases :: [Case]
moduleCases =
  [ onEmpty "moduleList" moduleList ["MODULE", "LIST"] (Such "has names, if any are built in" (not . any (Char8.null . moduleName))),
    onEmpty "moduleLoad" (moduleLoad "/m.so" ["a", "b"]) ["MODULE", "LOAD", "/m.so", "a", "b"] (Fails "ERR"),
    onEmpty "moduleLoadexWith" (moduleLoadexWith moduleLoadexDefaults "/m.so") ["MODULE", "LOADEX", "/m.so"] (Fails "ERR"),
    onEmpty
      "moduleLoadexWith"
      (moduleLoadexWith moduleLoadexDefaults {moduleLoadexConfig = [("n", "1"), ("o", "2")], moduleLoadexArgs = ["a"]} "/m.so")
      ["MODULE", "LOADEX", "/m.so", "CONFIG", "n", "1", "CONFIG", "o", "2", "ARGS", "a"]
      (Fails "ERR"),
    onEmpty "moduleUnload" (moduleUnload "m") ["MODULE", "UNLOAD", "m"] (Fails "ERR"),
    onEmpty "moduleHelp" moduleHelp ["MODULE", "HELP"] (Such "has lines" (not . null))
  ]
