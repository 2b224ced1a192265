-- | Lists that must not be empty to be as they should.
module Every
  ( every,
  )
where

-- | Whether there are some, and all of them are so.
every :: (a -> Bool) -> [a] -> Bool
every good found = not (null found) && all good found
