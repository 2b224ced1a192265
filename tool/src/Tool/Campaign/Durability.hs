-- | Is what was acknowledged still there? Asked of a server that promises it.
--
-- Callers write keys that nobody has written before, and count what is
-- acknowledged. In the middle of that the server is killed (SIGKILL). It is
-- started again on the same files, and every key that was acknowledged must be
-- there, with its value; one that was not may be.
--
-- This proves that the log was written before the reply, and that it can be
-- read again. It is no power failure: what a killed process has handed to the
-- kernel stays, whether or not it has reached the disk.
module Tool.Campaign.Durability
  ( Durability (..),
    durabilityHolds,
    durabilityText,
    checkDurability,
  )
where

import Control.Concurrent (threadDelay)
import Control.Concurrent.Async (forConcurrently, withAsync)
import Control.Concurrent.Async qualified as Async
import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Data.Map.Strict qualified as Map
import Redis (Client)
import Redis qualified
import Redis.Commands qualified as Commands
import Redis.Config qualified as Config
import Redis.TestKit.Command (Reply (..), infoFields, requestOk)
import Redis.TestKit.Server
import Redis.TestKit.Wait (eventually)
import Tool.Bench.Cpu (monotonic)
import Tool.Failure (unavailable)
import Tool.Span (renderSpan)
import Tool.Text (thousands)

-- | What was found.
data Durability = Durability
  { -- | Writes that were acknowledged before the server was killed.
    durabilityAcknowledged :: Int,
    -- | Of those, how many keys are not there any more.
    durabilityMissing :: Int,
    -- | And how many have another value.
    durabilityWrong :: Int,
    -- | How many keys there were before these writes.
    durabilityEarlier :: Int,
    -- | Whether those may be gone by now, because they expire.
    durabilityExpiring :: Bool,
    -- | How many keys there are afterwards, in all.
    durabilityFound :: Int,
    -- | Seconds from the restart to the first command that is served.
    durabilityRestart :: Double
  }
  deriving stock (Eq, Show)

-- | Whether nothing that was acknowledged is lost.
durabilityHolds :: Durability -> Bool
durabilityHolds found =
  durabilityMissing found == 0
    && durabilityWrong found == 0
    && (durabilityExpiring found || durabilityFound found >= durabilityEarlier found + durabilityAcknowledged found)

-- | In one line.
durabilityText :: Durability -> String
durabilityText found =
  "killed in the middle of writing: " <> thousands (durabilityAcknowledged found) <> " keys acknowledged, "
    <> thousands (durabilityMissing found)
    <> " missing, "
    <> thousands (durabilityWrong found)
    <> " wrong; "
    <> thousands (durabilityEarlier found)
    <> " keys from before, "
    <> thousands (durabilityFound found)
    <> " found; restarted in "
    <> renderSpan (durabilityRestart found)

-- | Writes for so many seconds with so many callers, kills the server, starts
-- it again, and reads. The flag says whether the keys that are there expire. Blocks
-- for all that. Throws when the server does not start again.
checkDurability :: Bool -> Double -> Int -> Server -> IO Durability
checkDurability expiring seconds callers server = do
  earlier <- keyCount
  acknowledged <- Redis.withClient config $ \client ->
    withAsync (forConcurrently [1 .. callers] (write client)) $ \writing -> do
      threadDelay (round (seconds * 1e6))
      kill9 server
      Async.wait writing
  begun <- monotonic
  restart server
  eventually 120 "the server has read its files" loaded
  ended <- monotonic
  found <- keyCount
  (missing, wrong) <-
    Redis.withClient config $ \client -> do
      counts <- traverse (verify client) (zip [1 ..] acknowledged)
      pure (sum (map fst counts), sum (map snd counts))
  pure
    Durability
      { durabilityAcknowledged = sum acknowledged,
        durabilityMissing = missing,
        durabilityWrong = wrong,
        durabilityEarlier = earlier,
        durabilityExpiring = expiring,
        durabilityFound = found,
        durabilityRestart = fromIntegral (ended - begun) / 1e9
      }
  where
    -- Straight to the server: what stands before it is not asked here.
    config = Config.standaloneConfig (Char8.pack (serverHost server)) (fromIntegral (serverPort server))
    keyCount =
      command server ["DBSIZE"] >>= \case
        Number held -> pure (fromInteger held)
        other -> unavailable ("DBSIZE is answered with " <> show other)
    loaded = withServerConnection server $ \connection ->
      requestOk connection ["INFO", "persistence"] >>= \case
        Text text -> pure (Map.lookup "loading" (infoFields text) == Just "0")
        _ -> pure False

-- How many were acknowledged, one after the other, until one was not.
write :: Client -> Int -> IO Int
write client caller = go 0
  where
    go :: Int -> IO Int
    go number =
      Redis.tryRun client (Commands.set (keyOf caller number) (valueOf caller number))
        >>= either (const (pure number)) (const (go (number + 1)))

-- How many are missing, and how many wrong.
verify :: Client -> (Int, Int) -> IO (Int, Int)
verify client (caller, acknowledged) = go 0 0 0
  where
    go missing wrong from
      | from >= acknowledged = pure (missing, wrong)
      | otherwise = do
        let numbers = [from .. min acknowledged (from + 1000) - 1]
        values <- traverse (Redis.submit client . Commands.get . keyOf caller) numbers >>= traverse Redis.awaitReply
        let lost = length [() | Nothing <- values]
            other = length [() | (number, Just value) <- zip numbers values, value /= valueOf caller number]
        go (missing + lost) (wrong + other) (from + 1000)

keyOf, valueOf :: Int -> Int -> ByteString
keyOf caller number = Char8.pack ("durability:" <> show caller <> ":" <> show number)
valueOf caller number = Char8.pack (show (caller * 1000003 + number))
