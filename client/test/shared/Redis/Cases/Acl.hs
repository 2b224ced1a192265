-- | "Redis.Commands.Acl".
module Redis.Cases.Acl (aclCases) where

import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Data.List.NonEmpty (NonEmpty ((:|)))
import Redis.CommandCase
import Redis.Commands.Acl
import Redis.Commands.Client (ClientInfo (..))
import Redis.Internal.Config (toSecret)

aclCases :: [Case]
aclCases =
  [ after [gone] "aclSetuser" (aclSetuser "al" []) ["ACL", "SETUSER", "al"] (Gives ()),
    after
      [gone]
      "aclSetuser"
      (aclSetuser "al" [AclReset, AclOn, AclPassword (toSecret "p"), AclWithoutPassword (toSecret "p"), AclPasswordHash digest, AclWithoutPasswordHash digest])
      ["ACL", "SETUSER", "al", "reset", "on", ">p", "<p", "#" <> digest, "!" <> digest]
      (Gives ()),
    after
      [gone]
      "aclSetuser"
      (aclSetuser "al" [AclOff, AclNopass, AclResetpass, AclCategory "read", AclWithoutCategory "slow", AclCommand "config|get", AclWithoutCommand "get"])
      ["ACL", "SETUSER", "al", "off", "nopass", "resetpass", "+@read", "-@slow", "+config|get", "-get"]
      (Gives ()),
    after
      [gone]
      "aclSetuser"
      (aclSetuser "al" [AclKeys "a*", AclResetkeys, AclReadKeys "r*", AclWriteKeys "w*", AclResetchannels, AclChannels "c*"])
      ["ACL", "SETUSER", "al", "~a*", "resetkeys", "%R~r*", "%W~w*", "resetchannels", "&c*"]
      (Gives ()),
    after
      [gone]
      "aclSetuser"
      (aclSetuser "al" [AclSelector [AclCommand "get", AclKeys "s*"], AclClearselectors, OtherAclRule "allkeys"])
      ["ACL", "SETUSER", "al", "(+get ~s*)", "clearselectors", "allkeys"]
      (Gives ()),
    onEmpty "aclSetuser" (aclSetuser "al" [AclCommand "nosuch"]) ["ACL", "SETUSER", "al", "+nosuch"] (Fails "ERR"),
    after [gone, some] "aclDeluser" (aclDeluser ("al" :| ["nosuch"])) ["ACL", "DELUSER", "al", "nosuch"] (Gives 1),
    onEmpty "aclDeluser" (aclDeluser ("default" :| [])) ["ACL", "DELUSER", "default"] (Fails "ERR"),
    after
      [gone, some]
      "aclGetuser"
      (aclGetuser "al")
      ["ACL", "GETUSER", "al"]
      (Such "is the user that was made" (maybe False isSome)),
    after [gone] "aclGetuser" (aclGetuser "al") ["ACL", "GETUSER", "al"] (Gives Nothing),
    after [gone, some] "aclList" aclList ["ACL", "LIST"] (Such "has both users" ((== 2) . length . filter (\line -> any (`Char8.isPrefixOf` line) ["user al ", "user default "]))),
    after [gone, some] "aclUsers" aclUsers ["ACL", "USERS"] (Such "has both users" (\names -> all (`elem` names) ["al", "default"])),
    onEmpty "aclWhoami" aclWhoami ["ACL", "WHOAMI"] (Gives "default"),
    after [gone, some] "aclDryrun" (aclDryrun "al" ("GET" :| ["app:1"])) ["ACL", "DRYRUN", "al", "GET", "app:1"] (Gives AclAllowed),
    after [gone, some] "aclDryrun" (aclDryrun "al" ("GET" :| ["k"])) ["ACL", "DRYRUN", "al", "GET", "k"] (Such "is a refusal" (/= AclAllowed)),
    after [gone] "aclDryrun" (aclDryrun "al" ("GET" :| ["k"])) ["ACL", "DRYRUN", "al", "GET", "k"] (Fails "ERR"),
    onEmpty "aclGenpass" aclGenpass ["ACL", "GENPASS"] (Such "has 64 digits" ((== 64) . Char8.length)),
    onEmpty "aclGenpassOf" (aclGenpassOf 5) ["ACL", "GENPASS", "5"] (Such "has 2 digits" ((== 2) . Char8.length)),
    onEmpty "aclCat" aclCat ["ACL", "CAT"] (Such "has the category of geo" (elem "geo")),
    onEmpty "aclCatOf" (aclCatOf "geo") ["ACL", "CAT", "geo"] (Such "has GEOADD" (elem "geoadd")),
    onEmpty "aclCatOf" (aclCatOf "nosuch") ["ACL", "CAT", "nosuch"] (Fails "ERR"),
    after
      ([["ACL", "LOG", "RESET"], gone, some] <> refusals)
      "aclLog"
      aclLog
      ["ACL", "LOG"]
      (Such "tells what was refused, the newest first" ((== [(AuthRefused, "AUTH"), (CommandRefused, "sadd"), (KeyRefused, "k")]) . map (\entry -> (aclLogReason entry, if aclLogReason entry == AuthRefused then "AUTH" else aclLogObject entry)))),
    after
      ([["ACL", "LOG", "RESET"], gone, some] <> refusals)
      "aclLogOf"
      (aclLogOf 1)
      ["ACL", "LOG", "1"]
      ( Such
          "tells of one and whose it was"
          ( \case
              [entry] -> aclLogUser entry == "al" && aclLogCount entry == 1 && aclLogContext entry == "toplevel" && clientInfoUser (aclLogClient entry) == Just "default"
              _ -> False
          )
      ),
    after [["ACL", "LOG", "RESET"]] "aclLog" aclLog ["ACL", "LOG"] (Gives []),
    onEmpty "aclLogReset" aclLogReset ["ACL", "LOG", "RESET"] (Gives ()),
    -- The server has no ACL file.
    onEmpty "aclLoad" aclLoad ["ACL", "LOAD"] (Fails "ERR"),
    onEmpty "aclSave" aclSave ["ACL", "SAVE"] (Fails "ERR"),
    onEmpty "aclHelp" aclHelp ["ACL", "HELP"] (Such "has lines" (not . null))
  ]
  where
    isSome AclUser {aclUserFlags, aclUserPasswords, aclUserPermissions, aclUserSelectors} =
      "on" `elem` aclUserFlags
        && aclUserPasswords == [digest]
        && granted aclUserPermissions == ("-@all +get", "~app:* %R~r:*", "&news")
        && map granted aclUserSelectors == [("-@all +set", "~s", "")]
    granted permissions = (aclPermissionsCommands permissions, aclPermissionsKeys permissions, aclPermissionsChannels permissions)

gone :: [ByteString]
gone = ["ACL", "DELUSER", "al"]

some :: [ByteString]
some = ["ACL", "SETUSER", "al", "on", ">p", "~app:*", "%R~r:*", "resetchannels", "&news", "+get", "(~s +set)"]

-- | A key, a command and a password that the user may not use.
refusals :: [[ByteString]]
refusals = [["AUTH", "al", "p"], ["GET", "k"], ["SADD", "app:1", "v"], ["AUTH", "default", "p"], ["AUTH", "al", "wrong"]]

-- | The digest of @p@.
digest :: ByteString
digest = "148de9c5a7a44d19e56cd9ae1a554bf67847afb0c58f6e12fa29ac7ddfca9940"
