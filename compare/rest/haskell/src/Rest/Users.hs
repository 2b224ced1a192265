-- | The service's operations, without HTTP: reads go through the cache; writes go to the writer,
-- and then their user is deleted from the cache.
module Rest.Users
  ( Users (..),
    tunedUsers,
  )
where

import Data.Int (Int64)
import Rest.Cache (Cache, Lookup (..), invalidate, lookupUser, store)
import Rest.Readers (Found (..), Readers, findUser, listUsers)
import Rest.Reply
import Rest.User (UserInput)
import Rest.Writer (Change (..), Outcome (..), Writer, write)

-- | The operations on users.
data Users = Users
  { usersGet :: Int64 -> IO Reply,
    -- | Page and limit, both at least 1.
    usersList :: Int64 -> Int64 -> IO Reply,
    usersAdd :: UserInput -> IO Reply,
    usersChange :: Int64 -> UserInput -> IO Reply,
    usersDelete :: Int64 -> IO Reply
  }

-- | The operations of the tuned design: pooled readers, one writer, and the cache.
tunedUsers :: Cache -> Readers -> Writer -> Users
tunedUsers cache readers writer =
  Users
    { usersGet = getUser cache readers,
      usersList = \page limit -> found <$> listUsers readers page limit,
      usersAdd = writing . Insert,
      usersChange = \number -> writing . Update number,
      usersDelete = \number -> writingTo number (Delete number)
    }
  where
    writing change = do
      outcome <- write writer change
      case (change, outcome) of
        (Insert _, Saved number bytes) -> createdReply number bytes <$ invalidate cache number
        (_, Saved number bytes) -> userReply bytes <$ invalidate cache number
        (_, other) -> pure (refused other)
    writingTo number change =
      write writer change >>= \case
        Deleted -> userDeleted <$ invalidate cache number
        other -> pure (refused other)
    refused = \case
      Duplicate -> duplicateEmail
      Missing -> userNotFound
      _ -> databaseUnavailable

getUser :: Cache -> Readers -> Int64 -> IO Reply
getUser cache readers number =
  lookupUser cache number >>= \case
    Hit bytes -> pure (userReply bytes)
    Bypass -> found <$> findUser readers number
    Fill word -> do
      result <- findUser readers number
      case result of
        Found bytes -> store cache number word bytes
        _ -> pure ()
      pure (found result)

found :: Found -> Reply
found = \case
  Found bytes -> userReply bytes
  NotThere -> userNotFound
  Locked -> databaseUnavailable
