-- | "Redis.Commands.Client".
module Redis.Cases.Client (clientCases) where

import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Data.List.NonEmpty (NonEmpty ((:|)))
import Redis.CommandCase
import Redis.Commands.Client
import Redis.Duration

clientCases :: [Case]
clientCases = lookingCases <> killingCases <> filterCases <> pausingCases

lookingCases :: [Case]
lookingCases =
  [ onEmpty "clientInfo" clientInfo ["CLIENT", "INFO"] (Such "is a connection of this client" ordinary),
    onEmpty "clientList" clientList ["CLIENT", "LIST"] (Such "has several that are ordinary" (\found -> length found > 1 && any ordinary found)),
    onEmpty
      "clientListOf"
      (clientListOf (ClientWith (HasType NormalClient) :| []))
      ["CLIENT", "LIST", "TYPE", "normal"]
      (Such "has several" ((> 1) . length)),
    onEmpty "clientListOf" (clientListOf (ClientWith (HasType PrimaryClient) :| [])) ["CLIENT", "LIST", "TYPE", "master"] (Gives []),
    onEmpty "clientListOf" (clientListOf (ClientWith (HasType ReplicaClient) :| [])) ["CLIENT", "LIST", "TYPE", "replica"] (Gives []),
    onEmpty "clientListOf" (clientListOf (ClientWith (HasType PubsubClient) :| [])) ["CLIENT", "LIST", "TYPE", "pubsub"] (Gives []),
    onEmpty
      "clientListOf"
      (clientListOf (ClientWith (HasId (1000001 :| [1000002])) :| []))
      ["CLIENT", "LIST", "ID", "1000001", "1000002"]
      (Gives []),
    needs [(IsValkey, (8, 1))] $
      onEmpty
        "clientListOf"
        (clientListOf (ClientWith (HasUser "default") :| [ClientOlderThan (hours 5), ClientIncludeMe]))
        ["CLIENT", "LIST", "USER", "default", "MAXAGE", "18000", "SKIPME", "no"]
        (Gives []),
    onEmpty "clientTrackinginfo" clientTrackinginfo ["CLIENT", "TRACKINGINFO"] (Gives (TrackingInfo ["off"] NotTracking [])),
    onEmpty "clientGetredir" clientGetredir ["CLIENT", "GETREDIR"] (Gives NotTracking),
    onEmpty "clientHelp" clientHelp ["CLIENT", "HELP"] (Such "has lines" (not . null))
  ]
  where
    ordinary ClientInfo {clientInfoId, clientInfoAddress, clientInfoDatabase, clientInfoUser, clientInfoCommand, clientInfoOthers} =
      clientInfoId > 0
        && "127.0.0.1:" `Char8.isPrefixOf` clientInfoAddress
        && clientInfoDatabase == 0
        && clientInfoUser == Just "default"
        && maybe False ("client|" `Char8.isPrefixOf`) clientInfoCommand
        && not (null clientInfoOthers)

-- | No client fits these filters, so the suite's own connections stay open.
killingCases :: [Case]
killingCases =
  [ onEmpty "clientKill" (clientKill "1.2.3.4:5") ["CLIENT", "KILL", "1.2.3.4:5"] (Fails "ERR"),
    killing [ClientWith (HasId (1000001 :| []))] ["ID", "1000001"],
    killing [ClientWith (HasType PrimaryClient)] ["TYPE", "master"],
    killing [ClientWith (HasType ReplicaClient), ClientSkipMe] ["TYPE", "replica", "SKIPME", "yes"],
    killing [ClientWith (HasType PubsubClient), ClientIncludeMe] ["TYPE", "pubsub", "SKIPME", "no"],
    killing [ClientWith (HasAddress "1.2.3.4:5"), ClientWith (HasLocalAddress "1.2.3.4:6")] ["ADDR", "1.2.3.4:5", "LADDR", "1.2.3.4:6"],
    after
      [["ACL", "SETUSER", "nobody"]]
      "clientKillWith"
      (clientKillWith (ClientWith (HasUser "nobody") :| []))
      ["CLIENT", "KILL", "USER", "nobody"]
      (Gives 0),
    needs [(IsRedis, (7, 4)), (IsValkey, (8, 0))] (killing [ClientOlderThan (hours 5)] ["MAXAGE", "18000"])
  ]

