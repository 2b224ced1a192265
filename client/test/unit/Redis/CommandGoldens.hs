{-# LANGUAGE ExistentialQuantification #-}

-- | Every command that "Redis.Commands" exports, and the words that it must be on
-- the wire.
module Redis.CommandGoldens
  ( Golden (..),
    goldens,
  )
where

import Data.ByteString (ByteString)
import Data.List.NonEmpty (NonEmpty ((:|)))
import Data.Time.Clock.POSIX (posixSecondsToUTCTime)
import Redis.Command (Command)
import Redis.Commands
import Redis.Duration
import Redis.Internal.Config (Credentials (..), toSecret)

-- | The name under which a command is exported, one made by it, and its words.
data Golden = forall a. Golden String (Command a) [ByteString]

goldens :: [Golden]
goldens =
  connectionGoldens <> keyGoldens <> stringGoldens <> scriptGoldens <> serverGoldens

connectionGoldens :: [Golden]
connectionGoldens =
  [ Golden "ping" ping ["PING"],
    Golden "echo" (echo "m") ["ECHO", "m"],
    Golden "clientId" clientId ["CLIENT", "ID"],
    Golden "clientGetname" clientGetname ["CLIENT", "GETNAME"],
    Golden "hello" (hello (HelloOptions 3 Nothing Nothing)) ["HELLO", "3"],
    Golden
      "hello"
      (hello (HelloOptions 2 (Just (Credentials Nothing (toSecret "p"))) (Just "n")))
      ["HELLO", "2", "AUTH", "default", "p", "SETNAME", "n"],
    Golden
      "hello"
      (hello (HelloOptions 3 (Just (Credentials (Just "u") (toSecret "p"))) Nothing))
      ["HELLO", "3", "AUTH", "u", "p"],
    Golden "auth" (auth (Credentials Nothing (toSecret "p"))) ["AUTH", "p"],
    Golden "auth" (auth (Credentials (Just "u") (toSecret "p"))) ["AUTH", "u", "p"],
    Golden "select" (select 15) ["SELECT", "15"],
    Golden "clientSetname" (clientSetname "n") ["CLIENT", "SETNAME", "n"],
    Golden "clientSetinfo" (clientSetinfo "LIB-NAME" "x") ["CLIENT", "SETINFO", "LIB-NAME", "x"],
    Golden "clientNoTouch" (clientNoTouch True) ["CLIENT", "NO-TOUCH", "ON"],
    Golden "clientNoTouch" (clientNoTouch False) ["CLIENT", "NO-TOUCH", "OFF"],
    Golden "readonly" readonly ["READONLY"],
    Golden "readwrite" readwrite ["READWRITE"],
    Golden "asking" asking ["ASKING"]
  ]

keyGoldens :: [Golden]
keyGoldens =
  [ Golden "del" (del ("a" :| [])) ["DEL", "a"],
    Golden "del" (del ("a" :| ["b"])) ["DEL", "a", "b"],
    Golden "unlink" (unlink ("a" :| ["b"])) ["UNLINK", "a", "b"],
    Golden "exists" (exists ("a" :| ["b", "a"])) ["EXISTS", "a", "b", "a"],
    Golden "touch" (touch ("a" :| ["b"])) ["TOUCH", "a", "b"],
    Golden "type_" (type_ "k") ["TYPE", "k"],
    Golden "expire" (expire "k" (seconds 10)) ["EXPIRE", "k", "10"],
    Golden "expire" (expire "k" (seconds 1.5)) ["EXPIRE", "k", "2"],
    Golden "expire" (expire "k" (milliseconds (-1500))) ["EXPIRE", "k", "-1"],
    Golden "expire" (expire "k" (seconds 0.0000001)) ["EXPIRE", "k", "0"],
    Golden "pexpire" (pexpire "k" (seconds (-1))) ["PEXPIRE", "k", "-1000"],
    Golden "pexpire" (pexpire "k" (seconds 0.0001)) ["PEXPIRE", "k", "1"],
    Golden "expireat" (expireat "k" (posixSecondsToUTCTime 1700000000.001)) ["EXPIREAT", "k", "1700000001"],
    Golden "pexpireat" (pexpireat "k" (posixSecondsToUTCTime 1700000000.0005)) ["PEXPIREAT", "k", "1700000000001"],
    Golden "persist" (persist "k") ["PERSIST", "k"],
    Golden "ttl" (ttl "k") ["TTL", "k"],
    Golden "pttl" (pttl "k") ["PTTL", "k"],
    Golden "rename" (rename "a" "b") ["RENAME", "a", "b"],
    Golden "renamenx" (renamenx "a" "b") ["RENAMENX", "a", "b"],
    Golden "copy" (copy "a" "b") ["COPY", "a", "b"],
    Golden
      "copyWith"
      (copyWith copyDefaults {copyDatabase = Just 3, copyReplace = True} "a" "b")
      ["COPY", "a", "b", "DB", "3", "REPLACE"],
    Golden "randomkey" randomkey ["RANDOMKEY"],
    Golden "keys" (keys "a*") ["KEYS", "a*"],
    Golden "scan" (scan scanStart) ["SCAN", "0"],
    Golden
      "scanWith"
      (scanWith scanDefaults {scanMatch = Just "a*", scanCount = Just 100, scanType = Just SortedSetKey} scanStart)
      ["SCAN", "0", "MATCH", "a*", "COUNT", "100", "TYPE", "zset"],
    Golden "dump" (dump "k") ["DUMP", "k"],
    Golden "restore" (restore "k" "payload") ["RESTORE", "k", "0", "payload"],
    Golden
      "restoreWith"
      (restoreWith restoreDefaults {restoreExpiry = ExpireIn (seconds 0.0015), restoreReplace = True} "k" "p")
      ["RESTORE", "k", "2", "p", "REPLACE"],
    Golden
      "restoreWith"
      (restoreWith restoreDefaults {restoreExpiry = ExpireAt (posixSecondsToUTCTime 9)} "k" "p")
      ["RESTORE", "k", "9000", "p", "ABSTTL"],
    Golden "restoreWith" (restoreWith restoreDefaults {restoreExpiry = KeepExpiry} "k" "p") ["RESTORE", "k", "0", "p"]
  ]

stringGoldens :: [Golden]
stringGoldens =
  [ Golden "get" (get "k") ["GET", "k"],
    Golden "set" (set "k" "v") ["SET", "k", "v"],
    Golden "setWith" (setWith setDefaults "k" "v") ["SET", "k", "v"],
    Golden
      "setWith"
      (setWith setDefaults {setCondition = Just OnlyIfAbsent, setExpiry = ExpireIn (minutes 1)} "k" "v")
      ["SET", "k", "v", "NX", "EX", "60"],
    Golden
      "setWith"
      (setWith setDefaults {setCondition = Just OnlyIfPresent, setExpiry = KeepExpiry} "k" "v")
      ["SET", "k", "v", "XX", "KEEPTTL"],
    Golden "setWith" (setWith setDefaults {setExpiry = ExpireIn (seconds 1.5)} "k" "v") ["SET", "k", "v", "PX", "1500"],
    Golden "setWith" (setWith setDefaults {setExpiry = ExpireIn (seconds 0.0001)} "k" "v") ["SET", "k", "v", "PX", "1"],
    Golden "setWith" (setWith setDefaults {setExpiry = ExpireIn mempty} "k" "v") ["SET", "k", "v", "EX", "0"],
    Golden "setWith" (setWith setDefaults {setExpiry = ExpireIn (seconds (-1.5))} "k" "v") ["SET", "k", "v", "PX", "-1500"],
    Golden
      "setWith"
      (setWith setDefaults {setExpiry = ExpireAt (posixSecondsToUTCTime 9)} "k" "v")
      ["SET", "k", "v", "PXAT", "9000"],
    Golden "setGet" (setGet "k" "v") ["SET", "k", "v", "GET"],
    Golden
      "setGetWith"
      (setGetWith setDefaults {setCondition = Just OnlyIfAbsent, setExpiry = KeepExpiry} "k" "v")
      ["SET", "k", "v", "NX", "KEEPTTL", "GET"],
    Golden "setnx" (setnx "k" "v") ["SETNX", "k", "v"],
    Golden "setex" (setex "k" (minutes 30) "v") ["SETEX", "k", "1800", "v"],
    Golden "setex" (setex "k" (seconds 0.001) "v") ["SETEX", "k", "1", "v"],
    Golden "psetex" (psetex "k" (seconds 1.5) "v") ["PSETEX", "k", "1500", "v"],
    Golden "getset" (getset "k" "v") ["GETSET", "k", "v"],
    Golden "getdel" (getdel "k") ["GETDEL", "k"],
    Golden "getex" (getex "k") ["GETEX", "k"],
    Golden "getexWith" (getexWith NoExpiry "k") ["GETEX", "k", "PERSIST"],
    Golden "getexWith" (getexWith KeepExpiry "k") ["GETEX", "k"],
    Golden "getexWith" (getexWith (ExpireIn (seconds 3)) "k") ["GETEX", "k", "EX", "3"],
    Golden "getexWith" (getexWith (ExpireAt (posixSecondsToUTCTime 3)) "k") ["GETEX", "k", "PXAT", "3000"],
    Golden "append" (append "k" "v") ["APPEND", "k", "v"],
    Golden "strlen" (strlen "k") ["STRLEN", "k"],
    Golden "getrange" (getrange "k" 0 (-1)) ["GETRANGE", "k", "0", "-1"],
    Golden "setrange" (setrange "k" 10 "v") ["SETRANGE", "k", "10", "v"],
    Golden "incr" (incr "k") ["INCR", "k"],
    Golden "incrby" (incrby "k" minBound) ["INCRBY", "k", "-9223372036854775808"],
    Golden "incrbyfloat" (incrbyfloat "k" 0.5) ["INCRBYFLOAT", "k", "0.5"],
    Golden "decr" (decr "k") ["DECR", "k"],
    Golden "decrby" (decrby "k" 9) ["DECRBY", "k", "9"],
    Golden "mget" (mget ("a" :| [])) ["MGET", "a"],
    Golden "mget" (mget ("a" :| ["b"])) ["MGET", "a", "b"],
    Golden "mset" (mset (("a", "1") :| [])) ["MSET", "a", "1"],
    Golden "mset" (mset (("a", "1") :| [("b", "2")])) ["MSET", "a", "1", "b", "2"],
    Golden "msetnx" (msetnx (("a", "1") :| [("b", "2")])) ["MSETNX", "a", "1", "b", "2"]
  ]

scriptGoldens :: [Golden]
scriptGoldens =
  [ Golden "eval" (eval "s" [] []) ["EVAL", "s", "0"],
    Golden "eval" (eval "s" ["a", "b"] ["x"]) ["EVAL", "s", "2", "a", "b", "x"],
    Golden "evalRo" (evalRo "s" ["a"] []) ["EVAL_RO", "s", "1", "a"],
    Golden "evalsha" (evalsha "d" ["a"] ["x"]) ["EVALSHA", "d", "1", "a", "x"],
    Golden "evalshaRo" (evalshaRo "d" ["a"] ["x"]) ["EVALSHA_RO", "d", "1", "a", "x"],
    Golden "scriptLoad" (scriptLoad "s") ["SCRIPT", "LOAD", "s"],
    Golden "scriptExists" (scriptExists ("a" :| ["b"])) ["SCRIPT", "EXISTS", "a", "b"],
    Golden "scriptFlush" scriptFlush ["SCRIPT", "FLUSH"],
    Golden "scriptKill" scriptKill ["SCRIPT", "KILL"],
    Golden "fcall" (fcall "f" ["a"] ["x"]) ["FCALL", "f", "1", "a", "x"],
    Golden "fcallRo" (fcallRo "f" [] ["x"]) ["FCALL_RO", "f", "0", "x"],
    Golden "functionLoad" (functionLoad "c") ["FUNCTION", "LOAD", "c"],
    Golden
      "functionLoadWith"
      (functionLoadWith functionLoadDefaults {functionLoadReplace = True} "c")
      ["FUNCTION", "LOAD", "REPLACE", "c"],
    Golden "functionKill" functionKill ["FUNCTION", "KILL"]
  ]

serverGoldens :: [Golden]
serverGoldens =
  [ Golden "dbsize" dbsize ["DBSIZE"],
    Golden "flushdb" flushdb ["FLUSHDB"],
    Golden "flushdbWith" (flushdbWith FlushSync) ["FLUSHDB", "SYNC"],
    Golden "flushall" flushall ["FLUSHALL"],
    Golden "flushallWith" (flushallWith FlushAsync) ["FLUSHALL", "ASYNC"],
    Golden "info" info ["INFO"],
    Golden "infoOf" (infoOf ("server" :| ["clients"])) ["INFO", "server", "clients"],
    Golden "time" time ["TIME"],
    Golden "wait" (wait 1 (Just (seconds 0.1))) ["WAIT", "1", "100"],
    Golden "wait" (wait 2 Nothing) ["WAIT", "2", "0"],
    Golden "wait" (wait 2 (Just (seconds 0.0001))) ["WAIT", "2", "1"],
    Golden "shutdown" shutdown ["SHUTDOWN"],
    Golden "configGet" (configGet ("a" :| ["b*"])) ["CONFIG", "GET", "a", "b*"],
    Golden "configSet" (configSet (("a", "1") :| [("b", "2")])) ["CONFIG", "SET", "a", "1", "b", "2"],
    Golden "slowlogGet" (slowlogGet 10) ["SLOWLOG", "GET", "10"],
    Golden "slowlogLen" slowlogLen ["SLOWLOG", "LEN"],
    Golden "slowlogReset" slowlogReset ["SLOWLOG", "RESET"],
    Golden "clientUnpause" clientUnpause ["CLIENT", "UNPAUSE"],
    Golden "clientUnblock" (clientUnblock 7) ["CLIENT", "UNBLOCK", "7"],
    Golden "commandInfo" (commandInfo ("get" :| ["config|get"])) ["COMMAND", "INFO", "get", "config|get"],
    Golden "commandGetkeys" (commandGetkeys ("GET" :| ["k"])) ["COMMAND", "GETKEYS", "GET", "k"]
  ]
