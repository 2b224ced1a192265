-- | Asks each node for its state every second while the load runs, on a connection and a thread of
-- its own, so that a node that does not answer does not delay the others. A server that refuses
-- INFO is not asked again.
module Tool.Bench.Sampler
  ( withSampler,
    Sampler,
    taken,
    refusals,
    sampleValuesOf,
  )
where

import Control.Concurrent.Async (mapConcurrently_, withAsync)
import Control.Exception (displayException, try)
import Control.Monad (void)
import Data.ByteString (ByteString)
import Data.ByteString qualified as ByteString
import Data.ByteString.Char8 qualified as Char8
import Data.IORef (IORef, atomicModifyIORef', newIORef, readIORef)
import Data.Map.Strict (Map)
import Data.Map.Strict qualified as Map
import Data.Text (Text)
import Data.Text qualified as Text
import Redis qualified
import Redis.Commands qualified as Commands
import Redis.Error (Error (..))
import Text.Read (readMaybe)
import Tool.Bench.Document (ServerSample (..))
import Tool.Bench.Time (Nanos, monotonic, sleepUntil)
import Tool.Connect (Target, nodeName, primaries, quiet, withTarget)
import Tool.Span (nanosIn, secondsIn)
import Tool.Text (utf8)

-- | The samples and refusals so far.
data Sampler = Sampler
  { -- | Newest first, each with the moment at which it was taken.
    samplerTaken :: IORef [(Nanos, ServerSample)],
    samplerRefusals :: IORef (Map Text Text)
  }

-- | Runs an action and meanwhile asks all primaries of the target at this interval, in seconds.
withSampler :: Target -> Double -> (Sampler -> IO a) -> IO a
withSampler target interval action = do
  sampler <- Sampler <$> newIORef [] <*> newIORef Map.empty
  withTarget quiet target $ \client -> do
    nodes <- primaries client
    withAsync (mapConcurrently_ (watch sampler client) nodes) (const (action sampler))
  where
    step = max 10000000 (nanosIn interval)
    watch sampler client node = monotonic >>= ask sampler client node
    -- At fixed times, however long the answer took. Times that have passed meanwhile are left out.
    ask sampler client node due = do
      sleepUntil due
      answer <- try (Redis.run client (Redis.onNode node (Commands.infoOf (pure "all"))))
      now <- monotonic
      case answer of
        Right fields -> do
          let sample = ServerSample 0 name (sampleValuesOf fields)
          atomicModifyIORef' (samplerTaken sampler) (\before -> ((now, sample) : before, ()))
          again now
        Left problem@(ReplyError _) -> refused sampler name problem
        -- The node may come back.
        Left problem -> refused sampler name problem >> again now
      where
        name = nodeName node
        again now = ask sampler client node (due + step * (1 + (now - due) `div` step))
    refused :: Sampler -> Text -> Error -> IO ()
    refused sampler name problem =
      void . atomicModifyIORef' (samplerRefusals sampler) $ \before ->
        (Map.insertWith (\_ first -> first) name (Text.pack (displayException problem)) before, ())

-- | The samples from one moment until before another, in order, with times since the first moment.
taken :: Sampler -> Nanos -> Nanos -> IO [ServerSample]
taken sampler from to = do
  found <- readIORef (samplerTaken sampler)
  pure
    [ sample {sampleAt = secondsIn (moment - from)}
      | (moment, sample) <- reverse found,
        moment >= from,
        moment < to
    ]

-- | The nodes that refused, with their first error.
refusals :: Sampler -> IO [Text]
refusals sampler =
  map (\(name, problem) -> name <> ": " <> problem) . Map.toList <$> readIORef (samplerRefusals sampler)

-- | The numbers in a reply to @INFO all@: the fields that change while a server works; and for each
-- command how often it ran, for how many microseconds in total, and its percentiles. Leaves out the
-- commands that only ask about the server.
sampleValuesOf :: [(ByteString, ByteString)] -> Map Text Double
sampleValuesOf fields = Map.fromList (concatMap value fields)
  where
    value (name, text)
      | name `elem` wanted, Just number <- numberOf text = [(utf8 name, number)]
      | name == "role" = [("role_master", if text == "master" then 1 else 0)]
      | name == "aof_last_write_status" = [("aof_last_write_failed", failed)]
      | name == "rdb_last_bgsave_status" = [("rdb_last_bgsave_failed", failed)]
      | ofLoad "cmdstat_" = inside ["calls", "usec"] name text
      | ofLoad "latency_percentiles_usec_" = inside ["p50", "p99", "p99.9"] name text
      | otherwise = []
      where
        failed = if text == "ok" then 0 else 1
        ofLoad prefix = maybe False isOfLoad (ByteString.stripPrefix prefix name)
    -- Leaves out commands that ask about the server.
    isOfLoad command =
      Char8.takeWhile (/= '|') command
        `notElem` Char8.words "info config client hello auth cluster command dbsize time"
    inside parts name text =
      [ (utf8 name <> "." <> utf8 part, number)
        | assignment <- Char8.split ',' text,
          let (part, rest) = Char8.break (== '=') assignment,
          part `elem` (parts :: [ByteString]),
          Just number <- [numberOf (Char8.drop 1 rest)]
      ]

numberOf :: ByteString -> Maybe Double
numberOf text = case Char8.readInt text of
  Just (whole, "") -> Just (fromIntegral whole)
  _ -> readMaybe (Char8.unpack text)

-- The fields that show a server's state. The rest is names and settings, or follows from these.
wanted :: [ByteString]
wanted =
  Char8.words
    "uptime_in_seconds connected_clients blocked_clients used_memory used_memory_rss \
    \used_memory_peak mem_fragmentation_ratio mem_aof_buffer loading \
    \rdb_changes_since_last_save rdb_bgsave_in_progress rdb_last_cow_size aof_enabled \
    \aof_rewrite_in_progress aof_current_size aof_base_size aof_buffer_length \
    \aof_pending_bio_fsync aof_delayed_fsync total_connections_received \
    \total_commands_processed instantaneous_ops_per_sec total_net_input_bytes \
    \total_net_output_bytes instantaneous_input_kbps instantaneous_output_kbps \
    \rejected_connections expired_keys evicted_keys keyspace_hits keyspace_misses \
    \latest_fork_usec total_forks total_error_replies connected_slaves \
    \master_repl_offset used_cpu_sys used_cpu_user used_cpu_sys_children \
    \used_cpu_user_children used_cpu_sys_main_thread used_cpu_user_main_thread"
