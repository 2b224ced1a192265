-- | The load of one run of a pair: a number of threads send one kind of command for some seconds.
-- Prints the number of commands, the duration, and the processor time.
--
-- Both revisions of a pair are measured with this source, so it uses only names that every revision
-- has: 'Redis.withClient', 'Redis.standaloneConfig', 'Redis.clusterConfig', 'Redis.run',
-- 'Redis.submit', 'awaitReply' (in "Names") and three commands. It is as thin as a load can be,
-- because its own cost is on both sides and makes a difference look smaller: keys are slices of one
-- buffer, replies are checked and dropped, and no clock is read per command.
--
-- > pair-load fill PLACE
-- > pair-load run PLACE OPERATION THREADS BATCH SECONDS WARMUP
--
-- PLACE is server:PORT or cluster:PORT, on this machine; OPERATION is get, set or mget. With a
-- batch of 1, a thread waits for each reply; it submits a larger batch completely and then waits
-- for its replies. A reply that is not the expected one ends the run with an error.
module Main (main) where

import Control.Concurrent (forkOn, newEmptyMVar, putMVar, takeMVar, threadDelay)
import Control.Exception (SomeException, throwIO, try)
import Control.Monad (forM, forM_, unless, (>=>))
import Data.ByteString (ByteString)
import Data.ByteString qualified as ByteString
import Data.ByteString.Char8 qualified as Char8
import Data.ByteString.Unsafe (unsafeDrop, unsafeTake)
import Data.IORef (IORef, newIORef, readIORef, writeIORef)
import Data.List.NonEmpty (NonEmpty ((:|)))
import Data.Word (Word64)
import Foreign.Marshal.Array (callocArray)
import Foreign.Ptr (Ptr)
import Foreign.Storable (peekElemOff, pokeElemOff)
import GHC.Clock (getMonotonicTimeNSec)
import Names (awaitReply)
import Redis qualified
import Redis.Commands qualified as Redis
import System.CPUTime (getCPUTime)
import System.Environment (getArgs)
import System.Exit (die)
import Text.Read (readMaybe)

-- | How much to send, and for how long.
data Load = Load
  { loadThreads :: Int,
    loadBatch :: Int,
    loadSeconds :: Double,
    loadWarmup :: Double
  }

-- | The command for a number, and whether a reply is the expected one.
data Work a = Work (Int -> Redis.Command a) (a -> Bool)

main :: IO ()
main =
  getArgs >>= \case
    ["fill", place] -> withPlace place fill
    ["run", place, operation, threads, batch, seconds, warmup]
      | Just load <- Load <$> positive threads <*> positive batch <*> positive seconds <*> positive warmup ->
        case operation of
          "get" -> withPlace place (measure load (Work (Redis.get . keyOf) whole))
          "set" -> withPlace place (measure load (Work (\number -> Redis.set (keyOf number) value) (const True)))
          "mget" -> withPlace place (measure load (Work (Redis.mget . keysFrom) wholeList))
          _ -> die "pair-load: the operation is get, set or mget"
    _ -> die "pair-load: fill PLACE | run PLACE OPERATION THREADS BATCH SECONDS WARMUP"
  where
    whole = maybe False ((== valueSize) . ByteString.length)
    wholeList found = length found == listLength && all whole found

positive :: (Read a, Num a, Ord a) => String -> Maybe a
positive text = case readMaybe text of
  Just number | number > 0 -> Just number
  _ -> Nothing

withPlace :: String -> (Redis.Client -> IO a) -> IO a
withPlace place action = case break (== ':') place of
  ("server", _ : text) | Just port <- readMaybe text -> Redis.withClient (Redis.standaloneConfig host port) action
  ("cluster", _ : text) | Just port <- readMaybe text -> Redis.withClient (Redis.clusterConfig (Redis.TcpEndpoint host port :| [])) action
  _ -> die "pair-load: a place is server:PORT or cluster:PORT"
  where
    host = "127.0.0.1"

-- Keys and values.

