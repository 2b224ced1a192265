-- | "Redis.Commands.Server".
module Redis.Cases.Server (serverCases) where

import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
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
    after [kv] "swapdb" (swapdb 0 1) ["SWAPDB", "0", "1"] (Gives ()),
    onEmpty "swapdb" (swapdb 0 99) ["SWAPDB", "0", "99"] (Fails "ERR"),
    onEmpty "lolwut" lolwut ["LOLWUT"] (Such "has a version" (Char8.isInfixOf "ver. ")),
    onEmpty "lolwutVersion" (lolwutVersion 5 [8, 2, 2]) ["LOLWUT", "VERSION", "5", "8", "2", "2"] (Such "has a version" (Char8.isInfixOf "ver. ")),
    lent (onEmpty "waitaof" (waitaof 0 1 (Just (seconds 0.1))) ["WAITAOF", "0", "1", "100"] (Gives (Fsynced 0 0))),
    lent (onEmpty "waitaof" (waitaof 0 0 Nothing) ["WAITAOF", "0", "0", "0"] (Gives (Fsynced 0 0))),
    lent (onEmpty "waitaof" (waitaof 1 0 (Just (seconds 1))) ["WAITAOF", "1", "0", "1000"] (Fails "ERR")),
    onEmpty "shutdown" shutdown ["SHUTDOWN"] EndsServer,
    onEmpty "shutdownWith" (shutdownWith shutdownDefaults) ["SHUTDOWN"] EndsServer,
    onEmpty
      "shutdownWith"
      (shutdownWith shutdownDefaults {shutdownSave = SaveNothing, shutdownNow = True, shutdownForce = True})
      ["SHUTDOWN", "NOSAVE", "NOW", "FORCE"]
      EndsServer,
    onEmpty "shutdownWith" (shutdownWith shutdownDefaults {shutdownSave = SaveFirst}) ["SHUTDOWN", "SAVE"] EndsServer,
    needs [(IsValkey, (9, 0))] (onEmpty "shutdownWith" (shutdownWith shutdownDefaults {shutdownSafe = True}) ["SHUTDOWN", "SAFE"] EndsServer),
    -- Only a cluster has a node that could take over.
    onEmpty
      "shutdownWith"
      (shutdownWith shutdownDefaults {shutdownSafe = True, shutdownFailover = True})
      ["SHUTDOWN", "SAFE", "FAILOVER"]
      (Fails "ERR"),
    onEmpty "shutdownAbort" shutdownAbort ["SHUTDOWN", "ABORT"] (Fails "ERR")
  ]
  where
    has :: ByteString -> [(ByteString, ByteString)] -> Bool
    has name = any ((== name) . fst)

kv :: [ByteString]
kv = ["SET", "k", "v"]
