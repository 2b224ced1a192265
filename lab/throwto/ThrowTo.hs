-- | Crashes the runtime of GHC with nothing but @base@: see docs/ghc-throwto.md.
--
-- Two threads throw to six others, which are masked from time to time. With @two@ both may throw to
-- the same thread at once. With @one@ the second waits until the exception of the first has
-- arrived; only this variant uses an MVar.
--
-- > ghc -O1 -threaded -rtsopts ThrowTo.hs
-- > ./ThrowTo two 20 +RTS -N2 -A16k -qg
module Main (main) where

import Control.Concurrent
import Control.Exception
import Control.Monad
import System.Environment (getArgs)

data Interrupt = Interrupt
  deriving (Show)

instance Exception Interrupt

-- | Allocates memory.
busy :: Int -> IO Int
busy = go []
  where
    go made 0 = evaluate (length made)
    go made left = go (left : made) (left - 1)

target :: Int -> IO ()
target number = mask $ \restore -> forever $ do
  _ <- try (restore (busy 60 >> yield)) :: IO (Either Interrupt ())
  uninterruptibleMask_ (busy (number * 37 `rem` 200 + 20))

thrower :: [IO ()] -> Int -> IO ()
thrower throws number =
  forM_ (cycle [1 .. 7]) $ \turn -> do
    sequence_ (take 2 (drop ((turn + number) `rem` 6) throws))
    replicateM_ turn yield

main :: IO ()
main = do
  arguments <- getArgs
  case arguments of
    ["two", seconds] -> run (read seconds) (pure id)
    ["one", seconds] -> run (read seconds) ((\free -> withMVar free . const) <$> newMVar ())
    _ -> fail "ThrowTo two|one SECONDS +RTS -N2 -A16k -qg"

-- | Runs for this number of seconds. Each target has a wrapper for throws to it.
run :: Int -> IO (IO () -> IO ()) -> IO ()
run seconds around = do
  throws <- forM [1 .. 6] $ \number -> do
    thread <- forkIO (target number)
    protect <- around
    pure (protect (throwTo thread Interrupt))
  forM_ [1, 2] (forkIO . thrower throws)
  threadDelay (seconds * 1000000)
  putStrLn "survived"
