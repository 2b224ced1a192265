{-# LANGUAGE MagicHash #-}

-- | Keys, whatever they hold: deleting, expiring, renaming, walking.
module Redis.Commands.Keys
  ( -- * Presence
    del,
    unlink,
    exists,
    touch,
    typeOf,

    -- * Expiry
    expire,
    pexpire,
    expireat,
    pexpireat,
    persist,
    ttl,
    pttl,
    KeyTtl (..),

    -- * Names
    rename,
    renamenx,
    copy,
    copyReplacing,
    randomkey,
    keysMatching,

    -- * Walking
    scan,
    ScanCursor,
    scanStart,
    ScanOptions (..),
    scanDefaults,
    ScanPage (..),

    -- * Moving values
    dump,
    restore,
    RestoreOptions (..),
    restoreDefaults,
  )
where

import Data.ByteString (ByteString)
import Data.Int (Int64)
import Data.List.NonEmpty (NonEmpty ((:|)))
import Data.List.NonEmpty qualified as NonEmpty
import Redis.Command (Command (..), Facts (..), readFacts, writeFacts)
import Redis.Decode (Decoder)
import Redis.Decode qualified as Decode
import Redis.Internal.Commands.Build
import Redis.Internal.Protocol.Encode

-- | @DEL key …@: how many there were. \(O(n)\) on the server in keys, and in
-- elements of what they hold; since 1.0.0. Keys of several slots make one DEL
-- per slot, run at different times.
--
-- @since 0.1.0.0
del :: NonEmpty ByteString -> Command Int64
del = \case
  key :| [] -> keyWrite "DEL" key (requestLiteral1 13 "*2\r\n$3\r\nDEL\r\n"# key) Decode.integer
  keys -> countKeys "DEL" writeFacts keys

-- | @UNLINK key …@: as 'del', the memory being given back in the background.
-- \(O(1)\) per key on the server, since 4.0.0. Split as 'del' is.
--
-- @since 0.1.0.0
unlink :: NonEmpty ByteString -> Command Int64
unlink = countKeys "UNLINK" writeFacts

-- | @EXISTS key …@: how many of them exist, one named twice counting twice.
-- \(O(n)\) on the server, since 1.0.0; several keys since 3.0.3. Split as 'del'
-- is.
--
-- @since 0.1.0.0
exists :: NonEmpty ByteString -> Command Int64
exists = \case
  key :| [] -> keyRead "EXISTS" key (requestLiteral1 16 "*2\r\n$6\r\nEXISTS\r\n"# key) Decode.integer
  keys -> countKeys "EXISTS" readFacts keys

-- | @TOUCH key …@: how many exist; they count as just used, on the primary, which is
-- what evicts. \(O(n)\) on the server, since 3.2.1. Split as 'del' is.
--
-- @since 0.1.0.0
touch :: NonEmpty ByteString -> Command Int64
touch = countKeys "TOUCH" readFacts {factReadOnly = False}

countKeys :: ByteString -> Facts -> NonEmpty ByteString -> Command Int64
countKeys name facts keys =
  Command
    { commandName = name,
      commandRequest = request (name : NonEmpty.toList keys),
      commandRoute = summed (countKeys name facts) keys,
      commandFacts = facts,
      commandDecode = Decode.integer
    }

-- | @TYPE key@: such as @string@ or @list@, 'Nothing' for no key. \(O(1)\) on
-- the server, since 1.0.0.
--
-- @since 0.1.0.0
typeOf :: ByteString -> Command (Maybe ByteString)
typeOf key = keyRead "TYPE" key (requestLiteral1 14 "*2\r\n$4\r\nTYPE\r\n"# key) $ \reply -> do
  name <- Decode.bytes reply
  pure (if name == "none" then Nothing else Just name)

-- | @EXPIRE key seconds@: whether there was such a key. \(O(1)\) on the
-- server, since 1.0.0.
--
-- @since 0.1.0.0
expire :: ByteString -> Int64 -> Command Bool
expire key time = keyWrite "EXPIRE" key (requestLiteral2 16 "*3\r\n$6\r\nEXPIRE\r\n"# key (int time)) Decode.boolean

-- | @PEXPIRE key milliseconds@: whether there was such a key. \(O(1)\) on the
-- server, since 2.6.0.
--
-- @since 0.1.0.0
pexpire :: ByteString -> Int64 -> Command Bool
pexpire key time = keyWrite "PEXPIRE" key (requestLiteral2 17 "*3\r\n$7\r\nPEXPIRE\r\n"# key (int time)) Decode.boolean

-- | @EXPIREAT key second@, counted from 1970: whether there was such a key.
-- \(O(1)\) on the server, since 1.2.0.
--
-- @since 0.1.0.0
expireat :: ByteString -> Int64 -> Command Bool
expireat key time = keyWrite "EXPIREAT" key (requestLiteral2 18 "*3\r\n$8\r\nEXPIREAT\r\n"# key (int time)) Decode.boolean

-- | @PEXPIREAT key millisecond@, counted from 1970: whether there was such a
-- key. \(O(1)\) on the server, since 2.6.0.
--
-- @since 0.1.0.0
pexpireat :: ByteString -> Int64 -> Command Bool
pexpireat key time = keyWrite "PEXPIREAT" key (requestLiteral2 19 "*3\r\n$9\r\nPEXPIREAT\r\n"# key (int time)) Decode.boolean

-- | @PERSIST key@: takes the expiry away; whether there was one. \(O(1)\) on
-- the server, since 2.2.0.
--
-- @since 0.1.0.0
persist :: ByteString -> Command Bool
persist key = keyWrite "PERSIST" key (requestLiteral1 17 "*2\r\n$7\r\nPERSIST\r\n"# key) Decode.boolean

-- | How long a key has to live.
--
-- @since 0.1.0.0
data KeyTtl
  = -- | There is no such key.
    NoSuchKey
  | -- | It has no time to live.
    NeverExpires
  | -- | In the unit of the command that asked.
    ExpiresIn Int64
  deriving stock (Eq, Show)

-- | @TTL key@, in seconds. \(O(1)\) on the server, since 1.0.0.
--
-- @since 0.1.0.0
ttl :: ByteString -> Command KeyTtl
ttl key = keyRead "TTL" key (requestLiteral1 13 "*2\r\n$3\r\nTTL\r\n"# key) keyTtl

-- | @PTTL key@, in milliseconds. \(O(1)\) on the server, since 2.6.0.
--
-- @since 0.1.0.0
pttl :: ByteString -> Command KeyTtl
pttl key = keyRead "PTTL" key (requestLiteral1 14 "*2\r\n$4\r\nPTTL\r\n"# key) keyTtl

keyTtl :: Decoder KeyTtl
keyTtl reply = do
  time <- Decode.integer reply
  case time of
    -2 -> Right NoSuchKey
    -1 -> Right NeverExpires
    _
      | time >= 0 -> Right (ExpiresIn time)
      | otherwise -> Decode.mismatch "a time, -1 or -2" reply

-- | @RENAME from to@; what was at @to@ is gone. An error if there is no
-- @from@. In a cluster both must share a slot. \(O(1)\) on the server, since
-- 1.0.0.
--
-- @since 0.1.0.0
rename :: ByteString -> ByteString -> Command ()
rename from to = keysWrite "RENAME" [from, to] (request ["RENAME", from, to]) Decode.okay

-- | @RENAMENX from to@: whether it was renamed, which is if there was no @to@.
-- An error if there is no @from@. In a cluster both must share a slot.
-- \(O(1)\) on the server, since 1.0.0.
--
-- @since 0.1.0.0
renamenx :: ByteString -> ByteString -> Command Bool
renamenx from to = keysWrite "RENAMENX" [from, to] (request ["RENAMENX", from, to]) Decode.boolean

-- | @COPY from to@: whether it was copied, which is if there was a @from@ and
-- no @to@. In a cluster both must share a slot. \(O(n)\) on the server in the
-- size of the value, since 6.2.0.
--
-- @since 0.1.0.0
copy :: ByteString -> ByteString -> Command Bool
copy from to = keysWrite "COPY" [from, to] (request ["COPY", from, to]) Decode.boolean

-- | @COPY from to REPLACE@: as 'copy', a @to@ being replaced.
--
-- @since 0.1.0.0
copyReplacing :: ByteString -> ByteString -> Command Bool
copyReplacing from to =
  keysWrite "COPY" [from, to] (request ["COPY", from, to, "REPLACE"]) Decode.boolean

-- | @RANDOMKEY@: any key of the node that is asked. \(O(1)\) on the server,
-- since 1.0.0.
--
-- @since 0.1.0.0
randomkey :: Command (Maybe ByteString)
randomkey = anyRead "RANDOMKEY" (request ["RANDOMKEY"]) (Decode.nullable Decode.bytes)

-- | @KEYS pattern@: all keys of the node that is asked which match a glob.
-- \(O(n)\) on the server in the size of the database, serving nobody else
-- meanwhile; see 'scan'. Since 1.0.0.
--
-- @since 0.1.0.0
keysMatching :: ByteString -> Command [ByteString]
keysMatching pattern' =
  anyRead "KEYS" (requestLiteral1 14 "*2\r\n$4\r\nKEYS\r\n"# pattern') (Decode.list Decode.bytes)

-- | Where a walk stands: only the server knows what it means, and only the
-- server that gave it.
--
-- @since 0.1.0.0
newtype ScanCursor = ScanCursor ByteString
  deriving stock (Eq, Show)

-- | The beginning of a walk.
--
-- @since 0.1.0.0
scanStart :: ScanCursor
scanStart = ScanCursor "0"

-- | What to walk over.
--
-- @since 0.1.0.0
data ScanOptions = ScanOptions
  { -- | MATCH: a glob.
    scanMatch :: Maybe ByteString,
    -- | COUNT: roughly how many keys to look at in one step (10 by default).
    scanCount :: Maybe Int64,
    -- | TYPE (since 6.0.0): such as @string@.
    scanType :: Maybe ByteString
  }
  deriving stock (Eq, Show)

-- | All keys, in steps of the server's choice.
--
-- @since 0.1.0.0
scanDefaults :: ScanOptions
scanDefaults = ScanOptions {scanMatch = Nothing, scanCount = Nothing, scanType = Nothing}

-- | One step of a walk.
--
-- @since 0.1.0.0
data ScanPage = ScanPage
  { -- | Where to go on; 'Nothing' at the end.
    scanNext :: Maybe ScanCursor,
    -- | Maybe none, though the walk goes on.
    scanKeys :: [ByteString]
  }
  deriving stock (Eq, Show)

-- | @SCAN cursor [MATCH p] [COUNT n] [TYPE t]@: a step of a walk over the keys
-- of the node that is asked. What is there throughout the walk is seen, maybe
-- twice. \(O(1)\) per step on the server, since 2.8.0.
--
-- In a cluster each step goes to another node, for which the cursor means
-- something else, and keys would be missed without a word: walk on one
-- connection ('Redis.Client.withDedicated'), which walks over its node.
--
-- @since 0.1.0.0
scan :: ScanOptions -> ScanCursor -> Command ScanPage
scan ScanOptions {scanMatch, scanCount, scanType} (ScanCursor cursor) =
  anyRead "SCAN" (request ("SCAN" : cursor : arguments)) $ \reply ->
    Decode.listOf 2 Decode.value reply >>= \case
      [next, keys] -> do
        nextCursor <- Decode.bytes next
        scanKeys <- Decode.list Decode.bytes keys
        pure ScanPage {scanNext = if nextCursor == "0" then Nothing else Just (ScanCursor nextCursor), scanKeys}
      _ -> Decode.mismatch "a cursor and keys" reply
  where
    arguments = option "MATCH" id scanMatch <> option "COUNT" int scanCount <> option "TYPE" id scanType

-- | @DUMP key@: its value in the server's own form, for 'restore'. \(O(n)\) on
-- the server in the size of the value, since 2.6.0.
--
-- @since 0.1.0.0
dump :: ByteString -> Command (Maybe ByteString)
dump key = keyRead "DUMP" key (requestLiteral1 14 "*2\r\n$4\r\nDUMP\r\n"# key) (Decode.nullable Decode.bytes)

-- | How to restore.
--
-- @since 0.1.0.0
data RestoreOptions = RestoreOptions
  { -- | Milliseconds to live; 'Nothing' for ever.
    restoreTtl :: Maybe Int64,
    -- | The time to live is a time since 1970 (since 5.0.0).
    restoreAbsoluteTtl :: Bool,
    -- | Replaces what is there (since 3.0.0), which otherwise is an error.
    restoreReplace :: Bool
  }
  deriving stock (Eq, Show)

-- | Lives for ever and replaces nothing.
--
-- @since 0.1.0.0
restoreDefaults :: RestoreOptions
restoreDefaults = RestoreOptions {restoreTtl = Nothing, restoreAbsoluteTtl = False, restoreReplace = False}

-- | @RESTORE key ttl payload@: puts what 'dump' gave at a key. \(O(n)\) on the
-- server in the size of the value, since 2.6.0.
--
-- @since 0.1.0.0
restore :: RestoreOptions -> ByteString -> ByteString -> Command ()
restore RestoreOptions {restoreTtl, restoreAbsoluteTtl, restoreReplace} key payload =
  keyWrite "RESTORE" key (request ("RESTORE" : key : maybe "0" int restoreTtl : payload : arguments)) Decode.okay
  where
    arguments = flag "REPLACE" restoreReplace <> flag "ABSTTL" restoreAbsoluteTtl
