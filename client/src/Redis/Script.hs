-- | Scripts that are sent once and then named by their digests.
--
-- > addTo :: Script
-- > addTo = script "return redis.call('INCRBY', KEYS[1], ARGV[1])"
-- >
-- > total <- run client (evalScript addTo ["counter"] ["5"] `decodedBy` Decode.integer)
--
-- The digest is computed once, when the script is first used. What is sent is EVALSHA.
-- A server that does not know the script (it is new, was restarted, or was told SCRIPT
-- FLUSH) says so and has done nothing; then EVAL goes to it, with the text, which it
-- remembers. Nobody need load anything, and no node of a cluster can be forgotten.
--
-- These are commands like others: they wait, are submitted, go into pipelines, and have
-- their keys, which must share a slot in a cluster. In a pipeline a script that the server
-- does not know runs after the commands behind it, as whatever is sent again does; and
-- each of many calls of it sends the text. 'Redis.Commands.scriptLoad' before them avoids
-- both. What is sent again for another reason, or was run before a node for it was known,
-- has its text with it. In a transaction and on a connection of one's own the text is always
-- sent: the answer would come too late there.
module Redis.Script
  ( Script,
    script,
    scriptText,
    scriptDigest,
    evalScript,
    evalScriptRo,
  )
where

import Data.ByteString (ByteString)
import Redis.Commands.Script (eval, evalRo, evalsha, evalshaRo)
import Redis.Internal.Command (Command (..), commandWords)
import Redis.Internal.Command.Sha1 (sha1Hex)
import Redis.Internal.Protocol.Encode (requestShortened)
import Redis.Value (Value)

-- | The text of a script, and its digest.
--
-- @since 0.1.0.0
data Script = Script
  { -- | As it was given.
    scriptText :: ByteString,
    -- | SHA-1, in 40 hexadecimal digits, for 'Redis.Commands.scriptExists' and its kin.
    scriptDigest :: ByteString
  }
  deriving stock (Eq, Ord, Show)

-- | A script of this text. \(O(n)\), to be done once and kept: at the top level of a
-- module, for instance.
--
-- @since 0.1.0.0
script :: ByteString -> Script
script text = Script {scriptText = text, scriptDigest = sha1Hex text}

-- | @EVALSHA digest numkeys key … argument …@, or @EVAL@ with the text where the server
-- asks for it. Its keys, then its other arguments. Costs what the script costs, and once a
-- further round trip; on servers since 2.6.0.
--
-- @since 0.1.0.0
evalScript :: Script -> [ByteString] -> [ByteString] -> Command Value
evalScript Script {scriptText, scriptDigest} keys arguments =
  evalsha scriptDigest keys arguments `orWhole` eval scriptText keys arguments

-- | @EVALSHA_RO …@: as 'evalScript', for a script that writes nothing, so that it may run
-- on a replica and may be sent again. Since 7.0.0.
--
-- @since 0.1.0.0
evalScriptRo :: Script -> [ByteString] -> [ByteString] -> Command Value
evalScriptRo Script {scriptText, scriptDigest} keys arguments =
  evalshaRo scriptDigest keys arguments `orWhole` evalRo scriptText keys arguments

orWhole :: Command a -> Command a -> Command a
orWhole short whole = short {commandRequest = requestShortened (commandWords short) (commandRequest whole)}
