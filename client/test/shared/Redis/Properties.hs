-- | How many cases the properties of many cases have.
module Redis.Properties
  ( cases,
  )
where

import Data.Maybe (isJust)
import System.Environment (lookupEnv)
import Test.Hspec (SpecWith, runIO)
import Test.Hspec.QuickCheck (modifyMaxSuccess)

-- | This many cases for each property, or twenty times as many if the environment variable
-- @LONG_PROPERTIES@ is set.
cases :: Int -> SpecWith a -> SpecWith a
cases count properties = do
  long <- isJust <$> runIO (lookupEnv "LONG_PROPERTIES")
  modifyMaxSuccess (const (if long then 20 * count else count)) properties
