-- | Vector sets: elements with a vector each, such as the embedding of a text, and searches for the
-- elements whose vectors are most similar.
--
-- > run client (Redis.vadd "example:vectors" "apple" (Redis.embeddingOf [1, 0.2, 0]))
-- > near <- run client (Redis.vsimWithscores "example:vectors" (Redis.VsimElement "apple"))
--
-- All vectors of a set have the same dimension. Two vectors are similar if they point in the same
-- direction: a score of 1 is the same direction, 0.5 a right angle, 0 the opposite direction. A search looks at a part of the
-- set and may miss elements; 'vsimEf' and 'vsimTruth' make it more exact, and slower.
--
-- Redis has these commands since 8.0.0, and some of them later; Valkey lacks them. The server's page:
-- <https://redis.io/docs/latest/develop/data-types/vector-sets/>.
module Redis.Commands.VectorSet
  ( -- * Vectors
    Embedding (..),
    embeddingOf,

    -- * Adding and removing
    vadd,
    vaddWith,
    VaddOptions (vaddReduce, vaddCas, vaddQuantisation, vaddEf, vaddSetattr, vaddM),
    vaddDefaults,
    Quantisation (..),
    vrem,

    -- * Searching
    vsim,
    vsimWith,
    vsimWithscores,
    vsimWithscoresWith,
    vsimWithattribs,
    vsimWithattribsWith,
    VsimQuery (..),
    VsimOptions (vsimCount, vsimEpsilon, vsimEf, vsimFilter, vsimFilterEf, vsimTruth, vsimNothread),
    vsimDefaults,
    VsimMatch (..),

    -- * One element
    vemb,
    vembRaw,
    RawEmbedding (..),
    vgetattr,
    vsetattr,
    vismember,
    vlinks,
    vlinksWithscores,

    -- * The whole set
    vcard,
    vdim,
    vinfo,
    VectorSetInfo (..),
    vrandmember,
    vrandmemberCount,
    Draw (..),
    vrange,
    vrangeWith,
    VrangeOptions (vrangeCount),
    vrangeDefaults,
    LexBound (..),
  )
where

import Control.Monad (mfilter)
import Data.ByteString.Internal qualified as ByteString.Internal
import Data.Primitive.PrimArray (PrimArray, foldrPrimArray, indexPrimArray, primArrayFromList, sizeofPrimArray)
import Data.Word (Word32, byteSwap32)
import Foreign.Ptr (castPtr)
import Foreign.Storable (pokeElemOff)
import GHC.ByteOrder (ByteOrder (..), targetByteOrder)
import GHC.Float (castFloatToWord32, double2Float)
import Redis.Decode qualified as Decode
import Redis.Internal.Command.Common
import Redis.Value (Value (Map), withoutAttributes)

-- | A vector.
data Embedding
  = -- | FP32: numbers of 32 bits, in the byte order of the server's machine, which is little-endian
    -- wherever Redis runs today.
    EmbeddingBytes ByteString
  | -- | FP32: the same, from an unboxed array. It is copied once.
    EmbeddingFloats (PrimArray Float)
  | -- | VALUES: numbers in decimal digits, which are more to send and to read. With a NaN, the command
    -- is refused before it is sent.
    EmbeddingNumbers (PrimArray Double)
  deriving stock (Eq, Show)

-- | A vector of numbers in a list.
embeddingOf :: [Float] -> Embedding
embeddingOf = EmbeddingFloats . primArrayFromList

embedding :: Embedding -> [Argument]
embedding = \case
  EmbeddingBytes packed -> [arg "FP32", arg packed]
  EmbeddingFloats floats -> [arg "FP32", arg (packedFloats floats)]
  EmbeddingNumbers numbers ->
    arg "VALUES" : int (fromIntegral (sizeofPrimArray numbers)) : foldrPrimArray (\number rest -> double number : rest) [] numbers

packedFloats :: PrimArray Float -> ByteString
packedFloats floats = ByteString.Internal.unsafeCreate (4 * count) (from 0)
  where
    count = sizeofPrimArray floats
    from index at
      | index == count = pure ()
      | otherwise = do
        pokeElemOff (castPtr at) index (littleEndian (castFloatToWord32 (indexPrimArray floats index)))
        from (index + 1) at

