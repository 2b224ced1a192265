-- | The parts of SQLite that the service needs, by its C interface.
--
-- A connection belongs to one thread at a time (it is opened without SQLite's own mutex); threads
-- that share it must lock it. There are two kinds of calls. Those that take microseconds and never
-- wait ('step', the columns) are /unsafe/ foreign calls, which cost nanoseconds but hold up their
-- capability. Those that may wait for the disk or for a lock ('execute', 'stepWaiting') are /safe/
-- calls, during which other threads run.
module Rest.Sqlite
  ( -- * Connections
    Connection,
    OpenMode (..),
    open,
    close,
    runScript,

    -- * Statements
    Statement,
    prepare,
    finalize,
    execute,
    bindInt,
    bindText,
    bindNull,
    step,
    stepWaiting,
    Step (..),
    reset,

    -- * The row that a step came to
    columnInt,
    columnText,
    columnIsNull,
    withColumn,

    -- * Errors
    SqliteError (..),
    isBusy,
    isUniqueViolation,
  )
where

import Control.Exception (Exception, throwIO)
import Control.Monad (unless, void, when)
import Data.Bits ((.&.))
import Data.ByteString (ByteString)
import Data.ByteString qualified as ByteString
import Data.ByteString.Unsafe qualified as Unsafe
import Data.Int (Int64)
import Data.Word (Word8)
import Foreign.C.String (CString, peekCString, withCString)
import Foreign.C.Types (CInt (..))
import Foreign.Marshal.Alloc (alloca)
import Foreign.Ptr (FunPtr, IntPtr (..), Ptr, castPtr, castPtrToFunPtr, intPtrToPtr, nullPtr)
import Foreign.Storable (peek)

data Database

data Prepared

-- | An open database.
newtype Connection = Connection (Ptr Database)

-- | A compiled statement, and the connection that it belongs to.
data Statement = Statement (Ptr Database) (Ptr Prepared)

-- | An error of SQLite: its extended result code, and its message.
data SqliteError = SqliteError Int String
  deriving stock (Eq, Show)

instance Exception SqliteError

-- | Whether another connection holds a lock that this one needs.
isBusy :: SqliteError -> Bool
isBusy (SqliteError code _) = code .&. 0xff `elem` [5, 6]

-- | Whether a row with the same unique value exists already.
isUniqueViolation :: SqliteError -> Bool
isUniqueViolation (SqliteError code _) = code == 2067

-- | What a connection may do.
data OpenMode
  = ReadOnly
  | ReadWrite
  | -- | Like 'ReadWrite', and create the file if it does not exist.
    Create
  deriving stock (Eq, Show)

foreign import ccall safe "sqlite3_open_v2"
  c_open :: CString -> Ptr (Ptr Database) -> CInt -> CString -> IO CInt

foreign import ccall safe "sqlite3_close_v2"
  c_close :: Ptr Database -> IO CInt

foreign import ccall unsafe "sqlite3_extended_result_codes"
  c_extended :: Ptr Database -> CInt -> IO CInt

foreign import ccall unsafe "sqlite3_extended_errcode"
  c_errcode :: Ptr Database -> IO CInt

foreign import ccall unsafe "sqlite3_errmsg"
  c_errmsg :: Ptr Database -> IO CString

foreign import ccall safe "sqlite3_exec"
  c_exec :: Ptr Database -> CString -> FunPtr () -> Ptr () -> Ptr CString -> IO CInt

foreign import ccall safe "sqlite3_prepare_v2"
  c_prepare :: Ptr Database -> CString -> CInt -> Ptr (Ptr Prepared) -> Ptr CString -> IO CInt

foreign import ccall safe "sqlite3_finalize"
  c_finalize :: Ptr Prepared -> IO CInt

foreign import ccall unsafe "sqlite3_bind_int64"
  c_bindInt :: Ptr Prepared -> CInt -> Int64 -> IO CInt

foreign import ccall unsafe "sqlite3_bind_text"
  c_bindText :: Ptr Prepared -> CInt -> CString -> CInt -> FunPtr () -> IO CInt

foreign import ccall unsafe "sqlite3_bind_null"
  c_bindNull :: Ptr Prepared -> CInt -> IO CInt

foreign import ccall unsafe "sqlite3_step"
  c_step :: Ptr Prepared -> IO CInt

foreign import ccall safe "sqlite3_step"
  c_stepWaiting :: Ptr Prepared -> IO CInt

foreign import ccall unsafe "sqlite3_reset"
  c_reset :: Ptr Prepared -> IO CInt

foreign import ccall unsafe "sqlite3_column_int64"
  c_columnInt :: Ptr Prepared -> CInt -> IO Int64

foreign import ccall unsafe "sqlite3_column_text"
  c_columnText :: Ptr Prepared -> CInt -> IO (Ptr Word8)

foreign import ccall unsafe "sqlite3_column_bytes"
  c_columnBytes :: Ptr Prepared -> CInt -> IO CInt

-- | Opens a database file. Throws 'SqliteError'.
open :: OpenMode -> FilePath -> IO Connection
open mode path =
  withCString path $ \c_path -> alloca $ \place -> do
    code <- c_open c_path place (modeFlags + noMutex) nullPtr
    database <- peek place
    when (code /= 0) $ do
      problem <- currentError database
      _ <- c_close database
      throwIO problem
    _ <- c_extended database 1
    pure (Connection database)
  where
    noMutex = 0x8000
    modeFlags = case mode of
      ReadOnly -> 1
      ReadWrite -> 2
      Create -> 6

-- | Closes a connection. Its statements should be finalized before; those that are not keep it open
-- until they are.
close :: Connection -> IO ()
close (Connection database) = void (c_close database)

-- | Runs any number of statements without parameters, and ignores their rows. May wait. Throws
-- 'SqliteError'.
runScript :: Connection -> ByteString -> IO ()
runScript (Connection database) script =
  ByteString.useAsCString script $ \text -> do
    code <- c_exec database text (castPtrToFunPtr nullPtr) nullPtr nullPtr
    unless (code == 0) (failed database)

-- | Compiles one statement. Throws 'SqliteError'.
prepare :: Connection -> ByteString -> IO Statement
prepare (Connection database) sql =
  Unsafe.unsafeUseAsCStringLen sql $ \(text, size) -> alloca $ \place -> do
    code <- c_prepare database text (fromIntegral size) place nullPtr
    unless (code == 0) (failed database)
    Statement database <$> peek place

-- | Frees a statement.
finalize :: Statement -> IO ()
finalize (Statement _ statement) = void (c_finalize statement)

-- | Runs a statement that returns no rows, such as COMMIT. May wait. Throws 'SqliteError'.
execute :: Statement -> IO ()
execute statement@(Statement database prepared) = do
  code <- c_stepWaiting prepared
  case code of
    101 -> reset statement
    100 -> reset statement
    _ -> do
      problem <- currentError database
      reset statement
      throwIO problem

-- | Binds a number to the parameter with this index, from 1.
bindInt :: Statement -> Int -> Int64 -> IO ()
bindInt (Statement database prepared) index value =
  c_bindInt prepared (fromIntegral index) value >>= check database

-- | Binds text (UTF-8), which SQLite copies.
bindText :: Statement -> Int -> ByteString -> IO ()
bindText (Statement database prepared) index value =
  Unsafe.unsafeUseAsCStringLen value $ \(text, size) -> do
    -- An empty ByteString may be a null pointer, which SQLite treats as NULL.
    code <-
      if size == 0
        then withCString "" $ \empty -> c_bindText prepared (fromIntegral index) empty 0 transient
        else c_bindText prepared (fromIntegral index) text (fromIntegral size) transient
    check database code
  where
    transient = castPtrToFunPtr (intPtrToPtr (IntPtr (-1)))

-- | Binds NULL.
bindNull :: Statement -> Int -> IO ()
bindNull (Statement database prepared) index =
  c_bindNull prepared (fromIntegral index) >>= check database

-- | The result of a step.
data Step = Row | Done
  deriving stock (Eq, Show)

-- | Goes to the next row. An unsafe call, for statements that neither wait nor take long. Throws
-- 'SqliteError', and resets the statement then.
step :: Statement -> IO Step
step statement@(Statement _ prepared) = c_step prepared >>= stepped statement
{-# INLINE step #-}

-- | Like 'step', by a safe call.
stepWaiting :: Statement -> IO Step
stepWaiting statement@(Statement _ prepared) = c_stepWaiting prepared >>= stepped statement

stepped :: Statement -> CInt -> IO Step
stepped statement@(Statement database _) = \case
  100 -> pure Row
  101 -> pure Done
  _ -> do
    problem <- currentError database
    reset statement
    throwIO problem
{-# INLINE stepped #-}

-- | Ends the run of a statement, so that it can run again. Bound values stay bound.
reset :: Statement -> IO ()
reset (Statement _ prepared) = void (c_reset prepared)
{-# INLINE reset #-}

-- | A number in the current row; columns count from 0.
columnInt :: Statement -> Int -> IO Int64
columnInt (Statement _ prepared) index = c_columnInt prepared (fromIntegral index)
{-# INLINE columnInt #-}

-- | A copy of a text in the current row; empty for NULL.
columnText :: Statement -> Int -> IO ByteString
columnText statement index =
  withColumn statement index $ \text size -> ByteString.packCStringLen (castPtr text, size)

-- | Whether a value in the current row is NULL.
columnIsNull :: Statement -> Int -> IO Bool
columnIsNull (Statement _ prepared) index = (== nullPtr) <$> c_columnText prepared (fromIntegral index)
{-# INLINE columnIsNull #-}

-- | Lends the bytes of a text in the current row, valid until the next step or
-- reset: 'nullPtr' for NULL.
withColumn :: Statement -> Int -> (Ptr Word8 -> Int -> IO a) -> IO a
withColumn (Statement _ prepared) index action = do
  text <- c_columnText prepared (fromIntegral index)
  size <- c_columnBytes prepared (fromIntegral index)
  action text (fromIntegral size)
{-# INLINE withColumn #-}

check :: Ptr Database -> CInt -> IO ()
check database code = unless (code == 0) (failed database)
{-# INLINE check #-}

failed :: Ptr Database -> IO a
failed database = currentError database >>= throwIO

currentError :: Ptr Database -> IO SqliteError
currentError database = do
  code <- c_errcode database
  words' <- c_errmsg database >>= peekCString
  pure (SqliteError (fromIntegral code) words')