filterCases :: [Case]
filterCases =
  map
    (needs [(IsValkey, (9, 0))])
    [ killing [ClientWith (HasName "nobody"), ClientIdleFor (hours 1)] ["NAME", "nobody", "IDLE", "3600"],
      killing [ClientWith (HasFlags "b"), ClientWith (HasDatabase 7)] ["FLAGS", "b", "DB", "7"],
      killing [ClientWith (HasLibName "none"), ClientWith (HasLibVer "0")] ["LIB-NAME", "none", "LIB-VER", "0"],
      killing [ClientWith (HasCapa "r"), ClientWith (HasIp "1.2.3.4")] ["CAPA", "r", "IP", "1.2.3.4"],
      killing
        [ClientWithout (HasId (1000001 :| [1000002])), ClientWithout (HasType NormalClient)]
        ["NOT-ID", "1000001", "1000002", "NOT-TYPE", "normal"],
      killing
        [ClientWithout (HasUser "default"), ClientWithout (HasAddress "1.2.3.4:5"), ClientWithout (HasLocalAddress "1.2.3.4:6")]
        ["NOT-USER", "default", "NOT-ADDR", "1.2.3.4:5", "NOT-LADDR", "1.2.3.4:6"],
      killing
        [ClientWithout (HasDatabase 0), ClientWithout (HasName "n"), ClientWithout (HasFlags "b"), ClientWithout (HasIp "1.2.3.4")]
        ["NOT-DB", "0", "NOT-NAME", "n", "NOT-FLAGS", "b", "NOT-IP", "1.2.3.4"],
      killing
        [ClientWithout (HasDatabase 0), ClientWithout (HasLibName "n"), ClientWithout (HasLibVer "0"), ClientWithout (HasCapa "r")]
        ["NOT-DB", "0", "NOT-LIB-NAME", "n", "NOT-LIB-VER", "0", "NOT-CAPA", "r"]
    ]

killing :: [ClientFilter] -> [ByteString] -> Case
killing filters words' = case filters of
  first : rest -> onEmpty "clientKillWith" (clientKillWith (first :| rest)) (["CLIENT", "KILL"] <> words') (Gives 0)
  [] -> onEmpty "clientKillWith" (clientKillWith (ClientSkipMe :| [])) (["CLIENT", "KILL"] <> words') (Gives 0)

pausingCases :: [Case]
pausingCases =
  [ onEmpty "clientPause" (clientPause (milliseconds 1)) ["CLIENT", "PAUSE", "1"] (Gives ()),
    onEmpty "clientPauseWith" (clientPauseWith pauseDefaults {pauseMode = Just PauseAll} (milliseconds 1)) ["CLIENT", "PAUSE", "1", "ALL"] (Gives ()),
    onEmpty "clientPauseWith" (clientPauseWith pauseDefaults {pauseMode = Just PauseWrites} (seconds 0.002)) ["CLIENT", "PAUSE", "2", "WRITE"] (Gives ()),
    onEmpty "clientUnpause" clientUnpause ["CLIENT", "UNPAUSE"] (Gives ()),
    onEmpty "clientUnblock" (clientUnblock 1000001) ["CLIENT", "UNBLOCK", "1000001"] (Gives False),
    onEmpty "clientUnblockWith" (clientUnblockWith unblockDefaults {unblockMode = Just UnblockTimeout} 1000001) ["CLIENT", "UNBLOCK", "1000001", "TIMEOUT"] (Gives False),
    onEmpty "clientUnblockWith" (clientUnblockWith unblockDefaults {unblockMode = Just UnblockError} 1000001) ["CLIENT", "UNBLOCK", "1000001", "ERROR"] (Gives False)
  ]
