-- | Programs that run on the server: scripts and functions.
--
-- Each takes its keys and its other arguments; the keys must share a slot in a
-- cluster. The answer is whatever the program returns: see
-- 'Redis.Decode.decodedBy'. A script that fails half-way leaves what it did.
module Redis.Commands.Script
  ( -- * Scripts
    eval,
    evalRo,
    evalsha,
    evalshaRo,
    scriptLoad,
    scriptExists,
    scriptFlush,

    -- * Functions
    fcall,
    fcallRo,
    functionLoad,
    functionLoadReplacing,
  )
where

import Data.ByteString (ByteString)
import Data.List.NonEmpty (NonEmpty)
import Data.List.NonEmpty qualified as NonEmpty
import Redis.Command (Command)
import Redis.Decode qualified as Decode
import Redis.Internal.Commands.Build
import Redis.Internal.Protocol.Encode
import Redis.Value (Value)

-- | @EVAL script numkeys key … argument …@. Costs what the script costs; since
-- 2.6.0.
--
-- @since 0.1.0.0
eval :: ByteString -> [ByteString] -> [ByteString] -> Command Value
eval = writing "EVAL"

-- | @EVAL_RO …@: as 'eval', for a script that writes nothing, so that it may
-- run on a replica and may be sent again. Since 7.0.0.
--
-- @since 0.1.0.0
evalRo :: ByteString -> [ByteString] -> [ByteString] -> Command Value
evalRo = reading "EVAL_RO"

-- | @EVALSHA digest …@: as 'eval', with the SHA-1 digest (40 hexadecimal
-- digits) of a script that the node knows; the error @NOSCRIPT@ if it does
-- not. Since 2.6.0.
--
-- @since 0.1.0.0
evalsha :: ByteString -> [ByteString] -> [ByteString] -> Command Value
evalsha = writing "EVALSHA"

-- | @EVALSHA_RO digest …@: 'evalsha' as 'evalRo'. Since 7.0.0.
--
-- @since 0.1.0.0
evalshaRo :: ByteString -> [ByteString] -> [ByteString] -> Command Value
evalshaRo = reading "EVALSHA_RO"

-- | @FCALL function numkeys key … argument …@. Since 7.0.0.
--
-- @since 0.1.0.0
fcall :: ByteString -> [ByteString] -> [ByteString] -> Command Value
fcall = writing "FCALL"

-- | @FCALL_RO …@: a function that writes nothing. Since 7.0.0.
--
-- @since 0.1.0.0
fcallRo :: ByteString -> [ByteString] -> [ByteString] -> Command Value
fcallRo = reading "FCALL_RO"

writing, reading :: ByteString -> ByteString -> [ByteString] -> [ByteString] -> Command Value
writing name program keys arguments =
  keysWrite name keys (programRequest name program keys arguments) Decode.value
reading name program keys arguments =
  keysRead name keys (programRequest name program keys arguments) Decode.value

programRequest :: ByteString -> ByteString -> [ByteString] -> [ByteString] -> Request
programRequest name program keys arguments =
  request (name : program : int (fromIntegral (length keys)) : keys <> arguments)

-- | @SCRIPT LOAD script@: its digest. In a cluster only the node that is asked
-- learns the script. \(O(n)\) on the server in its length, since 2.6.0.
--
-- @since 0.1.0.0
scriptLoad :: ByteString -> Command ByteString
scriptLoad script = anyWrite "SCRIPT LOAD" (request ["SCRIPT", "LOAD", script]) Decode.bytes

-- | @SCRIPT EXISTS digest …@: which of them the node that is asked knows.
-- \(O(n)\) on the server, since 2.6.0.
--
-- @since 0.1.0.0
scriptExists :: NonEmpty ByteString -> Command [Bool]
scriptExists digests =
  anyRead
    "SCRIPT EXISTS"
    (request ("SCRIPT" : "EXISTS" : NonEmpty.toList digests))
    (Decode.listOf (length digests) Decode.boolean)

-- | @SCRIPT FLUSH@: the node that is asked forgets all scripts. \(O(n)\) on
-- the server, since 2.6.0.
--
-- @since 0.1.0.0
scriptFlush :: Command ()
scriptFlush = anyWrite "SCRIPT FLUSH" (request ["SCRIPT", "FLUSH"]) Decode.okay

-- | @FUNCTION LOAD code@: the name of the library, which must be new. In a
-- cluster only the node that is asked learns it. \(O(1)\) on the server, since
-- 7.0.0.
--
-- @since 0.1.0.0
functionLoad :: ByteString -> Command ByteString
functionLoad code = anyWrite "FUNCTION LOAD" (request ["FUNCTION", "LOAD", code]) Decode.bytes

-- | @FUNCTION LOAD REPLACE code@: as 'functionLoad', a library of that name
-- being replaced.
--
-- @since 0.1.0.0
functionLoadReplacing :: ByteString -> Command ByteString
functionLoadReplacing code =
  anyWrite "FUNCTION LOAD" (request ["FUNCTION", "LOAD", "REPLACE", code]) Decode.bytes
