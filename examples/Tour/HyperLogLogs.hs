-- | HyperLogLogs: an estimate of the number of different elements, in little memory.
module Tour.HyperLogLogs (tour) where

import Data.ByteString.Char8 qualified as Char8
import Redis
import Redis.Commands qualified as Redis
import Tour.Fresh (fresh)

-- The braces put the keys in one slot of a cluster, which commands with several keys need.
tour :: Client -> IO ()
tour client = fresh client ("example:{hyperloglogs}:may" :| ["example:{hyperloglogs}:june", "example:{hyperloglogs}:year"]) $ do
  -- The result of PFADD says whether the estimate has changed.
  run client (Redis.pfadd "example:{hyperloglogs}:may" ["ada", "grace", "ada"]) >>= print
  run client (Redis.pfadd "example:{hyperloglogs}:may" ["grace"]) >>= print
  run client (Redis.pfcount ("example:{hyperloglogs}:may" :| [])) >>= print

  -- The number for several keys together, and for a merged one.
  _ <- run client (Redis.pfadd "example:{hyperloglogs}:june" ["grace", "barbara"])
  run client (Redis.pfcount ("example:{hyperloglogs}:may" :| ["example:{hyperloglogs}:june"])) >>= print
  run client (Redis.pfmerge "example:{hyperloglogs}:year" ["example:{hyperloglogs}:may", "example:{hyperloglogs}:june"])
  run client (Redis.pfcount ("example:{hyperloglogs}:year" :| [])) >>= print

  -- For ten thousand elements, the error is a few per cent, and the key takes 12 kB.
  _ <- run client (Redis.pfadd "example:{hyperloglogs}:year" (map (Char8.pack . show) [1 .. 10000 :: Int]))
  many <- run client (Redis.pfcount ("example:{hyperloglogs}:year" :| []))
  print (abs (many - 10003) < 500)
  size <- run client (Redis.strlen "example:{hyperloglogs}:year")
  print (size < 12500)
