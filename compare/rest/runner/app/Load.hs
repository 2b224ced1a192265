-- | Loads a service in an open loop and prints the result as JSON.
module Load (main) where

import Compare.Load (LoadOptions (..), runLoad, scenarioNamed)
import Data.Aeson (encode)
import Data.ByteString.Lazy.Char8 qualified as Lazy
import System.Environment (getArgs)
import System.Exit (die)
import Text.Read (readMaybe)

main :: IO ()
main = do
  arguments <- pairs <$> getArgs
  let number name = lookup name arguments >>= readMaybe
      options =
        LoadOptions
          <$> number "--port"
          <*> (lookup "--scenario" arguments >>= scenarioNamed)
          <*> number "--connections"
          <*> (lookup "--rate" arguments >>= readMaybe)
          <*> (lookup "--seconds" arguments >>= readMaybe)
          <*> pure 1
          <*> (fromIntegral <$> (number "--seed" :: Maybe Int))
          <*> pure "r"
          <*> number "--next-id"
  maybe (die usage) (\valid -> runLoad valid >>= Lazy.putStrLn . encode) options
  where
    usage = "usage: rest-load --port P --scenario single|list|post|mixed --connections N --rate PER_SECOND --seconds S --seed N --next-id N"
    pairs = \case
      name : value : rest -> (name, value) : pairs rest
      _ -> []
