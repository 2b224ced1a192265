-- | Scripts that are sent to a server once, and then named by their digests.
--
-- > addTo :: Script
-- > addTo = script "return redis.call('INCRBY', KEYS[1], ARGV[1])"
-- >
-- > total <- run client (evalScript addTo ["counter"] ["5"] `decodedBy` Decode.integer)
--
-- The client computes the digest once, when the script is first used, and sends EVALSHA. A server
-- that does not know the script (it is new, was restarted, or ran SCRIPT FLUSH) says so and has done
-- nothing; then the client sends EVAL with the text, which the server remembers.
--
-- Calls of scripts can be run, submitted and pipelined, and have keys, which must share a slot in a
-- cluster. In a pipeline a script that the server does not know runs after the commands behind it, like
-- every command that is sent again; and if there are many calls of it, each sends the text. Running
-- 'Redis.Commands.scriptLoad' first avoids both. A call that is sent again for another reason, or that was
-- run before a node for it was known, carries the text. In a transaction and on a dedicated connection the
-- client always sends the text: there the server's answer would come too late.
module Redis.Script
  ( Script,
    script,
    scriptText,
    scriptDigest,
    evalScript,
    evalScriptRo,
  )
where

import Crypto.Hash.SHA1 qualified as Sha1
import Data.ByteString (ByteString)
import Data.ByteString.Builder qualified as Builder
import Data.ByteString.Lazy qualified as Lazy
import Redis.Commands.Script (eval, evalRo, evalsha, evalshaRo)
import Redis.Internal.Command (Command (..), commandArguments, routeOf)
import Redis.Internal.Protocol.Encode (requestShortened)
import Redis.Value (Value)

-- | The text of a script, and its digest.
data Script = Script
  { -- | The text, as it was given.
    scriptText :: ByteString,
    -- | SHA-1, in 40 hexadecimal digits, for 'Redis.Commands.scriptExists' and its kin.
    scriptDigest :: ByteString
  }
  deriving stock (Eq, Ord, Show)

-- | A script with this text. The digest costs \(O(n)\), so make a script once and keep it: at the
-- top level of a module, for instance.
script :: ByteString -> Script
script text = Script {scriptText = text, scriptDigest = hexadecimal (Sha1.hash text)}
  where
    hexadecimal = Lazy.toStrict . Builder.toLazyByteString . Builder.byteStringHex

-- | @EVALSHA digest numkeys key … argument …@, or @EVAL@ with the text if the server does not know
-- the digest. Takes the keys, then the other arguments. Costs what the script costs, and one more
-- round trip while the server does not know it; on servers since 2.6.0.
evalScript :: Script -> [ByteString] -> [ByteString] -> Command Value
evalScript Script {scriptText, scriptDigest} keys arguments =
  evalsha scriptDigest keys arguments `orWhole` eval scriptText keys arguments

-- | @EVALSHA_RO …@: like 'evalScript', for a script that writes nothing. So it may run on a replica,
-- and may be sent again. Since 7.0.0.
evalScriptRo :: Script -> [ByteString] -> [ByteString] -> Command Value
evalScriptRo Script {scriptText, scriptDigest} keys arguments =
  evalshaRo scriptDigest keys arguments `orWhole` evalRo scriptText keys arguments

orWhole :: Command a -> Command a -> Command a
orWhole short whole = short {commandRoute = routeOf short, commandRequest = requestShortened (commandArguments short) (commandRequest whole)}
