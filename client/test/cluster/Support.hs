-- | Helpers of the cluster tests: configurations with short times, limits on every test, and an
-- audit of commands under load.
module Support
  ( -- * Tests
    limited,
    settled,

    -- * Configurations
    impatient,
    clusterOf,
    preferringReplicas,
    liveConfig,
    addressEndpoint,
    expectError,
    clusterReason,

    -- * Keys
    keyIn,
    keysIn,
    slotNumberOf,

    -- * Audits
    Audit (..),
    audited,
    verifyCounters,
    verifyNoneTwice,
    verifyTokens,
  )
where

import Control.Concurrent (forkIO)
import Control.Concurrent.Async (forConcurrently)
import Control.Concurrent.STM
import Control.Exception (finally)
import Control.Monad (forM_, unless, void)
import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Redis
import Redis.Commands qualified as Redis
import Redis.Internal.Protocol.Slot (keySlot, slotNumber)
import Redis.TestKit.Address (Address (..))
import Redis.TestKit.Wait
import Test.Hspec hiding (after, before)

-- | Fails the test if it takes longer than a minute.
limited :: HasCallStack => IO a -> IO a
limited = within 60

-- | Fails the test if it leaves a descriptor behind.
settled :: HasCallStack => IO a -> IO a
settled test = do
  before <- openDescriptors
  result <- test
  result <$ descriptorsReturnTo 10 before

-- | Short times, so that tests of failures are short. One connection per node, so that commands can
-- be counted.
impatient :: Config -> Config
impatient =
  setConnectTimeout (seconds 1)
    . setCommandTimeout (Just (seconds 3))
    . setBackoff backoffDefaults {backoffFirst = seconds 0.005, backoffCap = seconds 0.1}
    . setRefreshThrottle (seconds 0.1)
    . setMuxCount (Just 1)

-- | The configuration for a cluster of fake nodes, which speak RESP2.
clusterOf :: [Endpoint] -> Config
clusterOf = \case
  first : rest -> setProtocol OnlyResp2 (impatient (clusterConfig (first :| rest)))
  [] -> impatient (clusterConfig (TcpEndpoint "127.0.0.1" 1 :| []))

preferringReplicas :: [Endpoint] -> Config
preferringReplicas = setReadFrom PreferReplica . clusterOf

-- | The configuration for a cluster whose seeds are at these addresses.
liveConfig :: [Address] -> Config
liveConfig addresses = case map addressEndpoint addresses of
  first : rest -> impatient (clusterConfig (first :| rest))
  [] -> clusterOf []

addressEndpoint :: Address -> Endpoint
addressEndpoint = \case
  TcpAddress host port -> TcpEndpoint (Char8.pack host) (fromIntegral port)
  UnixAddress path -> UnixEndpoint path

-- | The error of an action that must end with one.
expectError :: (HasCallStack, Show a) => Either Error a -> IO Error
expectError = \case
  Left problem -> pure problem
  Right value -> failure ("expected an error, got " <> show value)

-- | The cause of a routing failure, if the error is one.
clusterReason :: Error -> Maybe RoutingCause
clusterReason = \case
  RoutingError RoutingFailure {routingCause = cause} -> Just cause
  _ -> Nothing

slotNumberOf :: ByteString -> Int
slotNumberOf = slotNumber . keySlot

-- | A key with this prefix whose slot satisfies the condition.
keyIn :: ByteString -> (Int -> Bool) -> ByteString
keyIn prefix wanted = case keysIn prefix wanted of
  key : _ -> key
  [] -> prefix

-- | All keys with this prefix whose slots satisfy the condition: infinitely many if any slot does.
keysIn :: ByteString -> (Int -> Bool) -> [ByteString]
keysIn prefix wanted =
  [key | n <- [1 :: Int ..], let key = prefix <> Char8.pack (show n), wanted (slotNumberOf key)]

-- | The outcome of a load.
data Audit = Audit
  { -- | Per counter: how many increments were answered, and how many more may have run.
    auditCounters :: [(ByteString, Int, Int)],
    -- | The last token whose write was answered, by key.
    auditTokens :: [(ByteString, ByteString)],
    -- | Descriptions of wrong replies.
    auditWrong :: [String],
    -- | The errors of failed commands.
    auditFailed :: [Error],
    auditCommands :: Int
  }

