-- | "Redis.Commands.Server".
module Redis.Cases.Server (serverCases) where

import Data.ByteString (ByteString)
import Data.List.NonEmpty (NonEmpty ((:|)))
import Data.Time.Clock.POSIX (utcTimeToPOSIXSeconds)
import Redis.CommandCase
import Redis.Commands.Server
import Redis.Duration

serverCases :: [Case]
serverCases =
  [ after [kv] "dbsize" dbsize ["DBSIZE"] (Gives 1),
    after [kv] "flushdb" flushdb ["FLUSHDB"] (Gives ()),
    onEmpty "flushdbWith" (flushdbWith flushDefaults {flushMode = Just FlushSync}) ["FLUSHDB", "SYNC"] (Gives ()),
    onEmpty "flushall" flushall ["FLUSHALL"] (Gives ()),
    onEmpty "flushallWith" (flushallWith flushDefaults {flushMode = Just FlushAsync}) ["FLUSHALL", "ASYNC"] (Gives ()),
    onEmpty "info" info ["INFO"] (Such "has fields of two sections" (\fields -> has "redis_version" fields && has "used_memory" fields)),
    onEmpty
      "infoOf"
      (infoOf ("server" :| ["clients"]))
      ["INFO", "server", "clients"]
      (Such "has fields of these sections only" (\fields -> has "redis_version" fields && has "connected_clients" fields && not (has "used_memory" fields))),
    onEmpty "time" time ["TIME"] (Such "is after 2020" ((> 1577836800) . utcTimeToPOSIXSeconds)),
    lent (onEmpty "wait" (wait 1 (Just (seconds 0.1))) ["WAIT", "1", "100"] (Gives 0)),
    lent (onEmpty "wait" (wait 0 Nothing) ["WAIT", "0", "0"] (Gives 0)),
    lent (onEmpty "wait" (wait 2 (Just (seconds 0.0001))) ["WAIT", "2", "1"] (Gives 0)),
    lent (onEmpty "waitaof" (waitaof 0 1 (Just (seconds 0.1))) ["WAITAOF", "0", "1", "100"] (Gives (Fsynced 0 0))),
    lent (onEmpty "waitaof" (waitaof 0 0 Nothing) ["WAITAOF", "0", "0", "0"] (Gives (Fsynced 0 0))),
    lent (onEmpty "waitaof" (waitaof 1 0 (Just (seconds 1))) ["WAITAOF", "1", "0", "1000"] (Fails "ERR")),
    onEmpty "shutdown" shutdown ["SHUTDOWN"] EndsServer,
    onEmpty
      "configGet"
      (configGet ("maxmemory" :| ["hz*"]))
      ["CONFIG", "GET", "maxmemory", "hz*"]
      (Such "has both" (\settings -> lookup "maxmemory" settings == Just "0" && lookup "hz" settings == Just "10")),
    onEmpty "configSet" (configSet (("hz", "10") :| [("maxmemory", "0")])) ["CONFIG", "SET", "hz", "10", "maxmemory", "0"] (Gives ()),
    after
      [slowerThan "0", ["SLOWLOG", "RESET"], ["ECHO", "m"], slowerThan "-1"]
      "slowlogGet"
      (slowlogGet 10)
      ["SLOWLOG", "GET", "10"]
      (Such "has the command" (elem ["ECHO", "m"] . map slowlogCommand)),
    after [slowerThan "-1", ["SLOWLOG", "RESET"]] "slowlogLen" slowlogLen ["SLOWLOG", "LEN"] (Gives 0),
    onEmpty "slowlogReset" slowlogReset ["SLOWLOG", "RESET"] (Gives ()),
    onEmpty "clientUnpause" clientUnpause ["CLIENT", "UNPAUSE"] (Gives ()),
    onEmpty "clientUnblock" (clientUnblock 7) ["CLIENT", "UNBLOCK", "7"] (Gives False),
    onEmpty
      "commandInfo"
      (commandInfo ("get" :| ["config|get", "nosuch"]))
      ["COMMAND", "INFO", "get", "config|get", "nosuch"]
      (Such "knows two of them" ((== [Just ("get", 2), Just ("config|get", -3), Nothing]) . map (fmap (\found -> (commandInfoName found, commandInfoArity found))))),
    onEmpty "commandGetkeys" (commandGetkeys ("GET" :| ["k"])) ["COMMAND", "GETKEYS", "GET", "k"] (Gives ["k"])
  ]
  where
    has :: ByteString -> [(ByteString, ByteString)] -> Bool
    has name = any ((== name) . fst)
    slowerThan micros = ["CONFIG", "SET", "slowlog-log-slower-than", micros]

kv :: [ByteString]
kv = ["SET", "k", "v"]
