-- | A loop over the library that only sends commands: a run of the tool without the tool. It draws
-- keys like the tool and drops the replies.
module Lab.Bare
  ( BareOptions (..),
    bare,
    BareFound (..),
    bareLoop,
    readBare,
  )
where

import Control.Concurrent.Async (forConcurrently_)
import Control.Exception (evaluate)
import Control.Monad (replicateM, void)
import Data.Aeson (eitherDecodeStrict', encode, object, withObject, (.:), (.=))
import Data.Aeson.Types (parseEither)
import Data.ByteString (ByteString)
import Data.ByteString qualified as ByteString
import Data.ByteString.Char8 qualified as Char8
import Data.ByteString.Lazy.Char8 qualified as Lazy
import Data.IORef (atomicModifyIORef', newIORef, readIORef)
import Data.Maybe (fromMaybe)
import Data.Word (Word16)
import Redis qualified
import Redis.Commands qualified as Commands
import System.Exit (ExitCode (..))
import Tool.Bench.Time (monotonic, ownCpu)
import Tool.Bench.Workload (newWorkload, workloadKey, workloadKeys)
import Tool.Bench.Workload.Random (below, newStream, step, upper)
import Tool.Connect (Target, Tuning (..), plainTarget, withTarget)
import Tool.Options.Bench (LoadOptions (..), Operation (..), defaultLoad)
import Tool.Span (nanosIn, perSecond)

-- | The options of @bare@.
data BareOptions = BareOptions
  { bareHost :: String,
    barePort :: Word16,
    bareThreads :: Int,
    -- | Commands that a thread submits before it waits.
    bareBatch :: Int,
    -- | How many keys to use, from the first on. 'Nothing' means all.
    bareKeys :: Maybe Int,
    -- | Seconds.
    bareDuration :: Double
  }
  deriving stock (Eq, Show)

-- | The result of a loop.
data BareFound = BareFound
  { -- | GETs per second.
    bareOps :: Double,
    -- | Nanoseconds of processor time per GET.
    bareCpu :: Double
  }
  deriving stock (Eq, Show)

-- | Runs the loop, and prints the result as JSON.
bare :: BareOptions -> IO ExitCode
bare options = do
  found <- bareLoop target load (fromMaybe (workloadKeys (newWorkload OperationGet load)) (bareKeys options))
  Lazy.putStrLn (encode (object ["ops_per_sec" .= bareOps found, "cpu_ns_per_op" .= bareCpu found]))
  pure ExitSuccess
  where
    target = plainTarget (Char8.pack (bareHost options)) (barePort options)
    load = defaultLoad {loadThreads = bareThreads options, loadBatch = bareBatch options, loadDuration = bareDuration options}

-- | Reads the output of 'bare'.
readBare :: ByteString -> Either String BareFound
readBare text = eitherDecodeStrict' text >>= parseEither (withObject "loop" (\found -> BareFound <$> found .: "ops_per_sec" <*> found .: "cpu_ns_per_op"))

-- | GETs of this number of keys over one connection, for the duration of the load, after half a
-- second that does not count. The keys must exist.
bareLoop :: Target -> LoadOptions -> Int -> IO BareFound
bareLoop target load keys = withTarget Tuning {tuningMuxCount = Just 1, tuningPolling = True} target $ \client -> do
  -- The names of the keys are made before the clock starts, as in the tool.
  void (evaluate (ByteString.length (workloadKey workload (keys - 1))))
  void (asking client (min 0.5 (loadDuration load)))
  began <- monotonic
  before <- ownCpu
  count <- fromIntegral <$> asking client (loadDuration load)
  after <- ownCpu
  ended <- monotonic
  pure
    BareFound
      { bareOps = perSecond count (ended - began),
        bareCpu = fromIntegral (after - before) / max 1 count
      }
  where
    workload = newWorkload OperationGet load
    asking client seconds = do
      let span' = nanosIn seconds
      total <- newIORef (0 :: Int)
      began <- monotonic
      forConcurrently_ [1 .. loadThreads load] $ \thread -> do
        stream <- newStream (loadSeed load) thread
        let ask = Commands.get . workloadKey workload . below keys . upper <$> step stream
            go sent = do
              now <- monotonic
              if now - began > span'
                then atomicModifyIORef' total (\all' -> (all' + sent, ()))
                else do
                  if loadBatch load == 1
                    then ask >>= void . Redis.run client
                    else replicateM (loadBatch load) (ask >>= Redis.submit client) >>= mapM_ Redis.awaitReply
                  go (sent + loadBatch load)
        go 0
      readIORef total
