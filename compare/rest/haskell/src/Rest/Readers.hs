-- | Reads from the database: one connection for each capability, with its statements prepared once.
--
-- A read takes microseconds and does not wait, because the writer of a WAL file does not block its
-- readers. So a thread locks its capability's reader for the whole read, and the foreign calls are
-- unsafe.
module Rest.Readers
  ( Readers,
    openReaders,
    closeReaders,
    Found (..),
    findUser,
    listUsers,
  )
where

import Control.Concurrent (getNumCapabilities, myThreadId, threadCapability, threadDelay)
import Control.Concurrent.MVar (MVar, newMVar, withMVar)
import Control.Exception (finally, throwIO, try)
import Control.Monad (replicateM)
import Data.ByteString (ByteString)
import Data.Int (Int64)
import Data.IntMap.Strict (IntMap)
import Data.IntMap.Strict qualified as IntMap
import Rest.Json.Write (Encoder, Scratch, encodePage, encodeRow, newScratch)
import Rest.Sqlite (Connection, OpenMode (..), Statement, Step (..), bindInt, close, finalize, isBusy, open, prepare, reset, runScript, step)
import Rest.Statements (Statements, statement)

-- | Connections for reading.
data Readers = Readers
  { readersEncoder :: Encoder,
    -- | The reader of capability 0; 'readersByCapability' has all readers by number.
    readersFirst :: MVar Reader,
    readersByCapability :: IntMap (MVar Reader)
  }

data Reader = Reader
  { readerConnection :: Connection,
    readerById :: Statement,
    readerPage :: Statement,
    readerScratch :: Scratch
  }

-- | Opens a reader for each capability. Throws 'Rest.Sqlite.SqliteError'.
openReaders :: Encoder -> Statements -> FilePath -> IO Readers
openReaders encoder statements path = do
  capabilities <- getNumCapabilities
  first <- newReader
  others <- replicateM (capabilities - 1) newReader
  pure (Readers encoder first (IntMap.fromList (zip [0 ..] (first : others))))
  where
    newReader = do
      connection <- open ReadOnly path
      statement statements "reader-settings" >>= runScript connection
      byId <- statement statements "user-by-id" >>= prepare connection
      page <- statement statements "users-page" >>= prepare connection
      scratch <- newScratch
      newMVar Reader {readerConnection = connection, readerById = byId, readerPage = page, readerScratch = scratch}

-- | Closes the readers, each when it is not in use.
closeReaders :: Readers -> IO ()
closeReaders readers = mapM_ (`withMVar` closeReader) (readersByCapability readers)
  where
    closeReader reader = do
      finalize (readerById reader)
      finalize (readerPage reader)
      close (readerConnection reader)

-- | The result of a read.
data Found
  = Found ByteString
  | NotThere
  | -- | The database stayed locked for 5 s.
    Locked

-- | The user with this id, as JSON.
findUser :: Readers -> Int64 -> IO Found
findUser readers number = reading readers $ \reader -> do
  let query = readerById reader
  bindInt query 1 number
  flip finally (reset query) $
    step query >>= \case
      Row -> Found <$> encodeRow (readersEncoder readers) query
      Done -> pure NotThere

-- | A page of users as JSON, given its number and size.
listUsers :: Readers -> Int64 -> Int64 -> IO Found
listUsers readers page limit = reading readers $ \reader -> do
  let query = readerPage reader
  bindInt query 1 limit
  bindInt query 2 ((page - 1) * limit)
  (Found <$> encodePage (readersEncoder readers) (readerScratch reader) page limit query) `finally` reset query

-- | Runs a read with the reader of this capability; repeats it while the file is locked (because
-- another process is recovering it, or has locked it).
reading :: Readers -> (Reader -> IO Found) -> IO Found
reading Readers {readersFirst, readersByCapability} action = attempt (250 :: Int)
  where
    attempt left = do
      (capability, _) <- myThreadId >>= threadCapability
      -- There may be more capabilities than when the readers were opened.
      let reader = IntMap.findWithDefault readersFirst capability readersByCapability
      try (withMVar reader action) >>= \case
        Right found -> pure found
        Left problem
          | not (isBusy problem) -> throwIO problem
          | left > 0 -> threadDelay 20000 >> attempt (left - 1)
          | otherwise -> pure Locked
