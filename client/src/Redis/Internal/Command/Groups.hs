-- | Groups of arguments that several commands take.
module Redis.Internal.Command.Groups
  ( countedKeys,
    fieldsWithValues,
  )
where

import Data.ByteString (ByteString)
import Redis.Command.Build

-- | The number of keys, then the keys.
countedKeys :: Foldable f => f ByteString -> [Argument]
countedKeys names = int (fromIntegral (length names)) : keys names

-- | Fields, each followed by its value.
fieldsWithValues :: Foldable f => f (ByteString, ByteString) -> [Argument]
fieldsWithValues = concatMap (\(name, new) -> [arg name, arg new])
