-- | The quick start of the guide and of the package's README. What stands between the
-- markers below stands there too, byte for byte (dev/check-code.py).
module Quickstart (main) where

-- QUICKSTART begins
import Control.Exception (displayException, throwIO)
import Data.ByteString.Char8 qualified as Char8
import Redis
import Redis.Commands qualified as Redis
import System.Environment (getArgs)

main :: IO ()
main = do
  url <- concat <$> getArgs
  config <- either throwIO pure (configFromUrl (if null url then "redis://127.0.0.1:6379" else Char8.pack url))
  withClient config $ \client -> do
    -- Wait for each result …
    run client (Redis.set "greeting" "hello")
    run client (Redis.get "greeting") >>= print
    -- … or send several commands at once and wait for all of them.
    both <- runPipeline client ((,) <$> pipelined (Redis.incr "visits") <*> pipelined (Redis.ttl "greeting"))
    print both
    -- An error is a value. It says whether the command may have run.
    result <- tryRun client (Redis.incr "greeting")
    either (\failure -> putStrLn (displayException failure) >> print (errorDelivery failure)) print result

-- QUICKSTART ends
