-- | Transactions: commands that run together, and reads before them.
module Transactions (main) where

import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Redis
import Redis.Commands qualified as Redis
import Redis.Transaction
import Settings (configFromArguments)

main :: IO ()
main = do
  config <- configFromArguments "redis://127.0.0.1:6379"
  withClient config $ \client -> do
    _ <- run client (Redis.del ("{ada}visits" :| ["{ada}name", "{ada}balance"]))
    run client (Redis.set "{ada}name" "Ada")
    run client (Redis.set "{ada}balance" "7")

    -- One round trip, in order with all other callers' commands; either all commands are queued or
    -- none.
    (visits, name) <- runTransaction client ((,) <$> queued (Redis.incr "{ada}visits") <*> queued (Redis.get "{ada}name"))
    print (visits, name)

    -- A command that fails when it runs does not affect the others.
    (failed, again) <- runTransaction client ((,) <$> tryQueued (Redis.incr "{ada}name") <*> queued (Redis.incr "{ada}visits"))
    print (either (const "not a number") show failed, again)

    -- A transaction that depends on a key watches that key before it reads it. If another client
    -- changes the key meanwhile, the transaction starts again.
    pay client "{ada}balance" 5 >>= print
    pay client "{ada}balance" 5 >>= print

-- | Takes an amount from a balance if that is enough, and returns the rest.
pay :: Client -> ByteString -> Int -> IO (WatchResult Int)
pay client account amount = watching client (account :| []) $ \connection -> do
  balance <- maybe 0 (maybe 0 fst . Char8.readInt) <$> runOn connection (Redis.get account)
  pure $
    if balance < amount
      then Abandon
      else Commit (fromIntegral <$> queued (Redis.decrby account (fromIntegral amount)))
