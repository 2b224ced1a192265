-- | Scripts: programs that a client sends to the server, or names by their digest when
-- the server knows them. "Redis.Script" does the latter by itself.
--
-- > run client (Redis.eval "return redis.call('INCRBY', KEYS[1], ARGV[1])" ["example:scripts"] ["5"] `decodedBy` Decode.integer)
--
-- Each takes its keys and its other arguments; the keys must share a slot in a
-- cluster. The answer is whatever the program returns: see
-- 'Redis.Command.decodedBy'. A script that fails half-way leaves what it did.
--
-- SCRIPT DEBUG is not among these: it turns its connection into a debugger's. The
-- servers' pages: <https://valkey.io/commands/#scripting>,
-- <https://redis.io/docs/latest/commands/?group=scripting>.
module Redis.Commands.Script
  ( -- * Running
    eval,
    evalRo,
    evalsha,
    evalshaRo,

    -- * What the server knows
    scriptLoad,
    scriptExists,
    scriptShow,
    scriptFlush,
    scriptFlushWith,
    scriptKill,
    scriptHelp,
  )
where

import Data.ByteString (ByteString)
import Data.List.NonEmpty (NonEmpty)
import Redis.Command (Command)
import Redis.Command.Build
import Redis.Commands.Server (FlushOptions, flushDefaults)
import Redis.Decode qualified as Decode
import Redis.Internal.Command.Flush (flushArguments)
import Redis.Internal.Command.Program
import Redis.Value (Value)

-- | @EVAL script numkeys key … argument …@. Costs what the script costs;
-- [since 2.6.0](https://valkey.io/commands/eval/).
--
-- In a cluster it goes to the node of its keys. Without keys it goes to any primary:
-- give it a key, or name the node ('Redis.Command.onNode').
--
-- @since 0.1.0.0
eval :: ByteString -> [ByteString] -> [ByteString] -> Command Value
eval = program "EVAL"

-- | @EVAL_RO …@: as 'eval', for a script that writes nothing, so that it may run on a replica and
-- may be sent again. [Since 7.0.0](https://valkey.io/commands/eval_ro/).
--
-- @since 0.1.0.0
evalRo :: ByteString -> [ByteString] -> [ByteString] -> Command Value
evalRo = program "EVAL_RO"

-- | @EVALSHA digest …@: as 'eval', with the SHA-1 digest (40 hexadecimal digits) of a script that
-- the node knows; the error @NOSCRIPT@ if it does not.
-- [Since 2.6.0](https://valkey.io/commands/evalsha/).
--
-- @since 0.1.0.0
evalsha :: ByteString -> [ByteString] -> [ByteString] -> Command Value
evalsha = program "EVALSHA"

-- | @EVALSHA_RO digest …@: 'evalsha' as 'evalRo'.
-- [Since 7.0.0](https://valkey.io/commands/evalsha_ro/).
--
-- @since 0.1.0.0
evalshaRo :: ByteString -> [ByteString] -> [ByteString] -> Command Value
evalshaRo = program "EVALSHA_RO"

-- | @SCRIPT LOAD script@: its digest. In a cluster every node learns it. \(O(n)\) on the server in
-- its length, [since 2.6.0](https://valkey.io/commands/script-load/).
--
-- @since 0.1.0.0
scriptLoad :: ByteString -> Command ByteString
scriptLoad script = command "SCRIPT LOAD" [arg script] Decode.bytes

-- | @SCRIPT EXISTS digest …@: which of them the server knows; in a cluster, which every primary
-- knows. \(O(n)\) on the server, [since 2.6.0](https://valkey.io/commands/script-exists/).
--
-- @since 0.1.0.0
scriptExists :: NonEmpty ByteString -> Command [Bool]
scriptExists digests =
  command "SCRIPT EXISTS" (args digests) (Decode.listOf (length digests) Decode.boolean)

-- | @SCRIPT FLUSH@: forgets all scripts; in a cluster every node does. \(O(n)\) on the server,
-- [since 2.6.0](https://valkey.io/commands/script-flush/).
--
-- @since 0.1.0.0
scriptFlush :: Command ()
scriptFlush = scriptFlushWith flushDefaults

-- | @SCRIPT FLUSH [SYNC|ASYNC]@: as 'scriptFlush'. The words
-- [since 6.2.0](https://valkey.io/commands/script-flush/).
--
-- @since 0.1.0.0
scriptFlushWith :: FlushOptions -> Command ()
scriptFlushWith options = command "SCRIPT FLUSH" (flushArguments options) Decode.okay

-- | @SCRIPT SHOW digest@: the text of a script that the server knows; the error @NOSCRIPT@ if it
-- does not. One node's own. \(O(1)\) on the server, Valkey
-- [since 8.0.0](https://valkey.io/commands/script-show/).
--
-- @since 0.1.0.0
scriptShow :: ByteString -> Command ByteString
scriptShow digest = command "SCRIPT SHOW" [arg digest] Decode.bytes

-- | @SCRIPT KILL@: ends the script that runs, unless it has written; an error if none does. Does
-- not wait behind it. In a cluster every primary is asked, and one that had a script is enough.
-- \(O(1)\) on the server, [since 2.6.0](https://valkey.io/commands/script-kill/). Replicas are not
-- asked: @onEach AllNodes scriptKill@ ends a script there, too, and tells of each node what it
-- said.
--
-- @since 0.1.0.0
scriptKill :: Command ()
scriptKill = command "SCRIPT KILL" [] Decode.okay

-- | @SCRIPT HELP@: the server's own words, a line each. \(O(1)\) on the server,
-- [since 5.0.0](https://valkey.io/commands/script-help/).
--
-- @since 0.1.0.0
scriptHelp :: Command [ByteString]
scriptHelp = command "SCRIPT HELP" [] (Decode.list Decode.bytes)
