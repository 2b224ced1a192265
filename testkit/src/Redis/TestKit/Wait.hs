-- | Waiting for conditions instead of for time to pass, and finding out whether a test leaves
-- something behind.
--
-- A test that sleeps is either slow or wrong. These helpers check a condition again and again until
-- it holds. When the time is over, they report what did not happen and which line waited for it.
module Redis.TestKit.Wait
  ( -- * Conditions
    eventually,
    eventuallyJust,
    eventuallyReturns,

    -- * Deadlines
    within,
    upTo,
    testWithin,
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
import Control.Concurrent.Async (withAsync)
import Control.Exception (Exception (displayException), IOException, catch, throwIO, try)
import Data.Foldable (for_)
import Data.IORef (modifyIORef', newIORef, readIORef, writeIORef)
import Data.List (intercalate)
import GHC.Clock (getMonotonicTime)
import GHC.Stack (HasCallStack, callStack, prettyCallStack)
import Redis.TestKit.Descendants (descendants)
import System.Directory (getSymbolicLinkTarget, listDirectory)
import System.Timeout (timeout)

-- | A span of time.
type Seconds = Double

-- | The testkit could not do, or waited in vain for, what the test requested.
newtype TestKitFailure = TestKitFailure String
  deriving stock (Eq)

instance Show TestKitFailure where
  show (TestKitFailure text) = text

instance Exception TestKitFailure where
  displayException (TestKitFailure text) = text

-- | Throws a 'TestKitFailure' with the text and the caller's place in the source.
failure :: HasCallStack => String -> IO a
failure text =
  throwIO (TestKitFailure (text <> "\n" <> prettyCallStack callStack))

-- | Blocks until the condition holds; throws a 'TestKitFailure' with the description if it does not
-- within this many seconds. Checks every 1 to 20 ms, and at least once. An exception of the
-- condition itself ends the wait.
eventually :: HasCallStack => Seconds -> String -> IO Bool -> IO ()
eventually limit description condition =
  eventuallyJust limit description $
    (\holds -> if holds then Just () else Nothing) <$> condition

-- | Like 'eventually', for a condition that returns a value.
eventuallyJust :: HasCallStack => Seconds -> String -> IO (Maybe a) -> IO a
eventuallyJust limit description look = do
  start <- getMonotonicTime
  let go delay =
        look >>= \case
          Just found -> pure found
          Nothing -> do
            now <- getMonotonicTime
            if now - start > limit
              then failure ("not within " <> show limit <> " s: " <> description)
              else do
                threadDelay delay
                go (min 20000 (delay * 3 `div` 2))
  go 1000

-- | Blocks until the action returns the expected value; the failure shows the
-- last value seen.
eventuallyReturns ::
  (HasCallStack, Eq a, Show a) => Seconds -> a -> IO a -> IO ()
eventuallyReturns limit expected look = do
  start <- getMonotonicTime
  let go delay = do
        seen <- look
        now <- getMonotonicTime
        if seen == expected
          then pure ()
          else
            if now - start > limit
              then
                failure $
                  "not within "
                    <> show limit
                    <> " s: expected "
                    <> show expected
                    <> ", last seen "
                    <> show seen
              else do
                threadDelay delay
                go (min 20000 (delay * 3 `div` 2))
  go 1000

-- | Runs an action that must finish within this many seconds; otherwise cancels it and throws a
-- 'TestKitFailure'.
within :: HasCallStack => Seconds -> IO a -> IO a
within seconds action =
  upTo seconds action
    >>= maybe (failure ("did not finish within " <> show seconds <> " s")) pure

-- | Like 'within', for an action that may take longer: 'Nothing' if it did, and was cancelled.
upTo :: Seconds -> IO a -> IO (Maybe a)
upTo = timeout . microseconds

-- | Like 'within', for a whole test. The failure also says what processes of this one ran two
-- seconds before the time was over, and for how long this process itself stood still.
testWithin :: HasCallStack => Seconds -> IO a -> IO a
testWithin limit action = do
  stood <- newIORef 0
  seen <- newIORef []
  let beat = do
        begun <- getMonotonicTime
        pause 1
        now <- getMonotonicTime
        modifyIORef' stood (max (now - begun - 1))
      look = do
        for_ [3 .. limit] (const beat)
        descendants >>= writeIORef seen
  withAsync look (const (upTo limit action)) >>= \case
    Just result -> pure result
    Nothing -> do
      still <- readIORef stood
      processes <- readIORef seen
      failure . intercalate "\n" $
        ("did not finish within " <> show limit <> " s; this process stood still for up to " <> show still <> " s; its processes were:") :
        if null processes then ["none"] else processes

-- | Blocks for this time. For pacing a load, never for waiting for an effect.
pause :: Seconds -> IO ()
pause = threadDelay . microseconds

microseconds :: Seconds -> Int
microseconds seconds = round (seconds * 1e6)

-- | How many file descriptors this process holds open (Linux).
openDescriptors :: IO Int
openDescriptors = do
  entries <- listDirectory "/proc/self/fd"
  -- One of them belongs to the listing itself.
  pure (length entries - 1)

-- | Blocks until no more than this many descriptors are open; fails after the given seconds, and
-- says what is open. Compare with the result of 'openDescriptors' before the test.
descriptorsReturnTo :: HasCallStack => Seconds -> Int -> IO ()
descriptorsReturnTo limit before =
  eventually limit ("open descriptors back at " <> show before) ((<= before) <$> openDescriptors)
    `catch` \(TestKitFailure text) -> do
      open <- describeDescriptors
      throwIO (TestKitFailure (text <> "\nopen: " <> intercalate ", " open))

-- What each open descriptor of this process leads to.
describeDescriptors :: IO [String]
describeDescriptors = listDirectory "/proc/self/fd" >>= mapM describe
  where
    describe entry =
      either (\(_ :: IOException) -> entry) (\target -> entry <> " " <> target)
        <$> try (getSymbolicLinkTarget ("/proc/self/fd/" <> entry))
