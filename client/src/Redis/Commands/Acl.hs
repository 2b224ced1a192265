-- | Users and their permissions: the server's access control lists.
--
-- > run client (Redis.aclSetuser "example:access" [Redis.AclOn, Redis.AclPassword (toSecret "open sesame"), Redis.AclKeys "example:*", Redis.AclCategory "read"])
-- > mayWrite <- run client (onNode node (Redis.aclDryrun "example:access" ("SET" :| ["example:key", "value"])))
--
-- In a cluster each node has lists of its own. 'aclSetuser', 'aclDeluser' and 'aclSave' run on
-- every node. Commands about one node's lists or log need the name of that node
-- ('Redis.Command.onNode'). The server's page: <https://valkey.io/topics/acl/>.
module Redis.Commands.Acl
  ( -- * Users
    aclSetuser,
    AclRule (..),
    aclDeluser,
    aclGetuser,
    AclUser (..),
    AclPermissions (..),
    aclList,
    aclUsers,
    aclWhoami,

    -- * Checking
    aclDryrun,
    AclVerdict (..),
    aclGenpass,
    aclGenpassOf,
    aclCat,
    aclCatOf,

    -- * The log of refusals
    aclLog,
    aclLogOf,
    aclLogReset,
    AclLogEntry (..),
    AclLogReason (..),

    -- * The ACL file
    aclLoad,
    aclSave,
    aclHelp,
  )
where

import Data.ByteString.Char8 qualified as Char8
import Data.Foldable (fold)
import Redis.Decode qualified as Decode
import Redis.Duration (seconds)
import Redis.Internal.Command.ClientInfo
import Redis.Internal.Command.Common
import Redis.Internal.Command.Make (Argument (Unfit))
import Redis.Internal.Config (Secret, revealSecret)

-- | One step in making or changing a user. The server applies the steps in the order given.
data AclRule
  = -- | The user may log in.
    AclOn
  | -- | Nobody can log in as this user any more. Connections that are logged in stay so.
    AclOff
  | -- | Adds a password.
    AclPassword Secret
  | -- | Removes a password.
    AclWithoutPassword Secret
  | -- | Adds a password by its SHA-256, in hexadecimal digits.
    AclPasswordHash ByteString
  | -- | Removes a password by its SHA-256, in hexadecimal digits.
    AclWithoutPasswordHash ByteString
  | -- | Any password is accepted. The passwords that the user had are removed.
    AclNopass
  | -- | Removes all passwords and 'AclNopass': no password is accepted.
    AclResetpass
  | -- | Allows a command, or a subcommand after a bar: @get@, @config|get@.
    AclCommand ByteString
  | AclWithoutCommand ByteString
  | -- | Allows the commands of a category, named without the at sign. @all@ is every command.
    AclCategory ByteString
  | AclWithoutCategory ByteString
  | -- | Allows keys that match the glob.
    AclKeys ByteString
  | -- | Allows reading keys that match the glob, since 7.0.0.
    AclReadKeys ByteString
  | -- | Allows writing keys that match the glob, since 7.0.0.
    AclWriteKeys ByteString
  | AclResetkeys
  | -- | Allows channels that match the glob, since 6.2.0.
    AclChannels ByteString
  | AclResetchannels
  | -- | Adds a second set of permissions. A command is also allowed if this set alone allows all of
    -- it. Since 7.0.0.
    AclSelector [AclRule]
  | AclClearselectors
  | -- | Sets everything to what a new user has.
    AclReset
  | -- | Another rule, in the server's notation.
    OtherAclRule ByteString
  deriving stock (Eq, Show)

aclRule :: AclRule -> ByteString
aclRule = \case
  AclOn -> "on"
  AclOff -> "off"
  AclPassword password -> ">" <> revealSecret password
  AclWithoutPassword password -> "<" <> revealSecret password
  AclPasswordHash digest -> "#" <> digest
  AclWithoutPasswordHash digest -> "!" <> digest
  AclNopass -> "nopass"
  AclResetpass -> "resetpass"
  AclCommand name -> "+" <> name
  AclWithoutCommand name -> "-" <> name
  AclCategory name -> "+@" <> name
  AclWithoutCategory name -> "-@" <> name
  AclKeys glob -> "~" <> glob
  AclReadKeys glob -> "%R~" <> glob
  AclWriteKeys glob -> "%W~" <> glob
  AclResetkeys -> "resetkeys"
  AclChannels glob -> "&" <> glob
  AclResetchannels -> "resetchannels"
  AclSelector rules -> "(" <> Char8.unwords (map aclRule rules) <> ")"
  AclClearselectors -> "clearselectors"
  AclReset -> "reset"
  OtherAclRule text -> text

