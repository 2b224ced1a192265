-- | Checks of lists that must not be empty.
module Every
  ( every,
  )
where

-- | Whether the list has elements, and all of them satisfy the condition.
every :: (a -> Bool) -> [a] -> Bool
every good found = not (null found) && all good found
