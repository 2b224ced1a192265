-- | The only writer, which commits changes in groups.
--
-- Requests queue. The writer takes all that wait, begins a transaction, gives each a savepoint,
-- commits, and only then answers. While the disk works on one commit, the next group gathers. So
-- the disk determines the number of commits per second, and the load determines the number of
-- requests per commit. The writer never waits for a group to grow.
--
-- A savepoint costs two statements per request. In return, a request that fails (because its e-mail
-- address is taken) does not affect the others of its group.
module Rest.Writer
  ( Writer,
    withWriter,
    Change (..),
    Outcome (..),
    write,
  )
where

import Control.Concurrent.Async (wait, withAsync)
import Control.Concurrent.MVar (MVar, newEmptyMVar, putMVar, takeMVar, tryPutMVar)
import Control.Exception (SomeException, bracket, finally, onException, try)
import Control.Monad (forM, unless, void)
import Data.ByteString (ByteString)
import Data.IORef (IORef, atomicModifyIORef', newIORef)
import Data.Int (Int64)
import Rest.Json.Write (Encoder, encodeRow)
import Rest.Sqlite (Connection, OpenMode (..), SqliteError, Statement, Step (..), bindInt, bindNull, bindText, close, columnInt, execute, finalize, isUniqueViolation, open, prepare, reset, runScript, step)
import Rest.Statements (Statements, statement)
import Rest.User (UserInput (..))

-- | A change to write.
data Change
  = Insert UserInput
  | Update Int64 UserInput
  | Delete Int64

-- | The result of a change. All results except 'Unavailable' are on the disk.
data Outcome
  = -- | The id, and the user as JSON.
    Saved Int64 ByteString
  | Deleted
  | -- | There is no such user.
    Missing
  | -- | Another user has the e-mail address.
    Duplicate
  | -- | Nothing was written: the database was locked for 5 s, or the disk failed.
    Unavailable

data Job = Job Change (MVar Outcome)

-- | The waiting changes, newest first.
data Queue = Open [Job] | Closed

-- | A thread that owns the connection for writing.
data Writer = Writer
  { writerQueue :: IORef Queue,
    -- | Full if changes may be waiting.
    writerBell :: MVar ()
  }

data Compiled = Compiled
  { compiledEncoder :: Encoder,
    compiledBegin, compiledCommit, compiledRollback :: Statement,
    compiledSavepoint, compiledRelease, compiledRollbackTo :: Statement,
    compiledInsert, compiledUpdate, compiledDelete :: Statement
  }

-- | Runs the writer while the action runs. At the end the current group is committed, and the
-- changes that still wait are answered with 'Unavailable'. Throws 'SqliteError' if the database
-- cannot be opened.
withWriter :: Encoder -> Statements -> FilePath -> (Writer -> IO a) -> IO a
withWriter encoder statements path action =
  bracket (open ReadWrite path) close $ \connection ->
    bracket (compile encoder statements connection) forget $ \compiled -> do
      writer <- Writer <$> newIORef (Open []) <*> newEmptyMVar
      withAsync (serve writer compiled) $ \serving ->
        action writer `finally` (shut writer >> wait serving)
  where
    shut writer = do
      rest <- atomicModifyIORef' (writerQueue writer) $ \case
        Open jobs -> (Closed, jobs)
        Closed -> (Closed, [])
      mapM_ (\(Job _ answer) -> putMVar answer Unavailable) rest
      void (tryPutMVar (writerBell writer) ())

compile :: Encoder -> Statements -> Connection -> IO Compiled
compile encoder statements connection = do
  statement statements "writer-settings" >>= runScript connection
  let prepared name = statement statements name >>= prepare connection
  Compiled encoder
    <$> prepared "begin"
    <*> prepared "commit"
    <*> prepared "rollback"
    <*> prepared "savepoint"
    <*> prepared "release"
    <*> prepared "rollback-to"
    <*> prepared "insert-user"
    <*> prepared "update-user"
    <*> prepared "delete-user"

forget :: Compiled -> IO ()
forget Compiled {compiledBegin, compiledCommit, compiledRollback, compiledSavepoint, compiledRelease, compiledRollbackTo, compiledInsert, compiledUpdate, compiledDelete} =
  mapM_
    finalize
    [compiledBegin, compiledCommit, compiledRollback, compiledSavepoint, compiledRelease, compiledRollbackTo, compiledInsert, compiledUpdate, compiledDelete]

-- | Queues a change and waits until it is on the disk, or was refused.
write :: Writer -> Change -> IO Outcome
write Writer {writerQueue, writerBell} change = do
  answer <- newEmptyMVar
  taken <- atomicModifyIORef' writerQueue $ \case
    Open jobs -> (Open (Job change answer : jobs), True)
    Closed -> (Closed, False)
  if taken
    then tryPutMVar writerBell () >> takeMVar answer
    else pure Unavailable

serve :: Writer -> Compiled -> IO ()
serve Writer {writerQueue, writerBell} compiled = loop
  where
    loop = do
      takeMVar writerBell
      group <- atomicModifyIORef' writerQueue $ \case
        Open jobs -> let (later, now) = splitAt (length jobs - largestGroup) jobs in (Open later, Just (reverse now, not (null later)))
        Closed -> (Closed, Nothing)
      case group of
        Nothing -> pure ()
        Just (jobs, more) -> do
          unless (null jobs) (commitGroup compiled jobs)
          if more then tryPutMVar writerBell () >> loop else loop
    largestGroup = 1024

-- | Runs the changes of a group in one transaction, and answers them.
commitGroup :: Compiled -> [Job] -> IO ()
commitGroup compiled jobs =
  try transaction >>= \case
    Right outcomes -> mapM_ (uncurry putMVar) (zip answers outcomes)
    Left (_ :: SomeException) -> mapM_ (`putMVar` Unavailable) answers
  where
    answers = [answer | Job _ answer <- jobs]
    transaction = do
      execute (compiledBegin compiled)
      flip onException (ignoring (execute (compiledRollback compiled))) $ do
        outcomes <- forM jobs $ \(Job change _) -> runChange compiled change
        execute (compiledCommit compiled)
        pure outcomes

ignoring :: IO () -> IO ()
ignoring action = try action >>= \(_ :: Either SqliteError ()) -> pure ()

-- | Runs one change in its savepoint. Throws 'IOError' if the error is not the change's own: then
-- the whole group is rolled back.
runChange :: Compiled -> Change -> IO Outcome
runChange compiled change = do
  quick (compiledSavepoint compiled)
  try (apply compiled change) >>= \case
    Right outcome -> outcome <$ quick (compiledRelease compiled)
    Left problem
      | isUniqueViolation problem -> do
        quick (compiledRollbackTo compiled)
        Duplicate <$ quick (compiledRelease compiled)
      | otherwise -> ioError (userError (show problem))

-- | A statement that touches only memory.
quick :: Statement -> IO ()
quick query = step query >> reset query

apply :: Compiled -> Change -> IO Outcome
apply Compiled {compiledEncoder, compiledInsert, compiledUpdate, compiledDelete} = \case
  Insert input -> do
    bindInput compiledInsert 1 input
    returned compiledInsert
  Update number input -> do
    bindInt compiledUpdate 1 number
    bindInput compiledUpdate 2 input
    returned compiledUpdate
  Delete number -> do
    bindInt compiledDelete 1 number
    returning compiledDelete (pure Deleted)
  where
    returned query = returning query (Saved <$> columnInt query 0 <*> encodeRow compiledEncoder query)
    bindInput query index UserInput {inputName, inputEmail, inputBio} = do
      bindText query index inputName
      bindText query (index + 1) inputEmail
      maybe (bindNull query (index + 2)) (bindText query (index + 2)) inputBio

-- | Runs a statement that changes at most one row and returns it.
returning :: Statement -> IO Outcome -> IO Outcome
returning query row =
  flip finally (reset query) $
    step query >>= \case
      Done -> pure Missing
      Row -> row <* step query
