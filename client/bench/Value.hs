-- | Gets one value, for @lab/value@, which compares it with hiredis.
--
-- > value PORT KEY       the value's bytes, and the nanoseconds that it took
-- > value --iters 1      on a server of its own, unmeasured
module Main (main) where

import Bench.Private
import Control.Monad (when)
import Data.ByteString qualified as ByteString
import Data.ByteString.Char8 qualified as Char8
import Data.Word (Word64)
import GHC.Clock (getMonotonicTimeNSec)
import Redis
import Redis.Commands qualified as Redis
import System.Environment (getArgs)
import System.Exit (die)
import Text.Read (readMaybe)

main :: IO ()
main =
  getArgs >>= \case
    ["--iters", _] -> onPrivateServer $ \config -> do
      _ <- withClient config $ \client -> run client (Redis.setrange "large" 999999 "x")
      (size, _) <- getting config "large"
      when (size /= 1000000) (die ("value: " <> show size <> " bytes"))
      putStrLn "1 value"
    [port, name]
      | Just number <- readMaybe port -> do
        (size, taken) <- getting (standaloneConfig "127.0.0.1" (fromIntegral (number :: Int))) (Char8.pack name)
        putStrLn (unwords [show size, show taken])
    _ -> die "value: PORT KEY, or --iters 1"

-- | The bytes of the value, and the nanoseconds from the command to its result.
getting :: Config -> Char8.ByteString -> IO (Int, Word64)
getting config name = withClient config $ \client -> do
  _ <- run client Redis.ping
  began <- getMonotonicTimeNSec
  size <- maybe 0 ByteString.length <$> run client (timeLimit (seconds 600) (Redis.get name))
  ended <- getMonotonicTimeNSec
  pure (size, ended - began)
