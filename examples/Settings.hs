-- | The server of an example: a URL, given as the first argument.
module Settings (configFromArguments) where

import Control.Exception (throwIO)
import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Redis (Config, configFromUrl)
import System.Environment (getArgs)

-- | The configuration of the URL in the first argument, or else of this one. Throws a
-- 'Redis.Config.ConfigError' that never contains a password.
configFromArguments :: ByteString -> IO Config
configFromArguments otherwiseUrl = do
  arguments <- getArgs
  either throwIO pure . configFromUrl $ case arguments of
    [] -> otherwiseUrl
    url : _ -> Char8.pack url
