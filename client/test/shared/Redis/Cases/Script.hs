-- | "Redis.Commands.Script".
module Redis.Cases.Script (scriptCases) where

import Data.ByteString (ByteString)
import Data.List.NonEmpty (NonEmpty ((:|)))
import Redis.CommandCase
import Redis.Commands.Script
import Redis.Value (Value (..))

scriptCases :: [Case]
scriptCases = scripts <> functions

scripts :: [Case]
scripts =
  [ onEmpty "eval" (eval "return 7" [] []) ["EVAL", "return 7", "0"] (Gives (Integer 7)),
    onEmpty
      "eval"
      (eval "return {KEYS[2], ARGV[1]}" ["{k}a", "{k}b"] ["x"])
      ["EVAL", "return {KEYS[2], ARGV[1]}", "2", "{k}a", "{k}b", "x"]
      (Gives (Array [BulkString "{k}b", BulkString "x"])),
    onEmpty "eval" (eval "no Lua" ["k"] []) ["EVAL", "no Lua", "1", "k"] (Fails "ERR"),
    onEmpty "evalRo" (evalRo "return KEYS[1]" ["k"] []) ["EVAL_RO", "return KEYS[1]", "1", "k"] (Gives (BulkString "k")),
    onEmpty
      "evalRo"
      (evalRo "return redis.call('INCR', KEYS[1])" ["k"] [])
      ["EVAL_RO", "return redis.call('INCR', KEYS[1])", "1", "k"]
      (Fails "ERR"),
    after [load] "evalsha" (evalsha digest ["k"] ["x"]) ["EVALSHA", digest, "1", "k", "x"] (Gives (BulkString "x")),
    onEmpty "evalsha" (evalsha digest ["k"] ["x"]) ["EVALSHA", digest, "1", "k", "x"] (Fails "NOSCRIPT"),
    after [load] "evalshaRo" (evalshaRo digest ["k"] ["x"]) ["EVALSHA_RO", digest, "1", "k", "x"] (Gives (BulkString "x")),
    onEmpty "scriptLoad" (scriptLoad text) ["SCRIPT", "LOAD", text] (Gives digest),
    after [load] "scriptExists" (scriptExists ("a" :| [digest])) ["SCRIPT", "EXISTS", "a", digest] (Gives [False, True]),
    after [load] "scriptFlush" scriptFlush ["SCRIPT", "FLUSH"] (Gives ()),
    onEmpty "scriptKill" scriptKill ["SCRIPT", "KILL"] (Fails "NOTBUSY")
  ]
  where
    load = ["SCRIPT", "LOAD", text]
    text = "return ARGV[1]"
    digest = "098e0f0d1448c0a81dafe820f66d460eb09263da"

functions :: [Case]
functions =
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
    onEmpty "functionKill" functionKill ["FUNCTION", "KILL"] (Fails "NOTBUSY")
  ]
  where
    load = ["FUNCTION", "LOAD", library]

library :: ByteString
library =
  "#!lua name=lib\n\
  \redis.register_function{function_name='f', callback=function(keys, args) return args[1] end, flags={'no-writes'}}"