keyCount, keySize, valueSize, listLength :: Int
keyCount = 100000
keySize = 16
valueSize = 512
listLength = 100

allKeys :: ByteString
allKeys = ByteString.concat [Char8.pack ("key:" <> drop (length digits) "000000000000" <> digits) | number <- [0 .. keyCount - 1], let digits = show number]

keyOf :: Int -> ByteString
keyOf number = unsafeTake keySize (unsafeDrop (number * keySize) allKeys)

keysFrom :: Int -> NonEmpty ByteString
keysFrom number = keyOf number :| map keyOf (take (listLength - 1) (drop 1 (iterate following number)))

value :: ByteString
value = Char8.replicate valueSize 'v'

-- The step is a prime, so every thread uses every key.
following :: Int -> Int
following number = (number + 7919) `rem` keyCount

fill :: Redis.Client -> IO ()
fill client = forM_ [0, 500 .. keyCount - 1] $ \from -> do
  started <- forM [from .. min keyCount (from + 500) - 1] $ \number -> Redis.submit client (Redis.set (keyOf number) value)
  forM_ started awaitReply

-- Measuring.

-- | Sends the load, and prints the result as JSON: the commands of the measured time, and of the
-- whole run.
measure :: Load -> Work a -> Redis.Client -> IO ()
measure Load {loadThreads, loadBatch, loadSeconds, loadWarmup} work client = do
  counters <- callocArray (loadThreads * counterWords)
  stopped <- newIORef False
  ends <- forM [0 .. loadThreads - 1] $ \thread -> do
    end <- newEmptyMVar
    -- With -qm the runtime leaves threads where they are.
    _ <- forkOn thread (try (worker client work loadBatch stopped (Counter counters thread)) >>= putMVar end)
    pure end
  pause loadWarmup
  before <- look counters
  pause loadSeconds
  after <- look counters
  writeIORef stopped True
  forM_ ends (takeMVar >=> either (throwIO :: SomeException -> IO ()) pure)
  total <- done counters
  putStrLn $
    "{\"commands\": " <> show (momentDone after - momentDone before)
      <> (", \"wall_ns\": " <> show (momentWall after - momentWall before))
      <> (", \"cpu_ns\": " <> show (momentCpu after - momentCpu before))
      <> (", \"total\": " <> show total <> "}")
  where
    pause seconds = threadDelay (round (seconds * 1e6))
    done counters = sum <$> forM [0 .. loadThreads - 1] (counted . Counter counters)
    look counters = Moment <$> done counters <*> getMonotonicTimeNSec <*> ((`div` 1000) <$> getCPUTime)

-- | The state at one moment.
data Moment = Moment
  { momentDone :: Int,
    momentWall :: Word64,
    momentCpu :: Integer
  }

worker :: Redis.Client -> Work a -> Int -> IORef Bool -> Counter -> IO ()
worker client (Work command good) batch stopped counter@(Counter _ thread) = loop (thread * 6007 `rem` keyCount)
  where
    loop !number = do
      stop <- readIORef stopped
      unless stop $ (if batch == 1 then waiting number else batching number) >>= loop
    waiting number = do
      Redis.run client (command number) >>= settle
      pure (following number)
    batching number = do
      (started, next) <- submitted batch number
      forM_ started (awaitReply >=> settle)
      pure next
    submitted 0 number = pure ([], number)
    submitted left number = do
      first <- Redis.submit client (command number)
      (others, next) <- submitted (left - 1 :: Int) (following number)
      pure (first : others, next)
    settle reply
      | good reply = count counter
      | otherwise = throwIO (userError "pair-load: a reply is not the expected one")

-- The counters: each thread has a cache line of its own.

data Counter = Counter (Ptr Int) Int

counterWords :: Int
counterWords = 8

count :: Counter -> IO ()
count (Counter counters thread) = peekElemOff counters place >>= pokeElemOff counters place . (+ 1)
  where
    place = thread * counterWords

counted :: Counter -> IO Int
counted (Counter counters thread) = peekElemOff counters (thread * counterWords)
