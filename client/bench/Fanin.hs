-- | Takes the messages of one channel, for @lab/fanin@, which compares it with C.
--
-- > fanin PORT COUNT     says "ready", takes so many messages, and says how it went
-- > fanin --iters 1      nothing, unmeasured
--
-- It prints the nanoseconds from the first message to the last, the nanoseconds of processor time
-- in between, and the bytes of all payloads.
module Main (main) where

import Control.Monad (when)
import Data.ByteString qualified as ByteString
import Data.Foldable (foldl', toList)
import GHC.Clock (getMonotonicTimeNSec)
import Redis.Client
import Redis.Config
import Redis.Subscription
import System.CPUTime (getCPUTime)
import System.Environment (getArgs)
import System.Exit (die)
import System.IO (BufferMode (LineBuffering), hSetBuffering, stdout)
import Text.Read (readMaybe)

main :: IO ()
main =
  getArgs >>= \case
    ["--iters", _] -> pure ()
    [port, count] | Just number <- readMaybe port, Just wanted <- readMaybe count -> hSetBuffering stdout LineBuffering *> taking (standaloneConfig "127.0.0.1" number) wanted
    _ -> die "fanin: PORT COUNT, or --iters 1"

taking :: Config -> Int -> IO ()
taking config wanted =
  withClient config $ \client ->
    withSubscriptionOf options client (channel "fanin") $ \subscription -> do
      putStrLn "ready"
      first <- nextEvent subscription
      began <- getMonotonicTimeNSec
      spentBefore <- getCPUTime
      (count, bytes) <- go subscription (1 :: Int) (sizeOf first)
      ended <- getMonotonicTimeNSec
      spent <- getCPUTime
      when (count /= wanted) (die ("fanin: took " <> show count))
      putStrLn (unwords [show (ended - began), show ((spent - spentBefore) `quot` 1000), show bytes])
  where
    go subscription !count !bytes
      | count >= wanted = pure (count, bytes)
      | otherwise = do
        events <- toList <$> nextEvents subscription
        go subscription (count + length events) (foldl' (\sum' event -> sum' + sizeOf event) bytes events)
    -- The queue is short: the garbage collector copies the messages in it.
    options = subscriptionDefaults {subscriptionQueue = 4096, subscriptionWhenFull = BackPressure}
    sizeOf = \case
      Message message -> ByteString.length (messagePayload message)
      Gap _ -> 0
