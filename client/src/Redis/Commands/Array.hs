-- | Arrays: elements with an index, of which most may be empty. Only elements that are set take
-- memory, so an index may be as great as 2^64 - 2.
--
-- > _ <- run client (Redis.arset "example:arrays" 1000000 ("first" :| ["second"]))
-- > run client (Redis.arscan "example:arrays" 0 2000000)
--
-- Where a command takes the two ends of a range, both are included, and the first may be the
-- greater one: then the elements come in descending order.
--
-- Redis has these commands since 8.8.0, as a preview that may change; Valkey lacks them. They are
-- made from the documentation, and were not run on a server. The server's page:
-- <https://redis.io/docs/latest/develop/data-types/arrays/>.
module Redis.Commands.Array
  ( -- * Elements
    arset,
    armset,
    arget,
    armget,
    ardel,
    ardelrange,

    -- * Ranges
    argetrange,
    arscan,
    arscanWith,
    ArscanOptions (arscanLimit),
    arscanDefaults,

    -- * The cursor
    arinsert,
    arring,
    arlastitems,
    arlastitemsWith,
    ArlastitemsOptions (arlastitemsRev),
    arlastitemsDefaults,
    arnext,
    arseek,

    -- * Searching
    argrep,
    argrepWith,
    argrepWithvalues,
    argrepWithvaluesWith,
    ArgrepBound (..),
    ArgrepPredicate (..),
    ArgrepOptions (argrepAnd, argrepLimit, argrepNocase),
    argrepDefaults,

    -- * Sums over a range
    aropSum,
    aropMin,
    aropMax,
    aropAnd,
    aropOr,
    aropXor,
    aropMatch,
    aropUsed,

    -- * The whole array
    arlen,
    arcount,
    arinfo,
    arinfoFull,
    ArrayInfo (..),
    ArraySlices (..),
  )
where

import Data.Word (Word64)
import Redis.Decode qualified as Decode
import Redis.Internal.Command.Common

index :: Word64 -> Argument
index = arg . decimalWord64

