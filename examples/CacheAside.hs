-- | Values that are computed once, and are never older than their last change.
module CacheAside (main) where

import Control.Concurrent.Async (forConcurrently)
import Control.Concurrent.MVar
import Data.ByteString.Char8 qualified as Char8
import Redis
import Redis.Patterns.CacheAside
import Settings (configFromArguments)

main :: IO ()
main = do
  config <- configFromArguments "redis://127.0.0.1:6379"
  withClient config $ \client -> do
    -- The source of the values; it counts how often it is asked.
    source <- newMVar (0 :: Int, "Ada")
    let load = modifyMVar source (\(times, name) -> pure ((times + 1, name), Just name))
        save name = modifyMVar_ source (\(times, _) -> pure (times, name))
        asked = fst <$> readMVar source
    cache <- newCache client (keeping "example:user" strings) {keepingTime = seconds 60}
    invalidate cache "7"

    -- Twenty callers ask together, and one of them computes.
    names <- forConcurrently [1 .. 20 :: Int] (\_ -> cached cache "7" load)
    computed <- asked
    print (length (filter (== Just "Ada") names), computed)

    -- First the change, then the invalidation: in this order.
    save "Grace"
    invalidate cache "7"
    cached cache "7" load >>= print

    -- A value whose key is invalidated during the computation is returned, but not stored.
    late <- cached cache "8" (Just "too old" <$ invalidate cache "8")
    next <- cached cache "8" (pure (Just "right"))
    print (late, next)
    invalidate cache "8"
  where
    strings = Codec {encodeWith = Char8.pack, decodeWith = Just . Char8.unpack}