-- | @ACL SETUSER name rule …@: makes the user, or changes it: all rules apply, or none. In a
-- cluster it runs on every node. \(O(n)\), [since 6.0.0](https://valkey.io/commands/acl-setuser/).
-- An error if a rule is invalid; a rule within a selector that has a blank or a quote is refused unsent.
aclSetuser :: ByteString -> [AclRule] -> Command ()
aclSetuser user rules = command "ACL SETUSER" (arg user : map ruled rules) Decode.okay
  where
    -- The server splits a selector into words as a shell does: one rule would become several, or all be dropped.
    ruled = \case
      AclSelector inner | any (Char8.any (`elem` (" \t\n\v\f\r\"'\0" :: String)) . aclRule) inner -> Unfit "a selector's rule with a blank or a quote" ""
      rule -> arg (aclRule rule)

-- | @ACL DELUSER name …@: deletes users and ends their connections; how many of them existed. In a
-- cluster it runs on every node, and the number is that of one node. \(O(1)\),
-- [since 6.0.0](https://valkey.io/commands/acl-deluser/). To delete the user @default@ is an error.
aclDeluser :: NonEmpty ByteString -> Command Int64
aclDeluser users = command "ACL DELUSER" (args users) Decode.integer

-- | A set of permissions: commands, keys and channels.
data AclPermissions = AclPermissions
  { -- | The commands, as rules: @-\@all +get@.
    aclPermissionsCommands :: ByteString,
    -- | The keys, as rules: @~app:* %R~*@.
    aclPermissionsKeys :: ByteString,
    -- | The channels, as rules: @&*@. Empty before 6.2.0.
    aclPermissionsChannels :: ByteString,
    -- | Further fields of the reply: Valkey has @databases@, since 9.1.0.
    aclPermissionsOthers :: [(ByteString, Value)]
  }
  deriving stock (Eq, Show)

-- | A user, as the server knows it.
data AclUser = AclUser
  { -- | Such as @on@, @nopass@.
    aclUserFlags :: [ByteString],
    -- | The SHA-256 of each password, in hexadecimal digits.
    aclUserPasswords :: [ByteString],
    aclUserPermissions :: AclPermissions,
    -- | Further sets of permissions, since 7.0.0.
    aclUserSelectors :: [AclPermissions]
  }
  deriving stock (Eq, Show)

-- | @ACL GETUSER name@: the user, or 'Nothing' if there is none. \(O(n)\),
-- [since 6.0.0](https://valkey.io/commands/acl-getuser/).
aclGetuser :: ByteString -> Command (Maybe AclUser)
aclGetuser user =
  command "ACL GETUSER" [arg user] . Decode.nullable . recordOf $
    AclUser
      <$> field "flags" (Decode.list Decode.bytes)
      <*> field "passwords" (Decode.list Decode.bytes)
      <*> permissions
      <*> several "selectors" (Decode.list (recordOf permissions))
  where
    permissions =
      AclPermissions
        <$> field "commands" Decode.bytes
        <*> field "keys" (patterns "~")
        <*> (fold <$> optionalField "channels" (patterns "&"))
        <*> others Decode.value
    -- Before 7.0 servers send a list of globs.
    patterns mark = Decode.bytes `Decode.orElse` (fmap (Char8.unwords . map (mark <>)) . Decode.list Decode.bytes)

-- | @ACL LIST@, @ACL USERS@: every user, as a line of the file; the names of all users. \(O(n)\),
-- since 6.0.0 ([ACL LIST](https://valkey.io/commands/acl-list/),
-- [ACL USERS](https://valkey.io/commands/acl-users/)).
aclList, aclUsers :: Command [ByteString]
aclList = command "ACL LIST" [] (Decode.list Decode.bytes)
aclUsers = command "ACL USERS" [] (Decode.list Decode.bytes)

-- | @ACL WHOAMI@: the user as which this client's connections are logged in. \(O(1)\),
-- [since 6.0.0](https://valkey.io/commands/acl-whoami/).
aclWhoami :: Command ByteString
aclWhoami = command "ACL WHOAMI" [] Decode.bytes

-- | Whether a user may run a command.
data AclVerdict
  = AclAllowed
  | -- | The user may not run it, for this reason.
    AclDenied ByteString
  deriving stock (Eq, Show)

-- | @ACL DRYRUN user command argument …@: whether this user may run this command. The server does
-- not run it. \(O(1)\), [since 7.0.0](https://valkey.io/commands/acl-dryrun/). An error if there is
-- no such user or command.
aclDryrun :: ByteString -> NonEmpty ByteString -> Command AclVerdict
aclDryrun user commandArguments = command "ACL DRYRUN" (arg user : args commandArguments) (fmap verdict . Decode.bytes)
  where
    verdict text = if text == "OK" then AclAllowed else AclDenied text

-- | @ACL GENPASS@: a new password of 256 random bits, in hexadecimal digits. \(O(1)\),
-- [since 6.0.0](https://valkey.io/commands/acl-genpass/).
aclGenpass :: Command ByteString
aclGenpass = command "ACL GENPASS" [] Decode.bytes

-- | @ACL GENPASS bits@: a new password of this many random bits, at most 4096. The number of digits
-- is rounded up.
aclGenpassOf :: Int64 -> Command ByteString
aclGenpassOf bits = command "ACL GENPASS" [int bits] Decode.bytes

-- | @ACL CAT@: all categories. \(O(1)\), [since 6.0.0](https://valkey.io/commands/acl-cat/).
aclCat :: Command [ByteString]
aclCat = command "ACL CAT" [] (Decode.list Decode.bytes)

-- | @ACL CAT category@: the commands of a category. An error if there is no such category.
aclCatOf :: ByteString -> Command [ByteString]
aclCatOf category = command "ACL CAT" [arg category] (Decode.list Decode.bytes)

-- | What the server refused.
data AclLogReason
  = CommandRefused
  | KeyRefused
  | ChannelRefused
  | -- | A log-in.
    AuthRefused
  | -- | Something else, in the server's word, such as Valkey's @database@.
    OtherRefused ByteString
  deriving stock (Eq, Show)

-- | A refusal, or several equal ones within a minute.
data AclLogEntry = AclLogEntry
  { -- | How many refusals the entry stands for.
    aclLogCount :: Int64,
    aclLogReason :: AclLogReason,
    -- | @toplevel@, @multi@, @lua@ or @module@.
    aclLogContext :: ByteString,
    -- | The command, the key, the channel, or @AUTH@.
    aclLogObject :: ByteString,
    -- | The user who was refused.
    aclLogUser :: ByteString,
    -- | How long ago the last refusal was.
    aclLogAge :: Duration,
    -- | The connection that was refused.
    aclLogClient :: ClientInfo,
    -- | The server's number for the entry, since 7.2.0.
    aclLogId :: Maybe Int64,
    -- | When the first refusal was, since 7.2.0.
    aclLogCreated :: Maybe UTCTime,
    -- | When the last refusal was, since 7.2.0.
    aclLogUpdated :: Maybe UTCTime
  }
  deriving stock (Eq, Show)

-- | @ACL LOG@: the ten latest refusals, the newest first. \(O(n)\),
-- [since 6.0.0](https://valkey.io/commands/acl-log/).
aclLog :: Command [AclLogEntry]
aclLog = command "ACL LOG" [] (Decode.list aclLogEntry)

-- | @ACL LOG count@: like 'aclLog', with at most this many refusals.
aclLogOf :: Int64 -> Command [AclLogEntry]
aclLogOf count = command "ACL LOG" [int count] (Decode.list aclLogEntry)

aclLogEntry :: Decoder AclLogEntry
aclLogEntry =
  recordOf $
    AclLogEntry
      <$> field "count" Decode.integer
      <*> field "reason" reason
      <*> field "context" Decode.bytes
      <*> field "object" Decode.bytes
      <*> field "username" Decode.bytes
      <*> field "age-seconds" (fmap seconds . Decode.double)
      <*> field "client-info" (\text -> Decode.bytes text >>= clientDescription)
      <*> optionalField "entry-id" Decode.integer
      <*> optionalField "timestamp-created" Decode.unixMilliseconds
      <*> optionalField "timestamp-last-updated" Decode.unixMilliseconds
  where
    reason =
      wordOr OtherRefused [("command", CommandRefused), ("key", KeyRefused), ("channel", ChannelRefused), ("auth", AuthRefused)]

-- | @ACL LOG RESET@: deletes the log. [Since 6.0.0](https://valkey.io/commands/acl-log/).
aclLogReset :: Command ()
aclLogReset = command "ACL LOG" [arg "RESET"] Decode.okay

-- | @ACL LOAD@, @ACL SAVE@: replace all users by those in the file (@aclfile@), or write all users
-- to it. If a line of the file is wrong, nothing changes. An error if a server has no such file.
-- In a cluster, name the node for ACL LOAD; ACL SAVE runs on every node. \(O(n)\), since 6.0.0
-- ([ACL LOAD](https://valkey.io/commands/acl-load/), [ACL SAVE](https://valkey.io/commands/acl-save/)).
aclLoad, aclSave :: Command ()
aclLoad = command "ACL LOAD" [] Decode.okay
aclSave = command "ACL SAVE" [] Decode.okay

-- | @ACL HELP@: the server's help. \(O(1)\), [since 6.0.0](https://valkey.io/commands/acl-help/).
aclHelp :: Command [ByteString]
aclHelp = command "ACL HELP" [] (Decode.list Decode.bytes)
