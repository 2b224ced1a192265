-- | Every group of commands in about twenty lines each: the groups named after the URL, or all of
-- them.
--
-- > cabal run tour -- redis://127.0.0.1:6379 strings lists
module Tour (main) where

import Data.Foldable (for_)
import Redis
import Settings (configFromArguments)
import System.Environment (getArgs)
import System.Exit (die)
import Tour.Access qualified as Access
import Tour.Bitmaps qualified as Bitmaps
import Tour.Cluster qualified as Cluster
import Tour.Geo qualified as Geo
import Tour.HashFields qualified as HashFields
import Tour.Hashes qualified as Hashes
import Tour.HyperLogLogs qualified as HyperLogLogs
import Tour.Keys qualified as Keys
import Tour.Lists qualified as Lists
import Tour.Publish qualified as Publish
import Tour.Scripts qualified as Scripts
import Tour.Server qualified as Server
import Tour.Sets qualified as Sets
import Tour.SortedSets qualified as SortedSets
import Tour.Streams qualified as Streams
import Tour.Strings qualified as Strings

main :: IO ()
main = do
  config <- configFromArguments "redis://127.0.0.1:6379"
  names <- drop 1 <$> getArgs
  case filter (`notElem` map fst groups) names of
    [] -> pure ()
    unknown -> die ("no group: " <> unwords unknown <> "; there are " <> unwords (map fst groups))
  withClient config $ \client ->
    for_ [group | group@(name, _) <- groups, null names || name `elem` names] $ \(name, tour) -> do
      putStrLn (name <> ":")
      tour client

groups :: [(String, Client -> IO ())]
groups =
  [ ("strings", Strings.tour),
    ("keys", Keys.tour),
    ("lists", Lists.tour),
    ("hashes", Hashes.tour),
    ("hashfields", HashFields.tour),
    ("sets", Sets.tour),
    ("sortedsets", SortedSets.tour),
    ("streams", Streams.tour),
    ("geo", Geo.tour),
    ("bitmaps", Bitmaps.tour),
    ("hyperloglogs", HyperLogLogs.tour),
    ("scripts", Scripts.tour),
    ("publish", Publish.tour),
    ("server", Server.tour),
    ("access", Access.tour),
    ("cluster", Cluster.tour)
  ]
