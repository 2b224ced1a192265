{-# LANGUAGE TupleSections #-}

-- | A transport in memory; the test holds its other end.
--
-- It checks the contract of "Redis.Internal.Network.Transport" and records every breach: two
-- threads that read or write at once, use after the close, a second close, a request for
-- notification that outlives the transport, and a write that is not repeated after it found no
-- room.
module Fake
  ( Fake (..),
    Manners (..),
    goodManners,
    badManners,
    newFake,

    -- * The other end
    say,
    hear,
    hangUp,
    heardBytes,

    -- * What went wrong
    breaches,
    closes,
  )
where

import Control.Concurrent (forkIO, killThread)
import Control.Concurrent.STM
import Control.Exception (finally)
import Control.Monad (forM_, join, unless, when)
import Data.Bits (shiftR, xor)
import Data.ByteString (ByteString)
import Data.ByteString qualified as ByteString
import Data.ByteString.Unsafe qualified as ByteString.Unsafe
import Data.IORef
import Data.Sequence (Seq, ViewL ((:<)), (<|), (|>))
import Data.Sequence qualified as Seq
import Data.Word (Word64, Word8)
import Foreign.Marshal.Utils (copyBytes)
import Foreign.Ptr (Ptr, castPtr)
import Redis.Error (Endpoint (TcpEndpoint))
import Redis.Internal.Network.Transport

-- | How the transport serves reads and writes.
data Manners = Manners
  { -- | The most bytes of one attempt.
    mannersReadMost :: Int,
    mannersWriteMost :: Int,
    -- | One attempt in this many finds nothing ready. 0: never.
    mannersRefuse :: Int,
    -- | The most bytes that may be on their way to the peer.
    mannersWindow :: Int
  }
  deriving stock (Eq, Show)

-- | Like a fast local socket.
goodManners :: Manners
goodManners = Manners {mannersReadMost = maxBound, mannersWriteMost = maxBound, mannersRefuse = 0, mannersWindow = 1024 * 1024}

-- | Few bytes at a time, and often none at all.
badManners :: Manners
badManners = Manners {mannersReadMost = 7, mannersWriteMost = 5, mannersRefuse = 3, mannersWindow = 64}

-- | A connection without a network.
data Fake = Fake
  { fakeTransport :: Transport,
    -- | Runs at the beginning of every attempt to write.
    fakeBeforeWrite :: IORef (IO ()),
    -- | Runs when an attempt to write finds no room, before the attempt returns.
    fakeOnFull :: IORef (IO ()),
    fakeToPeer :: TVar (Seq ByteString),
    -- | The number of bytes in 'fakeToPeer'.
    fakeUnheard :: TVar Int,
    -- | The number of bytes ever accepted from the client.
    fakeAccepted :: TVar Int,
    fakeToClient :: TVar (Seq ByteString),
    -- | How often the peer has sent something.
    fakeSaid :: TVar Int,
    -- | Whether the peer has closed its end.
    fakeHungUp :: TVar Bool,
    fakeShutDown :: TVar Bool,
    fakeClosed :: TVar Int,
    fakeWatches :: TVar Int,
    -- | The number of attempts to read.
    fakeAttempts :: TVar Int,
    fakeBreaches :: IORef [String]
  }

newFake :: Manners -> Int -> IO Fake
newFake manners seed = do
  fakeBeforeWrite <- newIORef (pure ())
  fakeOnFull <- newIORef (pure ())
  fakeToPeer <- newTVarIO Seq.empty
  fakeUnheard <- newTVarIO 0
  fakeAccepted <- newTVarIO 0
  fakeToClient <- newTVarIO Seq.empty
  fakeSaid <- newTVarIO 0
  fakeHungUp <- newTVarIO False
  fakeShutDown <- newTVarIO False
  fakeClosed <- newTVarIO 0
  fakeWatches <- newTVarIO 0
  fakeAttempts <- newTVarIO 0
  fakeBreaches <- newIORef []
  chance <- newIORef (fromIntegral seed * 2654435761 + 88172645463325252 :: Word64)
  reading <- newIORef False
  writing <- newIORef False
  repeatNext <- newIORef Nothing
  let breach text = atomicModifyIORef' fakeBreaches (\known -> (text : known, ()))

      -- Whether to refuse this attempt.
      refused
        | mannersRefuse manners <= 0 = pure False
        | otherwise = atomicModifyIORef' chance $ \x0 ->
          let x1 = x0 `xor` (x0 * 2862933555777941757 + 3037000493)
           in (x1, (x1 `shiftR` 33) `rem` fromIntegral (mannersRefuse manners) == 0)

      alone flag what action = do
        busy <- atomicModifyIORef' flag (True,)
        when busy (breach ("two threads " <> what <> " at once"))
        open <- (== 0) <$> readTVarIO fakeClosed
        unless open (breach (what <> " after the close"))
        action `finally` writeIORef flag False

      readable = do
        bytes <- readTVar fakeToClient
        ended <- readTVar fakeHungUp
        down <- readTVar fakeShutDown
        check (not (Seq.null bytes) || ended || down)

      writable = do
        unheard <- readTVar fakeUnheard
        ended <- readTVar fakeHungUp
        down <- readTVar fakeShutDown
        check (unheard < mannersWindow manners || ended || down)

      tryRead :: Ptr Word8 -> Int -> IO Attempt
      tryRead memory size = alone reading "read" $ do
        when (size <= 0) (breach "an attempt to read no bytes")
        atomically (modifyTVar' fakeAttempts (+ 1))
        no <- refused
        if no
          then pure attemptWouldRead
          else do
            taken <- atomically $ do
              down <- readTVar fakeShutDown
              ended <- readTVar fakeHungUp
              bytes <- readTVar fakeToClient
              case Seq.viewl bytes of
                -- As with a socket, bytes that have arrived can be read after a shutdown, too.
                chunk :< rest -> do
                  let (now, later) = ByteString.splitAt (min size (mannersReadMost manners)) chunk
                  writeTVar fakeToClient (if ByteString.null later then rest else later <| rest)
                  pure (Right now)
                _
                  | ended || down -> pure (Left attemptEnd)
                  | otherwise -> pure (Left attemptWouldRead)
            case taken of
              Left attempt -> pure attempt
              Right bytes -> ByteString.Unsafe.unsafeUseAsCStringLen bytes $ \(from, count) ->
                count <$ copyBytes memory (castPtr from) count

      tryWrite :: Ptr Word8 -> Int -> IO Attempt
      tryWrite memory size = alone writing "write" $ do
        join (readIORef fakeBeforeWrite)
        when (size <= 0) (breach "an attempt to write no bytes")
        -- After a shutdown nothing is written, and no write has to be repeated.
        over <- readTVarIO fakeShutDown
        unless over $ readIORef repeatNext >>= mapM_ (\expected -> when (expected /= (memory, size)) (breach "not the same bytes again"))
        no <- refused
        room <- atomically $ do
          down <- readTVar fakeShutDown
          ended <- readTVar fakeHungUp
          unheard <- readTVar fakeUnheard
          pure $ if down || ended then Nothing else Just (mannersWindow manners - unheard)
        case room of
          Nothing -> ioError (userError "broken pipe")
          Just free
            | no || free <= 0 -> do
              writeIORef repeatNext (Just (memory, size))
              join (readIORef fakeOnFull)
              pure attemptWouldWrite
            | otherwise -> do
              writeIORef repeatNext Nothing
              let count = minimum [size, free, mannersWriteMost manners]
              bytes <- ByteString.packCStringLen (castPtr memory, count)
              atomically $ do
                modifyTVar' fakeToPeer (|> bytes)
                modifyTVar' fakeUnheard (+ count)
                modifyTVar' fakeAccepted (+ count)
              pure count

      transport =
        Transport
          { transportEndpoint = TcpEndpoint "fake" 1,
            transportTryRead = tryRead,
            transportTryWrite = tryWrite,
            transportWaitReadable = atomically readable,
            transportWaitWritable = atomically writable,
            transportWatchReadable = \action -> do
              closed <- readTVarIO fakeClosed
              when (closed > 0) (breach "watched after the close")
              atomically (modifyTVar' fakeWatches (+ 1))
              stands <- newTVarIO True
              -- As with a socket, bytes that are taken at once have arrived, too.
              said <- readTVarIO fakeSaid
              let over = do
                    stood <- swapTVar stands False
                    when stood (modifyTVar' fakeWatches (subtract 1))
              watcher <- forkIO (atomically ((readable `orElse` (readTVar fakeSaid >>= check . (/= said))) *> over) *> action)
              pure (atomically over *> killThread watcher),
            transportHungUp = readTVarIO fakeHungUp,
            transportGather = Nothing,
            transportShutdown = do
              closed <- readTVarIO fakeClosed
              when (closed > 0) (breach "shut down after the close")
              atomically (writeTVar fakeShutDown True),
            transportClose = do
              (before, watches) <- atomically $ do
                modifyTVar' fakeClosed (+ 1)
                (,) <$> readTVar fakeClosed <*> readTVar fakeWatches
              when (before > 1) (breach "closed twice")
              when (watches /= 0) (breach (show watches <> " watches outlive the close"))
              forM_ [(reading, "read from"), (writing, "written to")] $ \(flag, what) -> do
                busy <- readIORef flag
                when busy (breach ("closed while it is " <> what))
          }
  pure
    Fake
      { fakeTransport = transport,
        fakeBeforeWrite,
        fakeOnFull,
        fakeToPeer,
        fakeUnheard,
        fakeAccepted,
        fakeToClient,
        fakeSaid,
        fakeHungUp,
        fakeShutDown,
        fakeClosed,
        fakeWatches,
        fakeAttempts,
        fakeBreaches
      }

-- | Sends bytes from the peer to the client.
say :: Fake -> ByteString -> IO ()
say fake bytes =
  unless (ByteString.null bytes) $
    atomically (modifyTVar' (fakeToClient fake) (|> bytes) *> modifyTVar' (fakeSaid fake) (+ 1))

-- | Takes the bytes that the client has sent since the last call; blocks until there is one.
-- 'Nothing' if the client has shut the connection down.
hear :: Fake -> IO (Maybe ByteString)
hear fake = atomically $ do
  chunks <- readTVar (fakeToPeer fake)
  down <- readTVar (fakeShutDown fake)
  if Seq.null chunks
    then Nothing <$ check down
    else do
      writeTVar (fakeToPeer fake) Seq.empty
      writeTVar (fakeUnheard fake) 0
      pure (Just (ByteString.concat (foldr (:) [] chunks)))

-- | Closes the peer's end. The client can still read the bytes that the peer has sent.
hangUp :: Fake -> IO ()
hangUp fake = atomically (writeTVar (fakeHungUp fake) True)

-- | How many bytes the transport has ever accepted.
heardBytes :: Fake -> IO Int
heardBytes = readTVarIO . fakeAccepted

-- | Every breach of the contract so far.
breaches :: Fake -> IO [String]
breaches = readIORef . fakeBreaches

-- | How often the transport was closed.
closes :: Fake -> IO Int
closes = readTVarIO . fakeClosed
