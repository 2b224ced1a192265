-- | Is what was acknowledged still there? Asked of a server that promises it.
--
-- Callers write keys that nobody has written before, and count what is
-- acknowledged. In the middle of that the server ends. It is started again, and
-- every key that was acknowledged must be there, with its value; one that was
-- not may be. It ends in one of two ways:
--
-- * It is killed (SIGKILL), and begins again with its files. That proves that
--   the log was written before the reply, and that it can be read again, however
--   long it is. What a killed process has handed to the kernel stays, whether or
--   not it has reached the disk: a log that is never synchronised passes.
-- * The power of its disk is cut ("Redis.TestKit.Disk"), and it begins with what
--   was synchronised by then. That proves that the log was synchronised before
--   the reply. Whether the real disk then has it only a real failure tells.
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
import Tool.Bench.Cpu (monotonic)
import Tool.Failure (unavailable)
import Tool.Span (microsIn, renderSpan, secondsIn)
import Tool.Text (thousands)

-- | What was found.
data Durability = Durability
  { -- | Whether it was the power of the disk that ended; else the server was
    -- killed.
    durabilityPowerCut :: Bool,
    -- | Writes that were acknowledged before that.
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
    && (durabilityExpiring found || durabilityFound found >= kept)
  where
    kept = durabilityEarlier found + durabilityAcknowledged found

-- | In one line.
durabilityText :: Durability -> String
durabilityText found =
  (if durabilityPowerCut found then "power cut" else "killed")
    <> " in the middle of writing: "
    <> thousands (durabilityAcknowledged found)
    <> " keys acknowledged, "
    <> thousands (durabilityMissing found)
    <> " missing, "
    <> thousands (durabilityWrong found)
    <> " wrong; "
    <> thousands (durabilityEarlier found)
    <> " keys from before, "
    <> thousands (durabilityFound found)
    <> " found; restarted in "
    <> renderSpan (durabilityRestart found)

-- | Writes for so many seconds with so many callers, longer if nothing is
-- acknowledged by then, ends the server, starts it again, and reads. With a
-- disk, which must be the server's, the power of that ends; without, the server
-- is killed. The flag says whether the keys that are there expire. Blocks for
-- all that. Throws when the server does not start again.
checkDurability :: Maybe Disk -> Bool -> Double -> Int -> Server -> IO Durability
checkDurability disk expiring seconds callers server = do
  earlier <- keyCount
  count <- newIORef 0
  acknowledged <- Redis.withClient config $ \client ->
    withAsync (forConcurrently [1 .. callers] (write client count)) $ \writing -> do
      threadDelay (microsIn seconds)
      -- With nothing acknowledged there would be nothing to be lost.
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
    Redis.withClient config $ \client -> do
      counts <- traverse (verify client) (zip [1 ..] acknowledged)
      pure (sum (map fst counts), sum (map snd counts))
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
    -- Straight to the server: what stands before it is not asked here.
    config =
      Config.standaloneConfig
        (Char8.pack (serverHost server))
        (fromIntegral (serverPort server))
    keyCount =
      command server ["DBSIZE"] >>= \case
        Number held -> pure (fromInteger held)
        other -> unavailable ("DBSIZE is answered with " <> show other)
    loaded = withServerConnection server $ \connection ->
      requestOk connection ["INFO", "persistence"] >>= \case
        Text text -> pure (Map.lookup "loading" (infoFields text) == Just "0")
        _ -> pure False

-- How many were acknowledged, one after the other, until one was not; and all
-- that are, of all callers, while they are.
write :: Client -> IORef Int -> Int -> IO Int
write client count caller = go 0
  where
    go :: Int -> IO Int
    go number =
      Redis.tryRun client (Commands.set (keyOf caller number) (valueOf caller number)) >>= \case
        Left _ -> pure number
        Right _ -> atomicModifyIORef' count (\known -> (known + 1, ())) >> go (number + 1)

-- How many are missing, and how many wrong.
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
            other =
              length
                [ ()
                  | (number, Just value) <- zip numbers values,
                    value /= valueOf caller number
                ]
        go (missing + lost) (wrong + other) (from + 1000)

keyOf, valueOf :: Int -> Int -> ByteString
keyOf caller number = Char8.pack ("durability:" <> show caller <> ":" <> show number)
valueOf caller number = Char8.pack (show (caller * 1000003 + number))
