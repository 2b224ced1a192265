-- | This project's own library as a peer of the comparison, under the same conditions as all
-- others: see @compare/PROTOCOL.md@.
module Main (main) where

import Compare.Ours.Counts (Latencies (..))
import Compare.Ours.Load (Found (..), runLoad)
import Compare.Ours.Options
import Compare.Ours.Runtime (runtimeFlags)
import Compare.Stream (streamCheck)
import Data.Aeson (Value, encode, object, (.=))
import Data.ByteString.Char8 qualified as Char8
import Data.ByteString.Lazy.Char8 qualified as Lazy
import Data.List.NonEmpty (NonEmpty (..))
import Data.Version (showVersion)
import Numeric (showHex)
import Redis qualified
import Redis.Commands qualified as Redis
import Redis.Config qualified as Config
import System.Environment (getArgs)
import System.Exit (ExitCode (..), exitWith)
import System.IO (hPutStrLn, stderr)
import System.Info (compilerName, fullCompilerVersion)

main :: IO ()
main =
  getArgs >>= \arguments -> case parseOptions arguments of
    Left problem -> do
      hPutStrLn stderr problem
      exitWith (ExitFailure 2)
    Right options -> do
      found <- Redis.withClient (configuration options) $ \client -> do
        -- Connects before the clock starts; without a server, this is an error.
        Redis.run client Redis.ping
        runLoad client options
      flags <- runtimeFlags
      Lazy.putStrLn (encode (report options found flags))

configuration :: Options -> Config.Config
configuration options =
  Config.setMuxCount (Just (optionsConnections options))
    . Config.setTls (if optionsTls options then Just Config.tlsDefaults else Nothing)
    . Config.setCredentials (credentials <$> optionsPassword options)
    $ if optionsCluster options
      then Config.clusterConfig (Config.TcpEndpoint host port :| [])
      else Config.standaloneConfig host port
  where
    host = Char8.pack (optionsHost options)
    port = fromIntegral (optionsPort options)
    credentials password =
      Config.Credentials
        { Config.credentialsUser = Nothing,
          Config.credentialsPassword = Config.toSecret (Char8.pack password)
        }

report :: Options -> Found -> String -> Value
report options found flags =
  object $
    [ "schema" .= ("redis-client-compare-peer/1" :: String),
      "client" .= ("redis-client" :: String),
      "version" .= ("0.1.0.0" :: String),
      "runtime" .= (compilerName <> " " <> showVersion fullCompilerVersion),
      "operation" .= case optionsOperation options of
        OnlyGet -> "get" :: String
        OnlySet -> "set"
        FifthSet -> "mixed",
      "ops_per_sec" .= (fromIntegral operations / foundSeconds found),
      "duration_sec" .= foundSeconds found,
      "total_ops" .= operations,
      "hits" .= foundHits found,
      "misses" .= foundMisses found,
      "wrong" .= foundWrong found,
      "errors" .= foundErrors found,
      "latency"
        .= object
          [ "p50" .= latenciesP50 latency,
            "p90" .= latenciesP90 latency,
            "p95" .= latenciesP95 latency,
            "p99" .= latenciesP99 latency,
            "p99_9" .= latenciesP999 latency,
            "max" .= latenciesMax latency
          ],
      "cpu_ns" .= foundCpuNanos found,
      "all_get" .= foundAllGet found,
      "all_set" .= foundAllSet found,
      "connections" .= optionsConnections options,
      "stream_check" .= ("0x" <> showHex (streamCheck (optionsSeed options)) ""),
      "notes" .= [flags]
    ]
      <> [ "alloc_bytes_per_op" .= (fromIntegral bytes / fromIntegral (max 1 operations) :: Double)
           | Just bytes <- [foundAllocated found]
         ]
  where
    latency = foundLatencies found
    operations = latenciesCount latency