-- | @ARSET key index value …@: sets the element at this index, and with several values those that
-- follow; returns how many of them were empty before. \(O(n)\) in the number of values,
-- [since Redis 8.8.0](https://redis.io/docs/latest/commands/arset/).
arset :: ByteString -> Word64 -> NonEmpty ByteString -> Command Int64
arset name at new = command "ARSET" (key name : index at : args new) Decode.integer

-- | @ARMSET key index value …@: sets elements; returns how many of them were empty before.
-- \(O(n)\), [since Redis 8.8.0](https://redis.io/docs/latest/commands/armset/).
armset :: ByteString -> NonEmpty (Word64, ByteString) -> Command Int64
armset name new = command "ARMSET" (key name : concatMap (\(at, element) -> [index at, arg element]) new) Decode.integer

-- | @ARGET key index@: the element at this index, unless it is empty. \(O(1)\),
-- [since Redis 8.8.0](https://redis.io/docs/latest/commands/arget/).
arget :: ByteString -> Word64 -> Command (Maybe ByteString)
arget name at = command "ARGET" [key name, index at] (Decode.nullable Decode.bytes)

-- | @ARMGET key index …@: the elements, in the order of the indices. \(O(n)\),
-- [since Redis 8.8.0](https://redis.io/docs/latest/commands/armget/).
armget :: ByteString -> NonEmpty Word64 -> Command [Maybe ByteString]
armget name those =
  command "ARMGET" (key name : map index (toList those)) (Decode.listOf (length those) (Decode.nullable Decode.bytes))

-- | @ARDEL key index …@: empties elements; returns how many of them there were. \(O(n)\),
-- [since Redis 8.8.0](https://redis.io/docs/latest/commands/ardel/).
ardel :: ByteString -> NonEmpty Word64 -> Command Int64
ardel name those = command "ARDEL" (key name : map index (toList those)) Decode.integer

-- | @ARDELRANGE key start end …@: empties ranges; returns how many elements there were. \(O(n)\) in
-- that number, [since Redis 8.8.0](https://redis.io/docs/latest/commands/ardelrange/).
ardelrange :: ByteString -> NonEmpty (Word64, Word64) -> Command Int64
ardelrange name ranges =
  command "ARDELRANGE" (key name : concatMap (\(start, end) -> [index start, index end]) ranges) Decode.integer

-- | @ARGETRANGE key start end@: all elements of the range, also the empty ones: an error for more
-- than a million. \(O(n)\) in the length of the range,
-- [since Redis 8.8.0](https://redis.io/docs/latest/commands/argetrange/).
argetrange :: ByteString -> Word64 -> Word64 -> Command [Maybe ByteString]
argetrange name start end =
  command "ARGETRANGE" [key name, index start, index end] (Decode.list (Decode.nullable Decode.bytes))

-- | @ARSCAN key start end@: the elements of the range that are not empty, with their indices.
-- \(O(n)\) in their number, [since Redis 8.8.0](https://redis.io/docs/latest/commands/arscan/).
arscan :: ByteString -> Word64 -> Word64 -> Command [(Word64, ByteString)]
arscan = arscanWith arscanDefaults

-- | The options of 'arscanWith'.
newtype ArscanOptions = ArscanOptions
  { -- | LIMIT: at most this many elements; 'Nothing' means all.
    arscanLimit :: Maybe Int64
  }
  deriving stock (Eq, Show)

-- | The whole range.
arscanDefaults :: ArscanOptions
arscanDefaults = ArscanOptions {arscanLimit = Nothing}

-- | @ARSCAN key start end [LIMIT n]@: like 'arscan', with options. To continue, start at the index
-- after the last one.
arscanWith :: ArscanOptions -> ByteString -> Word64 -> Word64 -> Command [(Word64, ByteString)]
arscanWith ArscanOptions {arscanLimit} name start end =
  command "ARSCAN" ([key name, index start, index end] <> option "LIMIT" int arscanLimit) indexed

indexed :: Decoder [(Word64, ByteString)]
indexed = Decode.pairs readWord64 Decode.bytes

-- | @ARINSERT key value …@: sets elements from the array's cursor on, and moves the cursor behind
-- them; returns the index of the last one. \(O(n)\) in the number of values,
-- [since Redis 8.8.0](https://redis.io/docs/latest/commands/arinsert/).
arinsert :: ByteString -> NonEmpty ByteString -> Command Word64
arinsert name new = command "ARINSERT" (key name : args new) readWord64

-- | @ARRING key size value …@: like 'arinsert', but after so many elements the cursor begins at 0
-- again, so that the array holds the latest ones. A size below 1 is refused before it is sent. If
-- the array has another size, it gets this one; \(O(n)\) in the number of values, and then in the
-- greater of both sizes, [since Redis 8.8.0](https://redis.io/docs/latest/commands/arring/).
arring :: ByteString -> Int64 -> NonEmpty ByteString -> Command Word64
arring name size new = command "ARRING" (key name : positive size : args new) readWord64

-- | @ARLASTITEMS key count@: at most so many elements that were inserted last, the oldest first.
-- \(O(n)\) in the count, [since Redis 8.8.0](https://redis.io/docs/latest/commands/arlastitems/).
arlastitems :: ByteString -> Int64 -> Command [Maybe ByteString]
arlastitems = arlastitemsWith arlastitemsDefaults

-- | The options of 'arlastitemsWith'.
newtype ArlastitemsOptions = ArlastitemsOptions
  { -- | REV: the newest first.
    arlastitemsRev :: Bool
  }
  deriving stock (Eq, Show)

-- | The oldest first.
arlastitemsDefaults :: ArlastitemsOptions
arlastitemsDefaults = ArlastitemsOptions {arlastitemsRev = False}

-- | @ARLASTITEMS key count [REV]@: like 'arlastitems', with options.
arlastitemsWith :: ArlastitemsOptions -> ByteString -> Int64 -> Command [Maybe ByteString]
arlastitemsWith ArlastitemsOptions {arlastitemsRev} name count =
  command "ARLASTITEMS" ([key name, int count] <> flag "REV" arlastitemsRev) (Decode.list (Decode.nullable Decode.bytes))

-- | @ARNEXT key@: the index that 'arinsert' would set next; 'Nothing' if no index is left.
-- \(O(1)\), [since Redis 8.8.0](https://redis.io/docs/latest/commands/arnext/).
arnext :: ByteString -> Command (Maybe Word64)
arnext name = command "ARNEXT" [key name] (Decode.nullable readWord64)

-- | @ARSEEK key index@: moves the cursor of 'arinsert' and 'arring'; returns whether there is such
-- an array. \(O(1)\), [since Redis 8.8.0](https://redis.io/docs/latest/commands/arseek/).
arseek :: ByteString -> Word64 -> Command Bool
arseek name at = command "ARSEEK" [key name, index at] Decode.boolean

-- | An end of the range in which 'argrep' searches.
data ArgrepBound
  = -- | @-@: the first index of the array.
    ArgrepFirst
  | ArgrepIndex Word64
  | -- | @+@: the last index of the array.
    ArgrepLast
  deriving stock (Eq, Show)

argrepBound :: ArgrepBound -> Argument
argrepBound = \case
  ArgrepFirst -> arg "-"
  ArgrepIndex at -> index at
  ArgrepLast -> arg "+"

-- | What an element must be.
data ArgrepPredicate
  = -- | EXACT: equal to this.
    ArgrepExact ByteString
  | -- | MATCH: it contains this.
    ArgrepMatch ByteString
  | -- | GLOB: it matches this glob, as in SCAN.
    ArgrepGlob ByteString
  | -- | RE: it matches this regular expression.
    ArgrepRe ByteString
  deriving stock (Eq, Show)

-- | @ARGREP key start end EXACT|MATCH|GLOB|RE …@: the indices of the elements that fulfil one of
-- the predicates. \(O(n c)\) for n elements in the range and the cost c of a comparison,
-- [since Redis 8.8.0](https://redis.io/docs/latest/commands/argrep/).
--
-- > argrep "log" ArgrepFirst ArgrepLast (ArgrepMatch "error" :| [])
argrep :: ByteString -> ArgrepBound -> ArgrepBound -> NonEmpty ArgrepPredicate -> Command [Word64]
argrep = argrepWith argrepDefaults

-- | The options of 'argrepWith' and 'argrepWithvaluesWith'.
data ArgrepOptions = ArgrepOptions
  { -- | AND: an element must fulfil all predicates, not only one.
    argrepAnd :: Bool,
    -- | LIMIT: at most this many elements; 'Nothing' means all. A limit below 1 is refused before
    -- it is sent.
    argrepLimit :: Maybe Int64,
    -- | NOCASE: upper and lower case are the same.
    argrepNocase :: Bool
  }
  deriving stock (Eq, Show)

-- | One predicate is enough, all elements, case matters.
argrepDefaults :: ArgrepOptions
argrepDefaults = ArgrepOptions {argrepAnd = False, argrepLimit = Nothing, argrepNocase = False}

-- | @ARGREP key start end EXACT|MATCH|GLOB|RE … [AND] [LIMIT n] [NOCASE]@: like 'argrep', with options.
argrepWith :: ArgrepOptions -> ByteString -> ArgrepBound -> ArgrepBound -> NonEmpty ArgrepPredicate -> Command [Word64]
argrepWith options name start end predicates =
  command "ARGREP" (argrepArguments options name start end predicates) (Decode.list readWord64)

-- | @ARGREP key start end EXACT|MATCH|GLOB|RE … WITHVALUES@: like 'argrep', with the elements.
argrepWithvalues :: ByteString -> ArgrepBound -> ArgrepBound -> NonEmpty ArgrepPredicate -> Command [(Word64, ByteString)]
argrepWithvalues = argrepWithvaluesWith argrepDefaults

-- | @ARGREP key start end EXACT|MATCH|GLOB|RE … [AND] [LIMIT n] [NOCASE] WITHVALUES@: like
-- 'argrepWithvalues', with options.
argrepWithvaluesWith ::
  ArgrepOptions -> ByteString -> ArgrepBound -> ArgrepBound -> NonEmpty ArgrepPredicate -> Command [(Word64, ByteString)]
argrepWithvaluesWith options name start end predicates =
  command "ARGREP" (argrepArguments options name start end predicates <> [arg "WITHVALUES"]) indexed

argrepArguments :: ArgrepOptions -> ByteString -> ArgrepBound -> ArgrepBound -> NonEmpty ArgrepPredicate -> [Argument]
argrepArguments ArgrepOptions {argrepAnd, argrepLimit, argrepNocase} name start end predicates =
  [key name, argrepBound start, argrepBound end]
    <> concatMap predicate predicates
    <> flag "AND" argrepAnd
    <> option "LIMIT" positive argrepLimit
    <> flag "NOCASE" argrepNocase
  where
    predicate = \case
      ArgrepExact text -> [arg "EXACT", arg text]
      ArgrepMatch text -> [arg "MATCH", arg text]
      ArgrepGlob pattern' -> [arg "GLOB", arg pattern']
      ArgrepRe expression -> [arg "RE", arg expression]

-- | @AROP key start end SUM|MIN|MAX@: the sum of the elements that are numbers, the least or the
-- greatest of them; 'Nothing' if none is. A number that a 'Double' cannot hold is rounded. \(O(n)\)
-- in the number of elements, [since Redis 8.8.0](https://redis.io/docs/latest/commands/arop/).
aropSum, aropMin, aropMax :: ByteString -> Word64 -> Word64 -> Command (Maybe Double)
aropSum = arop Decode.double "SUM"
aropMin = arop Decode.double "MIN"
aropMax = arop Decode.double "MAX"

-- | @AROP key start end AND|OR|XOR@: of the elements that are numbers, without their fractions, the
-- bits that all have, that one of them has, or that an odd number of them has; 'Nothing' if none is
-- a number. Costs the same as 'aropSum'.
aropAnd, aropOr, aropXor :: ByteString -> Word64 -> Word64 -> Command (Maybe Int64)
aropAnd = arop Decode.integer "AND"
aropOr = arop Decode.integer "OR"
aropXor = arop Decode.integer "XOR"

arop :: Decoder a -> ByteString -> ByteString -> Word64 -> Word64 -> Command (Maybe a)
arop decoder operation name start end =
  command "AROP" [key name, index start, index end, arg operation] (Decode.nullable decoder)

-- | @AROP key start end MATCH value@: how many elements equal this. Costs the same as 'aropSum'.
aropMatch :: ByteString -> Word64 -> Word64 -> ByteString -> Command Int64
aropMatch name start end element =
  command "AROP" [key name, index start, index end, arg "MATCH", arg element] Decode.integer

-- | @AROP key start end USED@: how many elements are not empty. Costs the same as 'aropSum'.
aropUsed :: ByteString -> Word64 -> Word64 -> Command Int64
aropUsed name start end = command "AROP" [key name, index start, index end, arg "USED"] Decode.integer

-- | @ARLEN key@, @ARCOUNT key@: one more than the highest index that is set; how many elements are
-- not empty. Both are 0 if there is no array. \(O(1)\), since Redis 8.8.0
-- ([ARLEN](https://redis.io/docs/latest/commands/arlen/),
-- [ARCOUNT](https://redis.io/docs/latest/commands/arcount/)).
arlen, arcount :: ByteString -> Command Word64
arlen name = command "ARLEN" [key name] readWord64
arcount name = command "ARCOUNT" [key name] readWord64

-- | How the server keeps an array: in slices of equal length.
data ArrayInfo = ArrayInfo
  { -- | The elements that are not empty.
    arrayInfoCount :: Word64,
    -- | One more than the highest index that is set.
    arrayInfoLen :: Word64,
    -- | The index that 'arinsert' would set next; 0 also if no index is left.
    arrayInfoNextInsertIndex :: Word64,
    -- | The slices that have elements.
    arrayInfoSlices :: Int64,
    -- | How many slices the array's directory has room for.
    arrayInfoDirectorySize :: Int64,
    -- | The entries of the directory of directories, which arrays with very great indices have.
    arrayInfoSuperDirEntries :: Int64,
    -- | The elements of a slice.
    arrayInfoSliceSize :: Int64,
    -- | With 'arinfoFull'.
    arrayInfoFull :: Maybe ArraySlices,
    arrayInfoOthers :: [(ByteString, Value)]
  }
  deriving stock (Eq, Show)

-- | The slices of an array: some list all elements, some only those that are not empty.
data ArraySlices = ArraySlices
  { -- | The slices that list all.
    arraySlicesDense :: Int64,
    -- | The slices that list those that are not empty.
    arraySlicesSparse :: Int64,
    -- | The mean room in a slice that lists all.
    arraySlicesAvgDenseSize :: Double,
    -- | The mean part of it that is not empty.
    arraySlicesAvgDenseFill :: Double,
    -- | The mean room in a slice that lists those that are not empty.
    arraySlicesAvgSparseSize :: Double
  }
  deriving stock (Eq, Show)

-- | @ARINFO key [FULL]@: how the server keeps an array; an error if there is none. \(O(1)\); with
-- FULL it tells of all slices, in \(O(n)\) of their number;
-- [since Redis 8.8.0](https://redis.io/docs/latest/commands/arinfo/).
arinfo, arinfoFull :: ByteString -> Command ArrayInfo
arinfo name = command "ARINFO" [key name] arrayInfo
arinfoFull name = command "ARINFO" [key name, arg "FULL"] arrayInfo

arrayInfo :: Decoder ArrayInfo
arrayInfo =
  recordOf $
    ArrayInfo
      <$> field "count" readWord64
      <*> field "len" readWord64
      <*> field "next-insert-index" readWord64
      <*> field "slices" Decode.integer
      <*> field "directory-size" Decode.integer
      <*> field "super-dir-entries" Decode.integer
      <*> field "slice-size" Decode.integer
      <*> ifPresent "dense-slices" slices
      <*> others Decode.value
  where
    slices =
      ArraySlices
        <$> field "dense-slices" Decode.integer
        <*> field "sparse-slices" Decode.integer
        <*> field "avg-dense-size" Decode.double
        <*> field "avg-dense-fill" Decode.double
        <*> field "avg-sparse-size" Decode.double
