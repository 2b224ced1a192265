-- | Where an example finds its server: the first argument, a URL.
module Settings (configFromArguments) where

import Control.Exception (throwIO)
import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Redis (Config, configFromUrl)
import System.Environment (getArgs)

-- | The configuration of the URL that was given, or of this one. Throws a
-- 'Redis.Config.ConfigError' that never repeats a password.
configFromArguments :: ByteString -> IO Config
configFromArguments otherwiseUrl = do
  arguments <- getArgs
  either throwIO pure . configFromUrl $ case arguments of
    [] -> otherwiseUrl
    url : _ -> Char8.pack url
