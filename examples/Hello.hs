-- | The first program of the README. What stands between the markers below stands
-- there too, byte for byte (dev/check-code.py).
module Hello (main) where

-- HELLO begins
import Redis
import Redis.Commands qualified as Redis

main :: IO ()
main = withClient (standaloneConfig "localhost" 6379) $ \client -> do
  run client (Redis.set "greeting" "hello")
  run client (Redis.get "greeting") >>= print -- Just "hello"

-- HELLO ends
