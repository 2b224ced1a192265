-- | HyperLogLogs: estimates of how many different elements were added, in at most 12 kB whatever
-- their number. The error is 0.81 % on average.
--
-- > run client (Redis.pfadd "example:{hyperloglogs}:may" ["ada", "grace", "ada"])
-- > run client (Redis.pfcount ("example:{hyperloglogs}:may" :| []))
--
-- For all other commands, such a key holds a string.
--
-- The server's documentation: <https://valkey.io/commands/#hyperloglog>.
module Redis.Commands.HyperLogLog
  ( pfadd,
    pfcount,
    pfmerge,

    -- * For developers of the server
    pfdebugEncoding,
    HyperLogLogEncoding (..),
    pfdebugDecode,
    pfdebugGetreg,
    pfdebugTodense,
    pfselftest,
  )
where

import Redis.Decode qualified as Decode
import Redis.Internal.Command.Common

-- | @PFADD key element …@: adds the elements; whether the estimate may have changed. Without
-- elements it creates an empty HyperLogLog if there is no such key. \(O(1)\) per element,
-- [since 2.8.9](https://valkey.io/commands/pfadd/).
pfadd :: ByteString -> [ByteString] -> Command Bool
pfadd name elements = command "PFADD" (key name : args elements) Decode.boolean

-- | @PFCOUNT key …@: the estimated number of different elements in all keys together; a missing key
-- has none. In a cluster the keys must share a slot. \(O(1)\) for one key, \(O(n)\) with a large
-- constant for several; [since 2.8.9](https://valkey.io/commands/pfcount/).
pfcount :: NonEmpty ByteString -> Command Int64
pfcount names = command "PFCOUNT" (keys names) Decode.integer

-- | @PFMERGE destination source …@: adds the elements of the sources to the destination, which
-- keeps its own. In a cluster all keys must share a slot. \(O(n)\) in the number of keys, with a
-- large constant, [since 2.8.9](https://valkey.io/commands/pfmerge/).
pfmerge :: ByteString -> [ByteString] -> Command ()
pfmerge destination sources = command "PFMERGE" (key destination : keys sources) Decode.okay

-- | How the server stores a HyperLogLog.
data HyperLogLogEncoding
  = -- | Compact, while there are few elements.
    SparseEncoding
  | -- | A fixed 12 kB.
    DenseEncoding
  | -- | Another encoding, by the server's name for it.
    OtherHyperLogLogEncoding ByteString
  deriving stock (Eq, Show)

-- | @PFDEBUG ENCODING key@: how it is stored. An error if there is no such key. \(O(1)\),
-- [since 2.8.9](https://valkey.io/commands/pfdebug/). PFDEBUG is a command for administrators.
pfdebugEncoding :: ByteString -> Command HyperLogLogEncoding
pfdebugEncoding name =
  pfdebug "ENCODING" name (wordOr OtherHyperLogLogEncoding [("sparse", SparseEncoding), ("dense", DenseEncoding)])

-- | @PFDEBUG DECODE key@: the sparse encoding as readable text. An error if the encoding is dense.
-- [Since 2.8.9](https://valkey.io/commands/pfdebug/).
pfdebugDecode :: ByteString -> Command ByteString
pfdebugDecode name = pfdebug "DECODE" name Decode.bytes

-- | @PFDEBUG GETREG key@: the 16384 registers. Converts the key to the dense encoding. Since 2.8.9.
pfdebugGetreg :: ByteString -> Command [Int64]
pfdebugGetreg name = pfdebug "GETREG" name (Decode.list Decode.integer)

-- | @PFDEBUG TODENSE key@: converts the key to the dense encoding; 'False' if it was dense already.
-- [Since 2.8.9](https://valkey.io/commands/pfdebug/).
pfdebugTodense :: ByteString -> Command Bool
pfdebugTodense name = pfdebug "TODENSE" name Decode.boolean

pfdebug :: ByteString -> ByteString -> Decoder a -> Command a
pfdebug what name = command "PFDEBUG" [arg what, key name]

-- | @PFSELFTEST@: makes the server test its implementation of HyperLogLogs; an error if the test
-- fails. It takes a while, and the server serves nobody else meanwhile. Concerns one node; in a
-- cluster, name it. [Since 2.8.9](https://valkey.io/commands/pfselftest/).
pfselftest :: Command ()
pfselftest = command "PFSELFTEST" [] Decode.okay
