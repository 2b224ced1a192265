-- | No test may take for ever.
module TestTimeout
  ( timed,
  )
where

import System.Timeout (timeout)

-- | Fails the action when it takes longer than so many seconds.
timed :: Int -> IO () -> IO ()
timed seconds action =
  timeout (seconds * 1000000) action
    >>= maybe (fail ("not done within " <> show seconds <> " s")) pure
