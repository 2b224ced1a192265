-- | Scripts: programs that a client sends to the server, or names by their digest once the server
-- knows them. "Redis.Script" handles the digests by itself.
--
-- > run client (Redis.eval "return redis.call('INCRBY', KEYS[1], ARGV[1])" ["example:scripts"] ["5"] `decodedBy` Decode.integer)
--
-- The commands that run a script take its keys and its other arguments; in a cluster the keys must
-- share a slot. The result is whatever the script returns: see 'Redis.Command.decodedBy'. If a
-- script fails half-way, its earlier effects stay.
--
-- SCRIPT DEBUG is not in this module: it turns its connection into a debugger's. The servers'
-- documentation: <https://valkey.io/commands/#scripting>,
-- <https://redis.io/docs/latest/commands/?group=scripting>.
module Redis.Commands.Script
  ( -- * Running
    eval,
    evalRo,
    evalsha,
    evalshaRo,

    -- * Managing scripts
    scriptLoad,
    scriptExists,
    scriptShow,
    scriptFlush,
    scriptFlushWith,
    scriptKill,
    scriptHelp,
  )
where

import Redis.Decode qualified as Decode
import Redis.Internal.Command.Common

-- | @EVAL script numkeys key … argument …@: runs a script and returns its result. @EVAL_RO …@ runs
-- one that writes nothing; a replica may run it, and the client may send it again. Costs what the
-- script costs; [since 2.6.0](https://valkey.io/commands/eval/), EVAL_RO
-- [since 7.0.0](https://valkey.io/commands/eval_ro/).
--
-- In a cluster it goes to the node of its keys. Without keys it goes to any primary: give it a key,
-- or name the node ('Redis.Command.onNode').
eval, evalRo :: ByteString -> [ByteString] -> [ByteString] -> Command Value
eval = program "EVAL"
evalRo = program "EVAL_RO"

-- | @EVALSHA digest …@, @EVALSHA_RO digest …@: like 'eval' and 'evalRo', with the SHA-1 digest (40
-- hexadecimal digits) of a script that the node knows; the error @NOSCRIPT@ if it does not know the
-- script. [Since 2.6.0](https://valkey.io/commands/evalsha/), EVALSHA_RO
-- [since 7.0.0](https://valkey.io/commands/evalsha_ro/).
evalsha, evalshaRo :: ByteString -> [ByteString] -> [ByteString] -> Command Value
evalsha = program "EVALSHA"
evalshaRo = program "EVALSHA_RO"

-- | @SCRIPT LOAD script@: stores a script on the server; its digest. In a cluster every node learns
-- it. \(O(n)\) in the length of the script, [since 2.6.0](https://valkey.io/commands/script-load/).
scriptLoad :: ByteString -> Command ByteString
scriptLoad script = command "SCRIPT LOAD" [arg script] Decode.bytes

-- | @SCRIPT EXISTS digest …@: for each digest, in order, whether the server knows the script;
-- in a cluster, whether every primary does. \(O(n)\), [since 2.6.0](https://valkey.io/commands/script-exists/).
scriptExists :: NonEmpty ByteString -> Command [Bool]
scriptExists digests =
  command "SCRIPT EXISTS" (args digests) (Decode.listOf (length digests) Decode.boolean)

-- | @SCRIPT FLUSH@: makes the server forget all scripts; in a cluster, every node. \(O(n)\),
-- [since 2.6.0](https://valkey.io/commands/script-flush/).
scriptFlush :: Command ()
scriptFlush = scriptFlushWith flushDefaults

-- | @SCRIPT FLUSH [SYNC|ASYNC]@: like 'scriptFlush', with options. SYNC and ASYNC exist
-- [since 6.2.0](https://valkey.io/commands/script-flush/).
scriptFlushWith :: FlushOptions -> Command ()
scriptFlushWith options = command "SCRIPT FLUSH" (flushArguments options) Decode.okay

-- | @SCRIPT SHOW digest@: the text of a script that the server knows; the error @NOSCRIPT@ if it
-- does not know the script. Concerns one node; in a cluster, name it. \(O(1)\), Valkey
-- [since 8.0.0](https://valkey.io/commands/script-show/).
scriptShow :: ByteString -> Command ByteString
scriptShow digest = command "SCRIPT SHOW" [arg digest] Decode.bytes

-- | @SCRIPT KILL@: ends the script that runs, unless the script has written; an error if no script
-- runs. The command does not queue behind the script. In a cluster it goes to every primary, and
-- succeeds if one of them had a script to end. \(O(1)\),
-- [since 2.6.0](https://valkey.io/commands/script-kill/). It does not go to replicas. To end
-- scripts there, too, use @onEach AllNodes scriptKill@, which returns the result of each node.
scriptKill :: Command ()
scriptKill = command "SCRIPT KILL" [] Decode.okay

-- | @SCRIPT HELP@: the server's help. \(O(1)\), [since 5.0.0](https://valkey.io/commands/script-help/).
scriptHelp :: Command [ByteString]
scriptHelp = command "SCRIPT HELP" [] (Decode.list Decode.bytes)
