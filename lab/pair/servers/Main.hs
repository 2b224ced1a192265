-- | The private servers of a pair. Starts the servers that its arguments name, prints where they
-- are, and ends them when its input ends.
--
-- > pair-servers PLACE...
--
-- Prints a line for each: its name and the port of each of its nodes; then an empty line. The
-- places:
--
-- [@pinned@] a server on core 0
-- [@free@] a server on whatever core it likes
-- [@cluster@] five primaries on core 0
module Main (main) where

import Control.Monad (void)
import Redis.TestKit.Address (Address (..))
import Redis.TestKit.Cluster (ClusterOptions (..), clusterDefaults, clusterNodes, nodeAddress, withCluster)
import Redis.TestKit.Server (ServerOptions (..), serverAddress, serverDefaults, withServer)
import System.Environment (getArgs)
import System.Exit (die)
import System.IO (hFlush, stdout)

main :: IO ()
main = getArgs >>= start
  where
    start [] = putStrLn "" >> hFlush stdout >> void untilItEnds
    start (place : others) = do
      let found addresses = tell place addresses >> start others
      case place of
        "pinned" -> withServer pinned (found . pure . serverAddress)
        "free" -> withServer serverDefaults (found . pure . serverAddress)
        -- A node that does not get the processor for a while must not count as failed: all nodes
        -- share one core.
        "cluster" ->
          withCluster clusterDefaults {clusterNodeTimeout = 15000, clusterServer = pinned} $ \cluster ->
            clusterNodes cluster >>= found . map nodeAddress
        _ -> die ("pair-servers: there is no place " <> place)
    pinned = serverDefaults {optionsCores = [0]}
    -- Waits for the end of the input.
    untilItEnds = getContents >>= \text -> length text `seq` pure text

tell :: String -> [Address] -> IO ()
tell place addresses = do
  ports <- traverse port addresses
  putStrLn (unwords (place : ports))
  where
    port = \case
      TcpAddress _ number -> pure (show number)
      UnixAddress _ -> die "pair-servers: a server has no TCP port"
