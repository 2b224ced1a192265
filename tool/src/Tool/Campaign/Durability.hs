-- | Checks whether acknowledged writes survive. Clients write new keys; in the middle of that the
-- server is killed, or the power of its disk is cut ("Redis.TestKit.Disk"), and every
-- acknowledged key must be there after a restart. Data that a killed process has passed to the
-- kernel stays: only the power cut shows that the log was synchronised before the reply.
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
import Data.Bifunctor (bimap)
import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Data.Foldable (for_)
import Data.IORef (IORef, atomicModifyIORef', newIORef, readIORef)
import Data.Map.Strict qualified as Map
import Data.Maybe (isJust)
import Redis (Client)
import Redis qualified
import Redis.Commands qualified as Commands
import Redis.Config qualified as Config
import Redis.TestKit.Command (Reply (..), infoFields, requestOk)
import Redis.TestKit.Disk (Disk, cutPower, restoreDisk)
import Redis.TestKit.Server
import Redis.TestKit.Wait (eventually)
import Tool.Bench.Time (monotonic)
import Tool.Failure (unavailable)
import Tool.Span (microsIn, renderSpan, secondsIn)
import Tool.Text (thousands)

-- | The result of a check.
data Durability = Durability
  { -- | Whether the power of the disk was cut. Otherwise the server was killed.
    durabilityPowerCut :: Bool,
    -- | Writes that were acknowledged before the end.
    durabilityAcknowledged :: Int,
    -- | The number of acknowledged keys that are missing.
    durabilityMissing :: Int,
    -- | The number of acknowledged keys with another value.
    durabilityWrong :: Int,
    -- | The number of keys before these writes.
    durabilityEarlier :: Int,
    -- | Whether the earlier keys may be gone by now, because they expire.
    durabilityExpiring :: Bool,
    -- | The number of all keys afterwards.
    durabilityFound :: Int,
    -- | Seconds from the restart until the server serves a command.
    durabilityRestart :: Double
  }
  deriving stock (Eq, Show)

-- | Whether no acknowledged write is lost.
durabilityHolds :: Durability -> Bool
durabilityHolds found =
  durabilityMissing found == 0
    && durabilityWrong found == 0
    && (durabilityExpiring found || durabilityFound found >= kept)
  where
    kept = durabilityEarlier found + durabilityAcknowledged found

-- | The result in one line.
durabilityText :: Durability -> String
durabilityText found =
  concat
    [ if durabilityPowerCut found then "power cut" else "killed",
      " in the middle of writing: ",
      thousands (durabilityAcknowledged found) <> " keys acknowledged, ",
      thousands (durabilityMissing found) <> " missing, ",
      thousands (durabilityWrong found) <> " wrong; ",
      thousands (durabilityEarlier found) <> " keys from before, ",
      thousands (durabilityFound found) <> " found; restarted in ",
      renderSpan (durabilityRestart found)
    ]

-- | Writes with this number of callers for this number of seconds, or longer if no write is
-- acknowledged by then; ends the server, starts it again, and reads. With a disk, which must be the
-- server's, the power of the disk is cut; without one, the server is killed. The flag says whether
-- the existing keys expire. Blocks for all that. Throws if the server does not start again.
checkDurability :: Maybe Disk -> Bool -> Double -> Int -> Server -> IO Durability
checkDurability disk expiring seconds callers server = do
  earlier <- keyCount
  count <- newIORef 0
  acknowledged <- Redis.withClient config $ \client ->
    withAsync (forConcurrently [1 .. callers] (write client count)) $ \writing -> do
      threadDelay (microsIn seconds)
      -- Without an acknowledged write the check could find no loss.
      eventually 20 "a write is acknowledged" ((> 0) <$> readIORef count)
      for_ disk $ \it -> cutPower it callers (readIORef count)
      kill9 server
      Async.wait writing
  for_ disk restoreDisk
  begun <- monotonic
  restart server
  eventually 120 "the server has read its files" loaded
  ended <- monotonic
  found <- keyCount
  (missing, wrong) <-
    Redis.withClient config $ \client ->
      bimap sum sum . unzip <$> traverse (verify client) (zip [1 ..] acknowledged)
  pure
    Durability
      { durabilityPowerCut = isJust disk,
        durabilityAcknowledged = sum acknowledged,
        durabilityMissing = missing,
        durabilityWrong = wrong,
        durabilityEarlier = earlier,
        durabilityExpiring = expiring,
        durabilityFound = found,
        durabilityRestart = secondsIn (ended - begun)
      }
  where
    -- Straight to the server: this does not check what stands before it.
    config = Config.standaloneConfig (Char8.pack (serverHost server)) (fromIntegral (serverPort server))
    keyCount =
      command server ["DBSIZE"] >>= \case
        Number held -> pure (fromInteger held)
        other -> unavailable ("DBSIZE is answered with " <> show other)
    loaded = withServerConnection server $ \connection ->
      requestOk connection ["INFO", "persistence"] >>= \case
        Text text -> pure (Map.lookup "loading" (infoFields text) == Just "0")
        _ -> pure False

-- Writes one key after the other until a write is not acknowledged. Returns the number of
-- acknowledged writes; the counter has that of all callers meanwhile.
write :: Client -> IORef Int -> Int -> IO Int
write client count caller = go 0
  where
    go :: Int -> IO Int
    go number =
      Redis.tryRun client (Commands.set (keyOf caller number) (valueOf caller number)) >>= \case
        Left _ -> pure number
        Right _ -> atomicModifyIORef' count (\known -> (known + 1, ())) >> go (number + 1)

-- The numbers of missing and of wrong keys.
verify :: Client -> (Int, Int) -> IO (Int, Int)
verify client (caller, acknowledged) = go 0 0 0
  where
    go missing wrong from
      | from >= acknowledged = pure (missing, wrong)
      | otherwise = do
        let numbers = [from .. min acknowledged (from + 1000) - 1]
        replies <- traverse (Redis.submit client . Commands.get . keyOf caller) numbers
        values <- traverse Redis.awaitReply replies
        let lost = length [() | Nothing <- values]
            differs (number, value) = any (/= valueOf caller number) value
            other = length (filter differs (zip numbers values))
        go (missing + lost) (wrong + other) (from + 1000)

keyOf, valueOf :: Int -> Int -> ByteString
keyOf caller number = Char8.pack ("durability:" <> show caller <> ":" <> show number)
valueOf caller number = Char8.pack (show (caller * 1000003 + number))
