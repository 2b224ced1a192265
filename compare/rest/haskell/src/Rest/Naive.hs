-- | The original's design: a new SQLite connection for each request, with its settings and a
-- statement compiled for it, a commit per write, and generic JSON. It uses the cache in the
-- simplest way: it stores each user that it has read, whatever has been written since.
module Rest.Naive
  ( naiveUsers,
  )
where

import Control.Exception (bracket, handle, throwIO, try)
import Data.ByteString (ByteString)
import Data.ByteString qualified as ByteString
import Data.ByteString.Char8 qualified as Char8
import Data.Int (Int64)
import Data.List.NonEmpty (NonEmpty (..))
import Redis (Client, seconds, tryRun)
import Redis.Commands qualified as Redis
import Rest.Json.Write (Encoder (..), encodePage, encodeRow, newScratch)
import Rest.Reply
import Rest.Sqlite (OpenMode (..), SqliteError (..), Statement, Step (..), bindInt, bindNull, bindText, close, columnInt, finalize, isUniqueViolation, open, prepare, runScript, stepWaiting)
import Rest.Statements (Statements, statement)
import Rest.User (UserInput (..))
import Rest.Users (Users (..))
import System.IO (stderr)

-- | The operations, each with its own connection to the database.
naiveUsers :: Client -> Statements -> FilePath -> Users
naiveUsers client statements path =
  Users
    { usersGet = \number ->
        tryRun client (Redis.get (key number)) >>= \case
          Right (Just bytes) -> pure (userReply bytes)
          _ -> query "user-by-id" (\row -> bindInt row 1 number) $ \row ->
            stepWaiting row >>= \case
              Done -> pure userNotFound
              Row -> do
                bytes <- encodeRow Generic row
                _ <- tryRun client (Redis.setWith Redis.setDefaults {Redis.setExpiry = Redis.ExpireIn (seconds 60)} (key number) bytes)
                pure (userReply bytes),
      usersList = \page limit ->
        query "users-page" (\row -> bindInt row 1 limit >> bindInt row 2 ((page - 1) * limit)) $
          \row -> newScratch >>= \scratch -> userReply <$> encodePage Generic scratch page limit row,
      usersAdd = \input ->
        query "insert-user" (bindInput 1 input) $ \row ->
          returned row (createdReply <$> columnInt row 0 <*> encodeRow Generic row),
      usersChange = \number input ->
        query "update-user" (\row -> bindInt row 1 number >> bindInput 2 input row) $ \row ->
          returned row (userReply <$> encodeRow Generic row),
      usersDelete = \number ->
        query "delete-user" (\row -> bindInt row 1 number) $ \row -> returned row (pure userDeleted)
    }
  where
    query :: ByteString -> (Statement -> IO ()) -> (Statement -> IO Reply) -> IO Reply
    query name bind action = answered $
      bracket (during "open" (open ReadWrite path)) close $ \connection -> do
        statement statements "naive-settings" >>= during "settings" . runScript connection
        sql <- statement statements name
        during "statement" $
          bracket (prepare connection sql) finalize (\row -> bind row >> action row)
    -- The row is the changed one. The second step ends the statement, and commits.
    returned row reply =
      stepWaiting row >>= \case
        Done -> pure userNotFound
        Row -> do
          number <- columnInt row 0
          result <- reply
          _ <- stepWaiting row
          _ <- tryRun client (Redis.del (key number :| []))
          pure result

bindInput :: Int -> UserInput -> Statement -> IO ()
bindInput index UserInput {inputName, inputEmail, inputBio} row = do
  bindText row index inputName
  bindText row (index + 1) inputEmail
  maybe (bindNull row (index + 2)) (bindText row (index + 2)) inputBio

-- Adds the name of a part of a request to its errors.
during :: String -> IO a -> IO a
during part = handle (\(SqliteError code problem) -> throwIO (SqliteError code (part <> ": " <> problem)))

-- Prints the reason for a 503 on a line of its own, which the measurement counts.
answered :: IO Reply -> IO Reply
answered action =
  try action >>= \case
    Right reply -> pure reply
    Left problem@(SqliteError code text)
      | isUniqueViolation problem -> pure duplicateEmail
      | otherwise -> do
        ByteString.hPut stderr (Char8.pack ("unavailable: SQLite " <> show code <> " in " <> text <> "\n"))
        pure databaseUnavailable

key :: Int64 -> ByteString
key number = "user:" <> Char8.pack (show number)
