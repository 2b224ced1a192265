-- | Waiting for conditions instead of for time to pass, and noticing when a
-- test leaves something behind.
--
-- A test that sleeps is either slow or wrong. These helpers look again and
-- again until what they wait for is true, and when the patience ends they say
-- what did not happen and which line waited for it.
module Redis.TestKit.Wait
  ( -- * Conditions
    eventually,
    eventuallyJust,
    eventuallyReturns,

    -- * Deadlines
    within,
    upTo,
    Seconds,
    pause,

    -- * What is left behind
    openDescriptors,
    descriptorsReturnTo,

    -- * Failure
    TestKitFailure (..),
    failure,
  )
where

import Control.Concurrent (threadDelay)
import Control.Exception (Exception (displayException), throwIO)
import GHC.Clock (getMonotonicTime)
import GHC.Stack (HasCallStack, callStack, prettyCallStack)
import System.Directory (listDirectory)
import System.Timeout (timeout)

-- | A span of time.
type Seconds = Double

-- | Something the testkit was asked to do, or to wait for, did not come true.
newtype TestKitFailure = TestKitFailure String
  deriving stock (Eq)

instance Show TestKitFailure where
  show (TestKitFailure text) = text

instance Exception TestKitFailure where
  displayException (TestKitFailure text) = text

-- | Throws a 'TestKitFailure' with the text and the place of the caller.
failure :: HasCallStack => String -> IO a
failure text =
  throwIO (TestKitFailure (text <> "\n" <> prettyCallStack callStack))

-- | Blocks until the condition holds; a 'TestKitFailure' with the description
-- if it does not within so many seconds. Looks every 1 to 20 ms, and at least
-- once. An exception of the condition itself ends the wait.
eventually :: HasCallStack => Seconds -> String -> IO Bool -> IO ()
eventually patience description condition =
  eventuallyJust patience description $
    (\holds -> if holds then Just () else Nothing) <$> condition

-- | The same for a condition that brings a value along.
eventuallyJust :: HasCallStack => Seconds -> String -> IO (Maybe a) -> IO a
eventuallyJust patience description look = do
  start <- getMonotonicTime
  let go delay =
        look >>= \case
          Just found -> pure found
          Nothing -> do
            now <- getMonotonicTime
            if now - start > patience
              then failure ("not within " <> show patience <> " s: " <> description)
              else do
                threadDelay delay
                go (min 20000 (delay * 3 `div` 2))
  go 1000

-- | Blocks until the action returns the expected value; the failure shows the
-- last value seen.
eventuallyReturns ::
  (HasCallStack, Eq a, Show a) => Seconds -> a -> IO a -> IO ()
eventuallyReturns patience expected look = do
  start <- getMonotonicTime
  let go delay = do
        seen <- look
        now <- getMonotonicTime
        if seen == expected
          then pure ()
          else
            if now - start > patience
              then
                failure $
                  "not within "
                    <> show patience
                    <> " s: expected "
                    <> show expected
                    <> ", last seen "
                    <> show seen
              else do
                threadDelay delay
                go (min 20000 (delay * 3 `div` 2))
  go 1000

-- | Runs an action that must finish in so many seconds; cancels it and throws
-- a 'TestKitFailure' otherwise.
within :: HasCallStack => Seconds -> IO a -> IO a
within seconds action =
  upTo seconds action
    >>= maybe (failure ("did not finish within " <> show seconds <> " s")) pure

-- | The same for one that may take longer: 'Nothing' when it did, and was cancelled.
upTo :: Seconds -> IO a -> IO (Maybe a)
upTo = timeout . microseconds

-- | Blocks for a span. For pacing a load, never for waiting on an effect.
pause :: Seconds -> IO ()
pause = threadDelay . microseconds

microseconds :: Seconds -> Int
microseconds seconds = round (seconds * 1e6)

-- | How many file descriptors this process holds open (Linux).
openDescriptors :: IO Int
openDescriptors = do
  entries <- listDirectory "/proc/self/fd"
  -- One of them is the listing's own.
  pure (length entries - 1)

-- | Blocks until no more than so many descriptors are open; fails after the
-- given seconds. Compare with an 'openDescriptors' taken before the test.
descriptorsReturnTo :: HasCallStack => Seconds -> Int -> IO ()
descriptorsReturnTo patience before =
  eventually patience ("open descriptors back at " <> show before) $
    (<= before) <$> openDescriptors