littleEndian :: Word32 -> Word32
littleEndian = case targetByteOrder of
  LittleEndian -> id
  BigEndian -> byteSwap32

-- | @VADD key FP32|VALUES … element@: adds an element, or changes its vector; returns whether the
-- element is new. The first vector decides the dimension of the set. \(O(\log n)\) in the number of
-- elements, [since Redis 8.0.0](https://redis.io/docs/latest/commands/vadd/).
vadd :: ByteString -> ByteString -> Embedding -> Command Bool
vadd = vaddWith vaddDefaults

-- | The options of 'vaddWith'. An element that is added later must have the same 'vaddReduce',
-- 'vaddQuantisation' and 'vaddM' as the first.
data VaddOptions = VaddOptions
  { -- | REDUCE: the server projects the vector to this dimension, by chance but always in the same way.
    vaddReduce :: Maybe Int64,
    -- | CAS: the server looks for the neighbours in a thread of its own, so that others wait less.
    vaddCas :: Bool,
    -- | How the server keeps the numbers; 'Nothing' means 'QuantisationQ8'.
    vaddQuantisation :: Maybe Quantisation,
    -- | EF: how many candidates the server looks at for the neighbours; 'Nothing' means 200.
    vaddEf :: Maybe Int64,
    -- | SETATTR: the attributes, a JSON object.
    vaddSetattr :: Maybe ByteString,
    -- | M: the number of neighbours to which an element is linked; 'Nothing' means 16.
    vaddM :: Maybe Int64
  }
  deriving stock (Eq, Show)

-- | No options: the server's defaults.
vaddDefaults :: VaddOptions
vaddDefaults =
  VaddOptions
    { vaddReduce = Nothing,
      vaddCas = False,
      vaddQuantisation = Nothing,
      vaddEf = Nothing,
      vaddSetattr = Nothing,
      vaddM = Nothing
    }

-- | How exactly a server keeps the numbers of a vector.
data Quantisation
  = -- | NOQUANT: all 32 bits.
    QuantisationNone
  | -- | Q8: 8 bits, with a scale for each vector.
    QuantisationQ8
  | -- | BIN: one bit, the sign.
    QuantisationBin
  deriving stock (Eq, Show)

-- | @VADD key [REDUCE n] FP32|VALUES … element [CAS] [NOQUANT|Q8|BIN] [EF n] [SETATTR json] [M n]@:
-- like 'vadd', with options.
vaddWith :: VaddOptions -> ByteString -> ByteString -> Embedding -> Command Bool
vaddWith VaddOptions {vaddReduce, vaddCas, vaddQuantisation, vaddEf, vaddSetattr, vaddM} name element given =
  command
    "VADD"
    ( (key name : option "REDUCE" int vaddReduce)
        <> embedding given
        <> (arg element : flag "CAS" vaddCas)
        <> maybe [] (pure . quantisation) vaddQuantisation
        <> option "EF" int vaddEf
        <> option "SETATTR" arg vaddSetattr
        <> option "M" int vaddM
    )
    Decode.boolean
  where
    quantisation = \case
      QuantisationNone -> arg "NOQUANT"
      QuantisationQ8 -> arg "Q8"
      QuantisationBin -> arg "BIN"

-- | @VREM key element@: removes an element; returns whether it was there. \(O(\log n)\),
-- [since Redis 8.0.0](https://redis.io/docs/latest/commands/vrem/).
vrem :: ByteString -> ByteString -> Command Bool
vrem name element = command "VREM" [key name, arg element] Decode.boolean

-- | That to which elements shall be similar.
data VsimQuery
  = -- | ELE: the vector of an element of the set, which is itself the first that is found. An error
    -- if the set lacks it.
    VsimElement ByteString
  | VsimVector Embedding
  deriving stock (Eq, Show)

-- | @VSIM key ELE|FP32|VALUES …@: the ten elements that are most similar, the best first; none if
-- there is no set. \(O(\log n)\) in the number of elements,
-- [since Redis 8.0.0](https://redis.io/docs/latest/commands/vsim/).
vsim :: ByteString -> VsimQuery -> Command [ByteString]
vsim = vsimWith vsimDefaults

-- | The options of a search.
data VsimOptions = VsimOptions
  { -- | COUNT: at most this many elements; 'Nothing' means 10.
    vsimCount :: Maybe Int64,
    -- | EPSILON: only elements whose score is at least 1 minus this.
    vsimEpsilon :: Maybe Double,
    -- | EF: how many candidates the server looks at; 'Nothing' means 100, or the count if that is more.
    vsimEf :: Maybe Int64,
    -- | FILTER: a condition on the attributes, such as @.year > 2000@. Elements without attributes do
    -- not fulfil it.
    vsimFilter :: Maybe ByteString,
    -- | FILTER-EF: how many candidates the server looks at for those that pass the filter; at least 1.
    vsimFilterEf :: Maybe Int64,
    -- | TRUTH: the server looks at all elements, in \(O(n)\).
    vsimTruth :: Bool,
    -- | NOTHREAD: the server searches in its main thread, and others wait. For short searches.
    vsimNothread :: Bool
  }
  deriving stock (Eq, Show)

-- | No options: the server's defaults.
vsimDefaults :: VsimOptions
vsimDefaults =
  VsimOptions
    { vsimCount = Nothing,
      vsimEpsilon = Nothing,
      vsimEf = Nothing,
      vsimFilter = Nothing,
      vsimFilterEf = Nothing,
      vsimTruth = False,
      vsimNothread = False
    }

-- | @VSIM key ELE|FP32|VALUES … [COUNT n] [EPSILON e] [EF n] [FILTER condition] [FILTER-EF n] [TRUTH] [NOTHREAD]@:
-- like 'vsim', with options.
vsimWith :: VsimOptions -> ByteString -> VsimQuery -> Command [ByteString]
vsimWith options name query = command "VSIM" (search name query [] options) (Decode.list Decode.bytes)

-- | @VSIM key ELE|FP32|VALUES … WITHSCORES@: like 'vsim', each element with its score, between 0 and 1.
vsimWithscores :: ByteString -> VsimQuery -> Command [(ByteString, Double)]
vsimWithscores = vsimWithscoresWith vsimDefaults

-- | Like 'vsimWithscores', with options.
vsimWithscoresWith :: VsimOptions -> ByteString -> VsimQuery -> Command [(ByteString, Double)]
vsimWithscoresWith options name query = command "VSIM" (search name query ["WITHSCORES"] options) Decode.scored

-- | An element that a search has found.
data VsimMatch = VsimMatch
  { vsimMatchElement :: ByteString,
    vsimMatchScore :: Double,
    -- | JSON, if the element has attributes.
    vsimMatchAttributes :: Maybe ByteString
  }
  deriving stock (Eq, Show)

-- | @VSIM key ELE|FP32|VALUES … WITHSCORES WITHATTRIBS@: like 'vsim', each element with its score and
-- its attributes. [Since Redis 8.2.0](https://redis.io/docs/latest/commands/vsim/).
vsimWithattribs :: ByteString -> VsimQuery -> Command [VsimMatch]
vsimWithattribs = vsimWithattribsWith vsimDefaults

-- | Like 'vsimWithattribs', with options.
vsimWithattribsWith :: VsimOptions -> ByteString -> VsimQuery -> Command [VsimMatch]
vsimWithattribsWith options name query =
  command "VSIM" (search name query ["WITHSCORES", "WITHATTRIBS"] options) $ \reply -> case withoutAttributes reply of
    -- So with RESP3.
    found@(Map _) -> map nested <$> Decode.pairs Decode.bytes (Decode.pair Decode.double attributes) found
    found -> Decode.list Decode.value found >>= inThrees found
  where
    attributes = Decode.nullable Decode.bytes
    nested (element, (score, json)) = VsimMatch element score json
    inThrees whole = \case
      [] -> Right []
      element : score : json : rest ->
        (:) <$> (VsimMatch <$> Decode.bytes element <*> Decode.double score <*> attributes json) <*> inThrees whole rest
      _ -> Decode.mismatch "elements, each with its score and its attributes" whole

search :: ByteString -> VsimQuery -> [ByteString] -> VsimOptions -> [Argument]
search name query with VsimOptions {vsimCount, vsimEpsilon, vsimEf, vsimFilter, vsimFilterEf, vsimTruth, vsimNothread} =
  (key name : like)
    <> args with
    <> option "COUNT" int vsimCount
    <> option "EPSILON" double vsimEpsilon
    <> option "EF" int vsimEf
    <> option "FILTER" arg vsimFilter
    <> option "FILTER-EF" int vsimFilterEf
    <> flag "TRUTH" vsimTruth
    <> flag "NOTHREAD" vsimNothread
  where
    like = case query of
      VsimElement element -> [arg "ELE", arg element]
      VsimVector given -> embedding given

-- | @VEMB key element@: the vector of an element, as exactly as the server keeps it; 'Nothing' if
-- there is no such element. \(O(d)\) in the dimension,
-- [since Redis 8.0.0](https://redis.io/docs/latest/commands/vemb/).
vemb :: ByteString -> ByteString -> Command (Maybe (PrimArray Float))
vemb name element =
  command "VEMB" [key name, arg element] . Decode.nullable $
    fmap primArrayFromList . Decode.list (fmap double2Float . Decode.double)

-- | A vector as the server keeps it.
data RawEmbedding = RawEmbedding
  { -- | @f32@, @int8@ or @bin@.
    rawEmbeddingType :: ByteString,
    -- | The numbers, of length 1, in the type's form.
    rawEmbeddingBytes :: ByteString,
    -- | The length of the vector that was added.
    rawEmbeddingNorm :: Double,
    -- | For @int8@: the number that 127 stands for.
    rawEmbeddingRange :: Maybe Double
  }
  deriving stock (Eq, Show)

-- | @VEMB key element RAW@: the vector of an element in the server's own form; 'Nothing' if there is
-- no such element.
vembRaw :: ByteString -> ByteString -> Command (Maybe RawEmbedding)
vembRaw name element = command "VEMB" [key name, arg element, arg "RAW"] . Decode.nullable $ \reply -> do
  elements <- Decode.list Decode.value reply
  RawEmbedding
    <$> Decode.element 0 Decode.bytes elements
    <*> Decode.element 1 Decode.bytes elements
    <*> Decode.element 2 Decode.double elements
    <*> Decode.optionalElement 3 Decode.double elements

-- | @VGETATTR key element@: the attributes of an element, as JSON; 'Nothing' if it has none, or is
-- not there. \(O(1)\), [since Redis 8.0.0](https://redis.io/docs/latest/commands/vgetattr/).
vgetattr :: ByteString -> ByteString -> Command (Maybe ByteString)
vgetattr name element = command "VGETATTR" [key name, arg element] (Decode.nullable Decode.bytes)

-- | @VSETATTR key element json@: sets the attributes of an element, a JSON object; empty removes
-- them. Returns whether there is such an element. \(O(1)\),
-- [since Redis 8.0.0](https://redis.io/docs/latest/commands/vsetattr/).
vsetattr :: ByteString -> ByteString -> ByteString -> Command Bool
vsetattr name element json = command "VSETATTR" [key name, arg element, arg json] Decode.boolean

-- | @VISMEMBER key element@: whether the set has the element. \(O(1)\),
-- [since Redis 8.0.0](https://redis.io/docs/latest/commands/vismember/).
vismember :: ByteString -> ByteString -> Command Bool
vismember name element = command "VISMEMBER" [key name, arg element] Decode.boolean

-- | @VLINKS key element@: the neighbours of an element in each layer of the set's graph, the
-- highest layer first; 'Nothing' if there is no such element. \(O(1)\),
-- [since Redis 8.0.0](https://redis.io/docs/latest/commands/vlinks/).
vlinks :: ByteString -> ByteString -> Command (Maybe [[ByteString]])
vlinks name element = command "VLINKS" [key name, arg element] (Decode.nullable (Decode.list (Decode.list Decode.bytes)))

-- | @VLINKS key element WITHSCORES@: like 'vlinks', each neighbour with its score.
vlinksWithscores :: ByteString -> ByteString -> Command (Maybe [[(ByteString, Double)]])
vlinksWithscores name element =
  command "VLINKS" [key name, arg element, arg "WITHSCORES"] (Decode.nullable (Decode.list Decode.scored))

-- | @VCARD key@: the number of elements; 0 if there is no set. @VDIM key@: the dimension of the
-- vectors that the set keeps; an error if there is no set. \(O(1)\), since Redis 8.0.0
-- ([VCARD](https://redis.io/docs/latest/commands/vcard/),
-- [VDIM](https://redis.io/docs/latest/commands/vdim/)).
vcard, vdim :: ByteString -> Command Int64
vcard name = command "VCARD" [key name] Decode.integer
vdim name = command "VDIM" [key name] Decode.integer

-- | A description of a vector set.
data VectorSetInfo = VectorSetInfo
  { -- | @f32@, @int8@ or @bin@.
    vectorSetInfoQuantType :: ByteString,
    -- | The number of neighbours of an element.
    vectorSetInfoHnswM :: Int64,
    -- | The dimension of the vectors that the set keeps.
    vectorSetInfoVectorDim :: Int64,
    -- | The dimension of the vectors that are added, if the server projects them.
    vectorSetInfoProjectionInputDim :: Maybe Int64,
    -- | The number of elements.
    vectorSetInfoSize :: Int64,
    -- | The highest layer of the graph.
    vectorSetInfoMaxLevel :: Int64,
    -- | The number of elements that have attributes.
    vectorSetInfoAttributesCount :: Int64,
    vectorSetInfoOthers :: [(ByteString, Value)]
  }
  deriving stock (Eq, Show)

-- | @VINFO key@: a description of the set; 'Nothing' if there is none. \(O(1)\),
-- [since Redis 8.0.0](https://redis.io/docs/latest/commands/vinfo/).
vinfo :: ByteString -> Command (Maybe VectorSetInfo)
vinfo name =
  command "VINFO" [key name] . Decode.nullable . recordOf $
    VectorSetInfo
      <$> field "quant-type" Decode.bytes
      <*> field "hnsw-m" Decode.integer
      <*> field "vector-dim" Decode.integer
      -- A server says 0 if it does not project.
      <*> field "projection-input-dim" (fmap (mfilter (/= 0) . Just) . Decode.integer)
      <*> field "size" Decode.integer
      <*> field "max-level" Decode.integer
      <*> field "attributes-count" Decode.integer
      <*> others Decode.value

-- | @VRANDMEMBER key@: an element by chance; 'Nothing' if there is no set. \(O(\log n)\),
-- [since Redis 8.0.0](https://redis.io/docs/latest/commands/vrandmember/).
vrandmember :: ByteString -> Command (Maybe ByteString)
vrandmember name = command "VRANDMEMBER" [key name] (Decode.nullable Decode.bytes)

-- | @VRANDMEMBER key count@: several elements by chance. \(O(n)\) in their number.
vrandmemberCount :: ByteString -> Draw -> Command [ByteString]
vrandmemberCount name draw = command "VRANDMEMBER" [key name, drawCount draw] (Decode.list Decode.bytes)

-- | @VRANGE key start end@: the elements between two bounds, in the order of their bytes. \(O(n)\)
-- in the length of the reply, [since Redis 8.4.0](https://redis.io/docs/latest/commands/vrange/).
vrange :: ByteString -> LexBound -> LexBound -> Command [ByteString]
vrange = vrangeWith vrangeDefaults

-- | The options of 'vrangeWith'.
newtype VrangeOptions = VrangeOptions
  { -- | At most this many elements; 'Nothing' means all.
    vrangeCount :: Maybe Int64
  }
  deriving stock (Eq, Show)

-- | The whole range.
vrangeDefaults :: VrangeOptions
vrangeDefaults = VrangeOptions {vrangeCount = Nothing}

-- | @VRANGE key start end [count]@: like 'vrange', but at most so many elements. To continue, start
-- with 'LexExclusive' of the last.
vrangeWith :: VrangeOptions -> ByteString -> LexBound -> LexBound -> Command [ByteString]
vrangeWith VrangeOptions {vrangeCount} name start end =
  command "VRANGE" ([key name, lexBound start, lexBound end] <> maybe [] (pure . int) vrangeCount) (Decode.list Decode.bytes)
