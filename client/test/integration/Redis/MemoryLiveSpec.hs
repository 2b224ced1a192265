-- | The memory of a client, of its connections and of commands in flight. docs/measurements.md has the figures;
-- the bounds are about twice as high.
module Redis.MemoryLiveSpec (spec) where

import Control.Concurrent.Async (async, wait)
import Control.Monad (forM, forM_)
import Data.ByteString.Char8 qualified as Char8
import Data.Int (Int64)
import Data.Word (Word64)
import GHC.Stats (GCDetails (gcdetails_live_bytes), RTSStats (gc), getRTSStats)
import Redis
import Redis.Commands qualified as Commands
import Redis.Metrics
import Redis.Surroundings (addressed)
import Redis.TestKit.Server (serverDefaults, withServer)
import Redis.TestKit.Server qualified as Server
import Redis.TestKit.Wait (eventuallyReturns, within)
import System.Mem (performMajorGC)
import Test.Hspec hiding (before)

spec :: Spec
spec = around_ (within 60) $ do
  forM_ inFlight $ \(name, start, most) ->
    it ("a command in flight takes little memory, " <> name) $
      withServer serverDefaults $ \server ->
        withClient (setMuxCount (Just 1) (setCommandTimeout (Just (seconds 30)) (addressed server))) $ \client -> do
          run client Commands.ping
          before <- live
          -- The server answers none of the commands meanwhile.
          _ <- Server.command server ["CLIENT", "PAUSE", "60000", "WRITE"]
          started <- forM [1 .. count] $ \number -> start client (Commands.incr ("counter:" <> Char8.pack (show number)))
          eventuallyReturns 20 [(count, 0)] $
            map (\mux -> (gaugeInFlight mux, gaugeQueuedBytes mux)) . concatMap gaugeConnections . snapshotNodes <$> clientSnapshot client
          during <- live
          _ <- Server.command server ["CLIENT", "UNPAUSE"]
          results <- sequence started
          sum results `shouldBe` fromIntegral count
          (during - before) `div` fromIntegral count `shouldSatisfy` (< most)

  it "a dedicated connection takes little memory, however many there are" $
    withServer serverDefaults $ \server ->
      withClient (setMaxDedicated 300 (addressed server)) $ \client -> do
        each <- ofEach (\action -> withDedicated client AnyPrimary $ \own -> runOn own Commands.ping >> action)
        -- On a busy machine each of two threads may keep a piece of stack of 32 kB.
        each `shouldSatisfy` (< 100 * 1000)

  it "a client with a shared connection takes little memory, however many there are" $
    withServer serverDefaults $ \server -> do
      each <- ofEach (\action -> withClient (setMuxCount (Just 1) (addressed server)) $ \client -> run client Commands.ping >> action)
      each `shouldSatisfy` (< 700 * 1000)
  where
    count = 10000 :: Int

-- | Starts a command, and returns what waits for its result; with the bound for each, in bytes.
inFlight :: [(String, Client -> Command Int64 -> IO (IO Int64), Word64)]
inFlight =
  [ ("submitted", \client command -> awaitReply <$> submit client command, 1000),
    ("while its caller waits", \client command -> wait <$> async (run client command), 3000)
  ]

-- | The live bytes of each of 200 that are held beside ten others.
ofEach :: (IO Word64 -> IO Word64) -> IO Word64
ofEach holding = (\few many -> (many - few) `div` 200) <$> liveBeside 10 <*> liveBeside 210
  where
    liveBeside number = iterate holding live !! number

live :: IO Word64
live = performMajorGC >> gcdetails_live_bytes . gc <$> getRTSStats
