-- | "Redis.Commands.Function".
module Redis.Cases.Function (functionCases) where

import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Data.Maybe (isNothing)
import Redis.CommandCase
import Redis.Commands.Function
import Redis.Commands.Server (FlushMode (..), FlushOptions (..), flushDefaults)
import Redis.Value (Value (..))

functionCases :: [Case]
functionCases =
  [ after [load] "fcall" (fcall "f" ["k"] ["x"]) ["FCALL", "f", "1", "k", "x"] (Gives (BulkString "x")),
    onEmpty "fcall" (fcall "f" ["k"] ["x"]) ["FCALL", "f", "1", "k", "x"] (Fails "ERR"),
    after [load] "fcallRo" (fcallRo "f" [] ["x"]) ["FCALL_RO", "f", "0", "x"] (Gives (BulkString "x")),
    onEmpty "functionLoad" (functionLoad library) ["FUNCTION", "LOAD", library] (Gives "lib"),
    after [load] "functionLoad" (functionLoad library) ["FUNCTION", "LOAD", library] (Fails "ERR"),
    after
      [load]
      "functionLoadWith"
      (functionLoadWith functionLoadDefaults {functionLoadReplace = True} library)
      ["FUNCTION", "LOAD", "REPLACE", library]
      (Gives "lib"),
    onEmpty "functionKill" functionKill ["FUNCTION", "KILL"] (Fails "NOTBUSY"),
    after
      [load]
      "functionStats"
      functionStats
      ["FUNCTION", "STATS"]
      (Such "runs nothing, and has one library in Lua" (\stats -> isNothing (functionRunning stats) && FunctionEngine "LUA" 1 1 `elem` functionEngines stats)),
    after [load] "functionDelete" (functionDelete "lib") ["FUNCTION", "DELETE", "lib"] (Gives ()),
    onEmpty "functionDelete" (functionDelete "lib") ["FUNCTION", "DELETE", "lib"] (Fails "ERR"),
    after [load] "functionFlush" functionFlush ["FUNCTION", "FLUSH"] (Gives ()),
    onEmpty
      "functionFlushWith"
      (functionFlushWith flushDefaults {flushMode = Just FlushSync})
      ["FUNCTION", "FLUSH", "SYNC"]
      (Gives ()),
    after [load] "functionList" functionList ["FUNCTION", "LIST"] (Gives [listed]),
    onEmpty "functionList" functionList ["FUNCTION", "LIST"] (Gives []),
    after
      [load]
      "functionListWith"
      (functionListWith functionListDefaults {functionListLibraryname = Just "l*", functionListWithcode = True})
      ["FUNCTION", "LIST", "LIBRARYNAME", "l*", "WITHCODE"]
      (Gives [listed {libraryCode = Just library}]),
    after
      [load]
      "functionListWith"
      (functionListWith functionListDefaults {functionListLibraryname = Just "x*"})
      ["FUNCTION", "LIST", "LIBRARYNAME", "x*"]
      (Gives []),
    after [load] "functionDump" functionDump ["FUNCTION", "DUMP"] (Such "has something" (not . Char8.null)),
    onEmpty "functionRestore" (functionRestore payload) ["FUNCTION", "RESTORE", payload] (Gives ()),
    after [load] "functionRestore" (functionRestore payload) ["FUNCTION", "RESTORE", payload] (Fails "ERR"),
    after
      [load]
      "functionRestoreWith"
      (functionRestoreWith functionRestoreDefaults {functionRestorePolicy = ReplaceLibraries} payload)
      ["FUNCTION", "RESTORE", payload, "REPLACE"]
      (Gives ()),
    after
      [load]
      "functionRestoreWith"
      (functionRestoreWith functionRestoreDefaults {functionRestorePolicy = FlushLibraries} payload)
      ["FUNCTION", "RESTORE", payload, "FLUSH"]
      (Gives ()),
    onEmpty
      "functionRestoreWith"
      (functionRestoreWith functionRestoreDefaults {functionRestorePolicy = AppendLibraries} "nonsense")
      ["FUNCTION", "RESTORE", "nonsense"]
      (Fails "ERR"),
    onEmpty "functionHelp" functionHelp ["FUNCTION", "HELP"] (Such "names a subcommand" (elem "STATS"))
  ]
  where
    load = ["FUNCTION", "LOAD", library]
    listed =
      FunctionLibrary
        { libraryName = "lib",
          libraryEngine = "LUA",
          libraryFunctions = [FunctionInfo {functionName = "f", functionDescription = Nothing, functionFlags = ["no-writes"], functionOthers = []}],
          libraryCode = Nothing,
          libraryOthers = []
        }

-- | The payload that FUNCTION DUMP of Redis 7.0 gives for another library called @lib@. Newer
-- servers accept it, too.
payload :: ByteString
payload =
  "\245\195@O@T\US#!lua name=lib\nredis.register_fu\vnction('f', \224\NUL\r\DC1keys, args) return`\f\a[1] end)\n\NULB\192E;\236n\DELl"

library :: ByteString
library =
  "#!lua name=lib\n\
  \redis.register_function{function_name='f', callback=function(keys, args) return args[1] end, flags={'no-writes'}}"
