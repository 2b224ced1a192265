-- | Hashes with the same fields, whose names are sent once.
--
-- > withDedicated client AnyPrimary $ \connection -> do
-- >   runOn connection (Redis.himportPrepare "people" ("name" :| ["born"]))
-- >   runOn connection (Redis.himportSet "example:himport" "people" ("Ada" :| ["1815"]))
--
-- The server keeps the names under that of a /fieldset/, for one connection. So these commands are
-- refused where callers share one; 'Redis.Client.withDedicated' lends one. A fieldset is gone when the
-- connection closes, and a dedicated connection that has some is not lent again.
--
-- Redis has these commands since 8.10.0; Valkey lacks them. They are made from the documentation, and
-- were not run on a server. The server's page: <https://redis.io/docs/latest/commands/himport/>.
module Redis.Commands.Himport
  ( himportPrepare,
    himportSet,
    himportDiscard,
    himportDiscardall,
  )
where

import Redis.Decode qualified as Decode
import Redis.Internal.Command.Common

-- | @HIMPORT PREPARE fieldset field …@: names the fields, for this connection; a fieldset of that
-- name is replaced. An error if a field is named twice. \(O(n \log n)\) in the number of fields,
-- [since Redis 8.10.0](https://redis.io/docs/latest/commands/himport-prepare/).
himportPrepare :: ByteString -> NonEmpty ByteString -> Command ()
himportPrepare fieldset fields = command "HIMPORT PREPARE" (arg fieldset : args fields) Decode.okay

-- | @HIMPORT SET key fieldset value …@: makes a hash of the fieldset's fields with these values, as
-- many and in that order, whatever the key held before. An error if there is no such fieldset on
-- this connection. \(O(n)\) in the number of fields,
-- [since Redis 8.10.0](https://redis.io/docs/latest/commands/himport-set/).
himportSet :: ByteString -> ByteString -> NonEmpty ByteString -> Command ()
himportSet name fieldset new = command "HIMPORT SET" (key name : arg fieldset : args new) Decode.okay

-- | @HIMPORT DISCARD fieldset@: forgets a fieldset of this connection; returns whether there was
-- one. Hashes that were made of it stay. \(O(n)\) in the number of fieldsets,
-- [since Redis 8.10.0](https://redis.io/docs/latest/commands/himport-discard/).
himportDiscard :: ByteString -> Command Bool
himportDiscard fieldset = command "HIMPORT DISCARD" [arg fieldset] Decode.boolean

-- | @HIMPORT DISCARDALL@: forgets the fieldsets of this connection; how many there were. \(O(n)\)
-- in that number, [since Redis 8.10.0](https://redis.io/docs/latest/commands/himport-discardall/).
himportDiscardall :: Command Int64
himportDiscardall = command "HIMPORT DISCARDALL" [] Decode.integer