-- | Runs commands on the given number of threads while an action runs. Afterwards every thread must
-- end. Each thread has a counter of its own, and keys of its own, to which it writes values that no
-- other command ever writes.
audited :: HasCallStack => Client -> ByteString -> Int -> IO () -> IO Audit
audited client prefix threads action = do
  over <- newTVarIO False
  started <- newTVarIO (0 :: Int)
  results <- newTVarIO Nothing
  void . forkIO $ do
    audits <- forConcurrently [1 .. threads] (worker over started)
    atomically (writeTVar results (Just audits))
  -- Every thread is at work before the action begins.
  within 10 (atomically (readTVar started >>= check . (>= threads)))
  action `finally` atomically (writeTVar over True)
  audits <- within 15 (atomically (readTVar results >>= maybe retry pure))
  pure
    Audit
      { auditCounters = concatMap auditCounters audits,
        auditTokens = concatMap auditTokens audits,
        auditWrong = concatMap auditWrong audits,
        auditFailed = concatMap auditFailed audits,
        auditCommands = sum (map auditCommands audits)
      }
  where
    worker over started thread = go (0 :: Int) (0 :: Int) (0 :: Int) [] [] []
      where
        name = prefix <> ":" <> Char8.pack (show thread)
        counter = name <> ":counter"
        go turn done maybeDone tokens wrong failed = do
          stop <- readTVarIO over
          if stop && turn > 0
            then
              pure
                Audit
                  { auditCounters = [(counter, done, maybeDone)],
                    auditTokens = tokens,
                    auditWrong = wrong,
                    auditFailed = failed,
                    auditCommands = turn * 4
                  }
            else do
              let key = name <> ":" <> Char8.pack (show (turn `mod` 50))
                  token = name <> "=" <> Char8.pack (show turn)
              -- Leaves the servers time to exchange their heartbeats.
              pause 0.002
              counted <- tryRun client (Redis.incr counter)
              echoed <- tryRun client (Redis.echo token)
              written <- tryRun client (Redis.set key token)
              readBack <- tryRun client (Redis.get key)
              if turn == 0 then atomically (modifyTVar' started (+ 1)) else pure ()
              let strayEcho = ["echo of " <> show token <> ": " <> show other | Right other <- [echoed], other /= token]
                  strayRead = case (written, readBack) of
                    -- A fail-over may lose an acknowledged write, but it must not deliver another
                    -- command's reply.
                    (_, Right (Just other)) | not ((name <> "=") `Char8.isPrefixOf` other) -> [show key <> " is " <> show other]
                    _ -> []
                  strayCount = case counted of
                    Right n | n < 1 || n > fromIntegral (turn + 1) -> [show counter <> " says " <> show n]
                    _ -> []
                  problems = [problem | Left problem <- [void counted, void echoed, written, void readBack]]
              go
                (turn + 1)
                (if either (const False) (const True) counted then done + 1 else done)
                (if either ((== MaybeExecuted) . errorDelivery) (const False) counted then maybeDone + 1 else maybeDone)
                (case written of Right () -> (key, token) : filter ((/= key) . fst) tokens; Left _ -> filter ((/= key) . fst) tokens)
                (strayEcho <> strayRead <> strayCount <> wrong)
                (problems <> failed)

-- | Checks that no increment was lost and none was applied twice: each counter holds at least the
-- answered increments, and at most those plus the ones that may have run.
verifyCounters :: HasCallStack => Client -> Audit -> IO ()
verifyCounters client audit = do
  auditWrong audit `shouldBe` []
  forM_ (auditCounters audit) $ \(counter, done, maybeDone) -> do
    held <- run client (Redis.get counter)
    let value = maybe 0 fst (held >>= Char8.readInt)
    unless (done <= value && value <= done + maybeDone) $
      failure (show counter <> " holds " <> show value <> ", answered " <> show done <> ", in doubt " <> show maybeDone)

-- | Checks that no increment was applied twice, and that no reply was another command's.
verifyNoneTwice :: HasCallStack => Client -> Audit -> IO ()
verifyNoneTwice client audit = do
  auditWrong audit `shouldBe` []
  forM_ (auditCounters audit) $ \(counter, done, maybeDone) -> do
    held <- run client (Redis.get counter)
    let value = maybe 0 fst (held >>= Char8.readInt)
    value `shouldSatisfy` (<= done + maybeDone)

-- | Checks that each key holds the value that was acknowledged last.
verifyTokens :: HasCallStack => Client -> Audit -> IO ()
verifyTokens client audit =
  forM_ (auditTokens audit) $ \(key, token) ->
    run client (Redis.get key) `shouldReturn` Just token
