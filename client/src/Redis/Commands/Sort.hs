-- | Sorting lists, sets and sorted sets on the server: by their elements, or by the values of other
-- keys that belong to the elements.
--
-- > run client (Redis.sortWith Redis.sortDefaults {Redis.sortOrder = Redis.Descending, Redis.sortCount = Just 2} "example:{lists}")
-- > run client (Redis.sortGet (Redis.GetElement :| [Redis.GetKey "name:*"]) "users") -- [[Just "7", Just "Ada"], …]
--
-- A pattern names a key for each element: the element takes the place of the asterisk. After the
-- key, an arrow and a name select a field of a hash: @user:*->name@. A cluster does not know where
-- these keys are. So its servers refuse patterns, except those whose keys lie in the slot of the
-- sorted key whatever the element is (@{users}:*@; Redis since 7.4, Valkey since 8.0).
--
-- The servers' documentation: <https://valkey.io/commands/sort/>,
-- <https://redis.io/docs/latest/commands/sort/>.
module Redis.Commands.Sort
  ( -- * Elements
    sort,
    sortWith,
    sortRo,
    sortRoWith,

    -- * Values of other keys
    sortGet,
    sortGetWith,
    sortRoGet,
    sortRoGetWith,
    SortGet (..),

    -- * Storing the result
    sortStore,
    sortStoreWith,

    -- * Options
    SortOptions (sortBy, sortOrder, sortAs, sortSkip, sortCount),
    sortDefaults,
    SortBy (..),
    SortOrder (..),
    SortAs (..),
  )
where

import Data.List.NonEmpty qualified as NonEmpty
import Data.Maybe (fromMaybe, isJust)
import Redis.Decode qualified as Decode
import Redis.Internal.Command.Common

-- | How to sort.
data SortOptions = SortOptions
  { -- | BY: what to compare.
    sortBy :: SortBy,
    sortOrder :: SortOrder,
    sortAs :: SortAs,
    -- | LIMIT: how many elements to leave out at the beginning.
    sortSkip :: Int64,
    -- | LIMIT: how many elements to return at most.
    sortCount :: Maybe Int64
  }
  deriving stock (Eq, Show)

-- | All elements, compared as numbers, the smallest first.
sortDefaults :: SortOptions
sortDefaults =
  SortOptions {sortBy = ByElement, sortOrder = Ascending, sortAs = AsNumbers, sortSkip = 0, sortCount = Nothing}

-- | What to compare.
data SortBy
  = -- | The elements themselves.
    ByElement
  | -- | The values of the keys, or of the fields of hashes, that this pattern names.
    ByKey ByteString
  | -- | Nothing: the elements keep their order.
    Unsorted
  deriving stock (Eq, Show)

-- | Which element comes first.
data SortOrder
  = -- | ASC: the smallest.
    Ascending
  | -- | DESC: the largest.
    Descending
  deriving stock (Eq, Show)

-- | How to compare.
data SortAs
  = -- | As numbers. A value that is no number is an error.
    AsNumbers
  | -- | ALPHA: as text, in the order of the server's locale.
    AsText
  deriving stock (Eq, Show)

-- | What to return for each element.
data SortGet
  = -- | GET #: the element itself.
    GetElement
  | -- | GET: the value of the key, or of the field of a hash, that this pattern names.
    GetKey ByteString
  deriving stock (Eq, Show)

-- | @SORT key@, @SORT_RO key@: the elements, sorted as numbers, the smallest first. An element that
-- is no number is an error. \(O(n \log n)\), [since 1.0.0](https://valkey.io/commands/sort/). The
-- server regards SORT as a write; SORT_RO, [since 7.0.0](https://valkey.io/commands/sort_ro/), may
-- go to a replica.
sort, sortRo :: ByteString -> Command [ByteString]
sort = sortWith sortDefaults
sortRo = sortRoWith sortDefaults

-- | @SORT key [BY pattern] [LIMIT skip count] [ASC|DESC] [ALPHA]@, @SORT_RO key …@: like 'sort' and
-- 'sortRo', with options. \(O(n + m \log m)\) for n elements of which m are returned.
sortWith, sortRoWith :: SortOptions -> ByteString -> Command [ByteString]
sortWith options name = command "SORT" (key name : sortArguments options []) (Decode.list Decode.bytes)
sortRoWith options name = command "SORT_RO" (key name : sortArguments options []) (Decode.list Decode.bytes)

-- | @SORT key GET pattern …@, @SORT_RO key GET pattern …@: for each element, in order, the values
-- that the patterns name; 'Nothing' where there is no such key. Otherwise like 'sort' and 'sortRo'.
sortGet, sortRoGet :: NonEmpty SortGet -> ByteString -> Command [[Maybe ByteString]]
sortGet = sortGetWith sortDefaults
sortRoGet = sortRoGetWith sortDefaults

-- | @SORT key … GET pattern …@, @SORT_RO key … GET pattern …@: like 'sortGet' and 'sortRoGet', with
-- options.
sortGetWith, sortRoGetWith :: SortOptions -> NonEmpty SortGet -> ByteString -> Command [[Maybe ByteString]]
sortGetWith = sortedRows "SORT"
sortRoGetWith = sortedRows "SORT_RO"

sortedRows :: Name -> SortOptions -> NonEmpty SortGet -> ByteString -> Command [[Maybe ByteString]]
sortedRows commandName options gets name =
  command commandName (key name : sortArguments options (NonEmpty.toList gets)) (rowsOf (length gets))

-- | @SORT key STORE destination@: stores the sorted elements as a list at the destination, in the
-- place of whatever it held; how many elements there are. In a cluster both keys must share a slot.
-- Otherwise like 'sort'.
sortStore :: ByteString -> ByteString -> Command Int64
sortStore = sortStoreWith sortDefaults []

-- | @SORT key … [GET pattern …] STORE destination@: like 'sortStore', with options. If there are
-- patterns, it stores the values that they name, one after the other, and an empty string where
-- there is no such key.
sortStoreWith :: SortOptions -> [SortGet] -> ByteString -> ByteString -> Command Int64
sortStoreWith options gets name destination =
  command "SORT" (key name : sortArguments options gets <> [arg "STORE", key destination]) Decode.integer

sortArguments :: SortOptions -> [SortGet] -> [Argument]
sortArguments SortOptions {sortBy, sortOrder, sortAs, sortSkip, sortCount} gets =
  by <> limit <> concatMap got gets <> flag "DESC" (sortOrder == Descending) <> flag "ALPHA" (sortAs == AsText)
  where
    by = case sortBy of
      ByElement -> []
      ByKey glob -> [arg "BY", arg glob]
      -- The server leaves the order as it is if the pattern has no asterisk.
      Unsorted -> [arg "BY", arg "nosort"]
    limit
      | sortSkip /= 0 || isJust sortCount = [arg "LIMIT", int sortSkip, int (fromMaybe (-1) sortCount)]
      | otherwise = []
    got = \case
      GetElement -> [arg "GET", arg "#"]
      GetKey glob -> [arg "GET", arg glob]

-- | Decodes rows of this many values, one row for each element.
rowsOf :: Int -> Decoder [[Maybe ByteString]]
rowsOf width reply = Decode.list (Decode.nullable Decode.bytes) reply >>= rows
  where
    rows found = case splitAt width found of
      ([], _) -> Right []
      (row, rest)
        | length row == width -> (row :) <$> rows rest
        | otherwise -> Decode.mismatch ("an array of " <> show width <> " for each element") reply
