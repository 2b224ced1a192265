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
    scriptKill,

    -- * Functions
    fcall,
    fcallRo,
    functionLoad,
    functionLoadWith,
    FunctionLoadOptions (functionLoadReplace),
    functionLoadDefaults,
    functionKill,
  )
where

import Data.ByteString (ByteString)
import Data.List.NonEmpty (NonEmpty)
import Redis.Command (Command)
import Redis.Command.Build hiding (keys)
import Redis.Command.Build qualified as Build
import Redis.Decode qualified as Decode
import Redis.Value (Value)

-- | @EVAL script numkeys key … argument …@. Costs what the script costs; since
-- 2.6.0.
--
-- In a cluster it goes to the node of its keys. Without keys it goes to any primary:
-- give it a key, or name the node ('Redis.Command.onNode').
--
-- @since 0.1.0.0
eval :: ByteString -> [ByteString] -> [ByteString] -> Command Value
eval = program "EVAL"

-- | @EVAL_RO …@: as 'eval', for a script that writes nothing, so that it may
-- run on a replica and may be sent again. Since 7.0.0.
--
-- @since 0.1.0.0
evalRo :: ByteString -> [ByteString] -> [ByteString] -> Command Value
evalRo = program "EVAL_RO"

-- | @EVALSHA digest …@: as 'eval', with the SHA-1 digest (40 hexadecimal
-- digits) of a script that the node knows; the error @NOSCRIPT@ if it does
-- not. Since 2.6.0.
--
-- @since 0.1.0.0
evalsha :: ByteString -> [ByteString] -> [ByteString] -> Command Value
evalsha = program "EVALSHA"

-- | @EVALSHA_RO digest …@: 'evalsha' as 'evalRo'. Since 7.0.0.
--
-- @since 0.1.0.0
evalshaRo :: ByteString -> [ByteString] -> [ByteString] -> Command Value
evalshaRo = program "EVALSHA_RO"

-- | @FCALL function numkeys key … argument …@. Since 7.0.0.
--
-- @since 0.1.0.0
fcall :: ByteString -> [ByteString] -> [ByteString] -> Command Value
fcall = program "FCALL"

-- | @FCALL_RO …@: a function that writes nothing. Since 7.0.0.
--
-- @since 0.1.0.0
fcallRo :: ByteString -> [ByteString] -> [ByteString] -> Command Value
fcallRo = program "FCALL_RO"

-- | Its text, digest or name, then its keys and its other arguments.
program :: Name -> ByteString -> [ByteString] -> [ByteString] -> Command Value
program name which keys arguments =
  command name (arg which : int (fromIntegral (length keys)) : Build.keys keys <> args arguments) Decode.value

-- | @SCRIPT LOAD script@: its digest. In a cluster every node learns it.
-- \(O(n)\) on the server in its length, since 2.6.0.
--
-- @since 0.1.0.0
scriptLoad :: ByteString -> Command ByteString
scriptLoad script = command "SCRIPT LOAD" [arg script] Decode.bytes

-- | @SCRIPT EXISTS digest …@: which of them the server knows; in a cluster, which
-- every primary knows. \(O(n)\) on the server, since 2.6.0.
--
-- @since 0.1.0.0
scriptExists :: NonEmpty ByteString -> Command [Bool]
scriptExists digests =
  command "SCRIPT EXISTS" (args digests) (Decode.listOf (length digests) Decode.boolean)

-- | @SCRIPT FLUSH@: forgets all scripts; in a cluster every node does. \(O(n)\)
-- on the server, since 2.6.0.
--
-- @since 0.1.0.0
scriptFlush :: Command ()
scriptFlush = command "SCRIPT FLUSH" [] Decode.okay

-- | @SCRIPT KILL@: ends the script that runs, unless it has written; an error if
-- none does. Does not wait behind it. In a cluster every primary is asked, and one
-- that had a script is enough. \(O(1)\) on the server, since 2.6.0.
-- Replicas are not asked: @onEach AllNodes scriptKill@ ends a script there, too, and
-- tells of each node what it said.
--
-- @since 0.1.0.0
scriptKill :: Command ()
scriptKill = command "SCRIPT KILL" [] Decode.okay

-- | @FUNCTION KILL@: as 'scriptKill', for a function; on primaries only, too. Since
-- 7.0.0.
--
-- @since 0.1.0.0
functionKill :: Command ()
functionKill = command "FUNCTION KILL" [] Decode.okay

-- | @FUNCTION LOAD code@: the name of the library, which must be new. In a
-- cluster every primary learns it. \(O(1)\) on the server, since 7.0.0.
--
-- @since 0.1.0.0
functionLoad :: ByteString -> Command ByteString
functionLoad = functionLoadWith functionLoadDefaults

-- | How to load a library.
--
-- @since 0.1.0.0
newtype FunctionLoadOptions = FunctionLoadOptions
  { -- | REPLACE: a library of that name, which otherwise is an error.
    functionLoadReplace :: Bool
  }
  deriving stock (Eq, Show)

-- | Replaces nothing.
--
-- @since 0.1.0.0
functionLoadDefaults :: FunctionLoadOptions
functionLoadDefaults = FunctionLoadOptions {functionLoadReplace = False}

-- | @FUNCTION LOAD [REPLACE] code@: as 'functionLoad'.
--
-- @since 0.1.0.0
functionLoadWith :: FunctionLoadOptions -> ByteString -> Command ByteString
functionLoadWith FunctionLoadOptions {functionLoadReplace} code =
  command "FUNCTION LOAD" (flag "REPLACE" functionLoadReplace <> [arg code]) Decode.bytes
