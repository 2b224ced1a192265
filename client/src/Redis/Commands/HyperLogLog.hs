-- | HyperLogLogs: how many different elements there were, roughly, in 12 kB at most
-- however many they are. The error is 0.81 % on average.
--
-- > run client (Redis.pfadd "example:{hyperloglogs}:may" ["ada", "grace", "ada"])
-- > run client (Redis.pfcount ("example:{hyperloglogs}:may" :| []))
--
-- To all other commands such a key holds a string.
--
-- What the server says of them: <https://valkey.io/commands/#hyperloglog>.
module Redis.Commands.HyperLogLog
  ( pfadd,
    pfcount,
    pfmerge,

    -- * For those who work on the server
    pfdebugEncoding,
    HyperLogLogEncoding (..),
    pfdebugDecode,
    pfdebugGetreg,
    pfdebugTodense,
    pfselftest,
  )
where

import Data.ByteString (ByteString)
import Data.Int (Int64)
import Data.List.NonEmpty (NonEmpty)
import Redis.Command (Command)
import Redis.Command.Build
import Redis.Decode (Decoder)
import Redis.Decode qualified as Decode

-- | @PFADD key element …@: whether that changed anything, which is if the estimate may be another
-- one now. Without elements it makes an empty HyperLogLog where there is none. \(O(1)\) per element
-- on the server, [since 2.8.9](https://valkey.io/commands/pfadd/).
--
-- @since 0.1.0.0
pfadd :: ByteString -> [ByteString] -> Command Bool
pfadd name elements = command "PFADD" (key name : args elements) Decode.boolean

-- | @PFCOUNT key …@: roughly how many different elements they have together; a missing key has
-- none. In a cluster the keys must share a slot. \(O(1)\) on the server for one key, \(O(n)\) with
-- a large constant for several; [since 2.8.9](https://valkey.io/commands/pfcount/).
--
-- @since 0.1.0.0
pfcount :: NonEmpty ByteString -> Command Int64
pfcount names = command "PFCOUNT" (keys names) Decode.integer

-- | @PFMERGE destination source …@: gives the destination what the sources have, on top of what it
-- has itself. In a cluster all must share a slot. \(O(n)\) on the server in keys, with a large
-- constant, [since 2.8.9](https://valkey.io/commands/pfmerge/).
--
-- @since 0.1.0.0
pfmerge :: ByteString -> [ByteString] -> Command ()
pfmerge destination sources = command "PFMERGE" (key destination : keys sources) Decode.okay

-- | How a HyperLogLog is stored.
--
-- @since 0.1.0.0
data HyperLogLogEncoding
  = -- | In few bytes, while it has few elements.
    SparseEncoding
  | -- | In 12 kB.
    DenseEncoding
  | -- | By the server's word.
    OtherHyperLogLogEncoding ByteString
  deriving stock (Eq, Show)

-- | @PFDEBUG ENCODING key@: how it is stored. An error if there is no such key. \(O(1)\) on the
-- server, [since 2.8.9](https://valkey.io/commands/pfdebug/); an administrator's command, as all of
-- PFDEBUG.
--
-- @since 0.1.0.0
pfdebugEncoding :: ByteString -> Command HyperLogLogEncoding
pfdebugEncoding name = pfdebug "ENCODING" name $ \reply -> do
  word <- Decode.bytes reply
  pure $ case word of
    "sparse" -> SparseEncoding
    "dense" -> DenseEncoding
    other -> OtherHyperLogLogEncoding other

-- | @PFDEBUG DECODE key@: the sparse encoding as text for people. An error if it is dense.
-- [Since 2.8.9](https://valkey.io/commands/pfdebug/).
--
-- @since 0.1.0.0
pfdebugDecode :: ByteString -> Command ByteString
pfdebugDecode name = pfdebug "DECODE" name Decode.bytes

-- | @PFDEBUG GETREG key@: its 16384 registers. It is dense afterwards.
-- [Since 2.8.9](https://valkey.io/commands/pfdebug/).
--
-- @since 0.1.0.0
pfdebugGetreg :: ByteString -> Command [Int64]
pfdebugGetreg name = pfdebug "GETREG" name (Decode.list Decode.integer)

-- | @PFDEBUG TODENSE key@: makes it dense; whether it was not.
-- [Since 2.8.9](https://valkey.io/commands/pfdebug/).
--
-- @since 0.1.0.0
pfdebugTodense :: ByteString -> Command Bool
pfdebugTodense name = pfdebug "TODENSE" name Decode.boolean

pfdebug :: ByteString -> ByteString -> Decoder a -> Command a
pfdebug what name = command "PFDEBUG" [arg what, key name]

-- | @PFSELFTEST@: lets the server test its HyperLogLogs; an error if they are wrong. It takes a
-- while, and nobody is served meanwhile. One node's own: in a cluster a node must be named.
-- [Since 2.8.9](https://valkey.io/commands/pfselftest/).
--
-- @since 0.1.0.0
pfselftest :: Command ()
pfselftest = command "PFSELFTEST" [] Decode.okay
