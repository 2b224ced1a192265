-- | The stream of operations that all peers send: @compare/PROTOCOL.md@.
module Stream
  ( Load (..),
    newLoad,
    Operation (..),
    Stream,
    newStream,
    draw,
    streamCheck,
  )
where

import Data.Bits (shiftR, xor, (.&.))
import Data.ByteString (ByteString)
import Data.ByteString qualified as ByteString
import Data.ByteString.Char8 qualified as Char8
import Data.ByteString.Unsafe qualified as Unsafe
import Data.Primitive.ByteArray (MutableByteArray, newByteArray, readByteArray, writeByteArray)
import Data.Word (Word64)
import GHC.Exts (RealWorld)
import Options (Options (..))

-- | Keys and values, made before the clock starts.
data Load = Load
  { -- | All keys, one after the other.
    loadNames :: ByteString,
    loadBlock :: ByteString,
    loadOptions :: Options
  }

-- | Makes keys and values.
newLoad :: Options -> Load
newLoad options =
  Load
    { loadNames = ByteString.concat (map name [0 .. optionsKeys options - 1]),
      loadBlock = fst (ByteString.unfoldrN (4096 + optionsValueSize options) (\state -> Just (letter state, state + gamma)) 1),
      loadOptions = options
    }
  where
    name number =
      let digits = Char8.pack (show number)
          prefix = if optionsMisses options then "mis:" else "key:"
       in prefix <> Char8.replicate (optionsKeySize options - 4 - ByteString.length digits) '0' <> digits
    letter state = 97 + fromIntegral (((mix state `shiftR` 32) * 26) `shiftR` 32)

-- | A command; the value is the one to store, or the one that the reply must have.
data Operation
  = Get ByteString ByteString
  | Set ByteString ByteString

-- | The state of one caller's stream.
newtype Stream = Stream (MutableByteArray RealWorld)

-- | The stream of the caller with this number.
newStream :: Load -> Int -> IO Stream
newStream load caller = do
  state <- newByteArray 8
  writeByteArray state 0 (firstState (optionsSeed (loadOptions load)) caller)
  pure (Stream state)

firstState :: Word64 -> Int -> Word64
firstState seed caller = mix (seed + mix (fromIntegral caller + 1))

-- | The caller's next operation.
draw :: Load -> Stream -> IO Operation
draw Load {loadNames, loadBlock, loadOptions} (Stream array) = do
  old <- readByteArray array 0
  let state = old + gamma
      word = mix state
      number = ((word `shiftR` 32) * fromIntegral (optionsKeys loadOptions)) `shiftR` 32
      size = optionsKeySize loadOptions
      key = Unsafe.unsafeTake size (Unsafe.unsafeDrop (fromIntegral number * size) loadNames)
      offset = fromIntegral (mix number .&. 4095)
      value = Unsafe.unsafeTake (optionsValueSize loadOptions) (Unsafe.unsafeDrop offset loadBlock)
  writeByteArray array 0 state
  pure (if (word .&. 0xffffffff) < optionsSetBelow loadOptions then Set key value else Get key value)

-- | The sum of the first thousand words of caller 0.
streamCheck :: Word64 -> Word64
streamCheck seed = sum (map mix (take 1000 (drop 1 (iterate (+ gamma) (firstState seed 0)))))

gamma :: Word64
gamma = 0x9e3779b97f4a7c15

mix :: Word64 -> Word64
mix z0 = z2 `xor` (z2 `shiftR` 31)
  where
    z1 = (z0 `xor` (z0 `shiftR` 30)) * 0xbf58476d1ce4e5b9
    z2 = (z1 `xor` (z1 `shiftR` 27)) * 0x94d049bb133111eb
