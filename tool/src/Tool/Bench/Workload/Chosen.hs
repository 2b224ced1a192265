-- | Makes workloads from options.
module Tool.Bench.Workload.Chosen
  ( newWorkload,
    chosenWorkloads,
    workloadRefusal,
  )
where

import Data.Either (fromRight)
import Data.Foldable (traverse_)
import Data.List.NonEmpty (NonEmpty (..))
import Data.Maybe (fromMaybe)
import Data.Text qualified as Text
import Tool.Bench.Workload
import Tool.Bench.Workload.Dataset (Shape (..), defaultShape)
import Tool.Bench.Workload.Keys (sizedTemplate)
import Tool.Bench.Workload.Values (ValueSizes (..))
import Tool.Options.Bench (LoadOptions (..))
import Tool.Options.Workload

-- | A standard workload for a server. \(O(n)\) in the number of keys.
newWorkload :: Operation -> LoadOptions -> Workload
newWorkload operation load = named (makeWorkload (Just name) shape (operationMix operation))
  where
    name = Text.pack (operationName operation)
    shape = shapeOf False (loadThreads load) options load
    options = defaultWorkload {workloadSizes = SizeFixed (loadValueSize load)}
    -- The operations have tests of the same names.
    named = fromRight (emptyWorkload shape)

-- | The workloads of the options, one per run. Takes whether the target is a cluster, the number of
-- threads that draw, the options, and the load. 'Left' is a message of one line.
chosenWorkloads :: Bool -> Int -> WorkloadOptions -> LoadOptions -> Either String (NonEmpty Workload)
chosenWorkloads clustered threads options load =
  traverse chosen (selectedMixes (workloadSelection options))
  where
    chosen (name, mix) = makeWorkload name (shapeOf clustered threads options load) mix

-- | Why these workloads are impossible, in one line.
workloadRefusal :: WorkloadOptions -> Maybe String
workloadRefusal options =
  either Just (const Nothing) (traverse_ attempt (selectedMixes (workloadSelection options)))
  where
    -- With one key, so that it costs nothing.
    attempt (name, mix) = makeWorkload name defaultShape {shapeKeys = 1} mix

shapeOf :: Bool -> Int -> WorkloadOptions -> LoadOptions -> Shape
shapeOf clustered threads options load =
  Shape
    { shapeTemplate = fromMaybe (sizedTemplate (loadKeys load) (loadKeySize load)) (workloadTemplate options),
      shapeKeys = loadKeys load,
      shapeDistribution = workloadDistribution options,
      shapeSizes = workloadSizes options,
      shapeCompressible = workloadCompressible options,
      shapeExpiry = workloadExpiry options,
      shapeHitRatio = workloadHitRatio options,
      shapeSeed = loadSeed load,
      shapeThreads = threads,
      shapeClustered = clustered,
      shapeSubscribers = Tool.Options.Workload.workloadSubscribers options
    }
