-- | "Redis.Commands.Script".
module Redis.Cases.Script (scriptCases) where

import Data.List.NonEmpty (NonEmpty ((:|)))
import Redis.CommandCase
import Redis.Commands.Script
import Redis.Commands.Server (FlushMode (..), FlushOptions (..), flushDefaults)
import Redis.Value (Value (..))

scriptCases :: [Case]
scriptCases =
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
    onEmpty "scriptKill" scriptKill ["SCRIPT", "KILL"] (Fails "NOTBUSY"),
    after [load] "scriptShow" (scriptShow digest) ["SCRIPT", "SHOW", digest] (Gives text),
    onEmpty "scriptShow" (scriptShow digest) ["SCRIPT", "SHOW", digest] (Fails "NOSCRIPT"),
    onEmpty
      "scriptFlushWith"
      (scriptFlushWith flushDefaults {flushMode = Just FlushAsync})
      ["SCRIPT", "FLUSH", "ASYNC"]
      (Gives ()),
    onEmpty "scriptHelp" scriptHelp ["SCRIPT", "HELP"] (Such "names a subcommand" (elem "KILL"))
  ]
  where
    load = ["SCRIPT", "LOAD", text]
    text = "return ARGV[1]"
    digest = "098e0f0d1448c0a81dafe820f66d460eb09263da"
