-- | Walks over all keys of a Valkey cluster.
--
-- > page <- run client (Redis.clusterscan cursor)
-- > rest <- traverse (everyKey client) (Redis.clusterscanNext page)
--
-- The server's page: <https://valkey.io/commands/clusterscan/>.
module Redis.Commands.Clusterscan
  ( clusterscan,
    clusterscanWith,
    ClusterscanOptions (clusterscanMatch, clusterscanCount, clusterscanType, clusterscanSlot),
    clusterscanDefaults,
    ClusterscanCursor,
    clusterscanStart,
    ClusterscanPage (..),
  )
where

import Redis.Decode qualified as Decode
import Redis.Internal.Command.ClusterNode (slotArgument)
import Redis.Internal.Command.Common

-- | The position of a walk, which leads to the node of a slot.
newtype ClusterscanCursor = ClusterscanCursor ByteString
  deriving stock (Eq, Show)

-- | The beginning of a walk.
clusterscanStart :: ClusterscanCursor
clusterscanStart = ClusterscanCursor "0"

-- | Which keys a walk reports.
data ClusterscanOptions = ClusterscanOptions
  { -- | MATCH: only keys that match the glob.
    clusterscanMatch :: Maybe ByteString,
    -- | COUNT: about how many keys the server looks at in a step.
    clusterscanCount :: Maybe Int64,
    -- | TYPE: only keys of this type.
    clusterscanType :: Maybe KeyType,
    -- | SLOT: only keys of this slot.
    clusterscanSlot :: Maybe Int
  }
  deriving stock (Eq, Show)

-- | All keys.
clusterscanDefaults :: ClusterscanOptions
clusterscanDefaults =
  ClusterscanOptions {clusterscanMatch = Nothing, clusterscanCount = Nothing, clusterscanType = Nothing, clusterscanSlot = Nothing}

-- | The result of a step of a walk.
data ClusterscanPage = ClusterscanPage
  { -- | The keys of this step: possibly none, and possibly keys that an earlier step reported.
    clusterscanFound :: [ByteString],
    -- | 'Nothing' at the end of the walk.
    clusterscanNext :: Maybe ClusterscanCursor
  }
  deriving stock (Eq, Show)

-- | @CLUSTERSCAN cursor@: a step of a walk over all keys of a cluster, slot by slot. The cursor
-- leads to the primary of the next slot. The walk reports every key that exists from its beginning
-- to its end, at least once. \(O(n)\) in the keys reported,
-- [since Valkey 9.1.0](https://valkey.io/commands/clusterscan/); Redis lacks it: there
-- 'Redis.Commands.Keys.scan' walks over each primary.
clusterscan :: ClusterscanCursor -> Command ClusterscanPage
clusterscan = clusterscanWith clusterscanDefaults

-- | @CLUSTERSCAN cursor [MATCH glob] [COUNT count] [TYPE type] [SLOT slot]@: like 'clusterscan',
-- with the same options in each step.
clusterscanWith :: ClusterscanOptions -> ClusterscanCursor -> Command ClusterscanPage
clusterscanWith ClusterscanOptions {clusterscanMatch, clusterscanCount, clusterscanType, clusterscanSlot} (ClusterscanCursor cursor) =
  command "CLUSTERSCAN" (key cursor : options) $ \reply -> do
    (next, clusterscanFound) <- Decode.pair Decode.bytes (Decode.list Decode.bytes) reply
    pure ClusterscanPage {clusterscanFound, clusterscanNext = if next == "0" then Nothing else Just (ClusterscanCursor next)}
  where
    options =
      option "MATCH" arg clusterscanMatch
        <> option "COUNT" positive clusterscanCount
        <> option "TYPE" (arg . keyTypeWord) clusterscanType
        <> option "SLOT" slotArgument clusterscanSlot
