-- | From an endpoint to a transport. A client makes one 'Connector', and opens every connection
-- with it.
--
-- A host may have several addresses, and the first may be dead without saying so. So the addresses race
-- with a handicap, as RFC 8305 has it: they start in the order of the resolver, each a quarter of a second
-- after the one before it, or at once when that one has failed; the first that connects wins. One thread
-- does it all: what is under way is a list of sockets, and a transaction that waits for any of them.
--
-- Everything that blocks here can be interrupted, and whatever ends a dial
-- (success, failure, an exception) leaves no descriptor open but the winner's.
module Redis.Internal.Network.Dial
  ( Connector,
    newConnector,
    connectWith,
    Approach (..),
    approachFor,
    beginWith,
    Stage,
    openWithin,
    explained,

    -- * Sockets
    DialTimes (..),
    dialAddresses,
    meetsItself,
  )
where

import Control.Applicative ((<|>))
import Control.Concurrent (threadDelay, threadWaitWriteSTM)
import Control.Concurrent.MVar (newEmptyMVar, putMVar, takeMVar)
import Control.Concurrent.STM (STM, atomically, check, orElse)
import Control.Exception (IOException, bracketOnError, mask, mask_, onException, try, uninterruptibleMask_)
import Control.Monad (join, void)
import Data.Bifunctor (first)
import Data.Foldable (asum)
import Data.IORef (IORef, atomicModifyIORef', modifyIORef', newIORef, readIORef, writeIORef)
import Data.List qualified as List
import Data.Map.Strict (Map)
import Data.Map.Strict qualified as Map
import Data.Text qualified as Text
import Data.Text.Encoding qualified as Text
import Data.Text.Encoding.Error qualified as Text
import Foreign.C.Error (Errno (Errno), eAGAIN, eCONNREFUSED, errnoToIOError)
import Foreign.C.String (castCCharToChar)
import Foreign.C.Types (CInt (..))
import Foreign.Marshal.Alloc (allocaBytes)
import Foreign.Marshal.Array (peekArray)
import Foreign.Ptr (Ptr)
import GHC.Foreign qualified as Foreign
import GHC.IO.Encoding (getFileSystemEncoding)
import GHC.IO.Exception (ioe_description)
import Network.Socket (SockAddr (SockAddrInet, SockAddrInet6, SockAddrUnix), Socket)
import Network.Socket qualified as Socket
import Network.Socket.Address (pokeSocketAddress, sizeOfSocketAddress)
import Redis.Duration (milliseconds, seconds)
import Redis.Error (ConnectionCause (..), Delivery (NotSent), Endpoint (..), Error (TimeoutError), Host, Port, TimeoutFailure (..), renderEndpoint)
import Redis.Internal.Config (Config (..))
import Redis.Internal.Network.Runtime (Nanos, coarseNanos, expiry, nanosFromSeconds, spawn, supervised)
import Redis.Internal.Network.Tls (TlsContext, newTlsContext, tlsTransport)
import Redis.Internal.Network.Transport (Transport, socketTransport, tuneTcp)

-- | What all connections of a client share, and what it has learnt of its peers. Any number of threads may
-- connect with it at once.
data Connector = Connector
  { connectorConfig :: Config,
    -- | 'Nothing' for plain text.
    connectorTls :: Maybe TlsContext,
    -- | How the handshake begins with the peers for which that is not the usual way.
    connectorApproaches :: IORef (Map Endpoint (Approach, Nanos)),
    -- | The cause of the failure if the present attempt ended now, or of the last one that failed.
    connectorFailures :: IORef (Map Endpoint (IO ConnectionCause))
  }

-- | Makes the connector for a configuration. With TLS it reads the certificate files; nothing else
-- can fail ('Redis.Error.TlsFailed').
newConnector :: Config -> IO (Either ConnectionCause Connector)
newConnector config =
  traverse newTlsContext (configTls config) >>= traverse connector . sequence
  where
    connector tls = Connector config tls <$> newIORef Map.empty <*> newIORef Map.empty

-- | How the handshake with a peer is made.
data Approach
  = -- | All at once.
    Usual
  | -- | The same after the reply to a PING.
    AfterPing
  | -- | In RESP2, and only what is required.
    Bare
  deriving stock (Eq, Ord, Show, Enum, Bounded)

-- | The approach with which the handshake with a peer begins. \(O(\log n)\).
approachFor :: Connector -> Endpoint -> IO Approach
approachFor connector endpoint = do
  now <- coarseNanos
  known <- Map.lookup endpoint <$> readIORef (connectorApproaches connector)
  pure (case known of Just (approach, until') | now < until' -> approach; _ -> Usual)

-- | Has handshakes with a peer begin with this approach for the next minute: what looks like a proxy may be
-- a server whose connections were cut. \(O(\log n)\).
beginWith :: Connector -> Endpoint -> Approach -> IO ()
beginWith connector endpoint approach = do
  now <- coarseNanos
  let change
        | approach == Usual = Map.delete endpoint
        | otherwise = Map.insert endpoint (approach, now + nanosFromSeconds 60)
  atomicModifyIORef' (connectorApproaches connector) (\known -> (change known, ()))

-- | The progress of an attempt to open a connection.
data Stage = Stage
  { -- | What is wrong if the time is over now.
    stageLate :: IORef ConnectionCause,
    -- | Retries while the attempt may go on; then returns the reason to stop.
    stageOver :: STM ConnectionCause
  }

-- | Runs an attempt to open a connection to this endpoint, on a thread of its own, while it is wanted: the transaction
-- returns once it is not. The action closes a connection that was opened but is not wanted any more. Stops the
-- attempt when the connect timeout has passed ('TlsTimedOut' during the TLS handshake, 'Redis.Error.ConnectFailed'
-- while several addresses are tried, otherwise 'ConnectTimedOut') or when nobody wants the connection any more
-- ('ClosedLocally').
openWithin :: Connector -> Endpoint -> STM () -> (a -> IO ()) -> (Stage -> IO (Either ConnectionCause a)) -> IO (Either ConnectionCause a)
openWithin Connector {connectorConfig, connectorFailures} endpoint gone dispose attempt = do
  stageLate <- newIORef tooLong
  began <- coarseNanos
  expired <- expiry (configConnectTimeout connectorConfig)
  let stageOver = (ClosedLocally <$ gone) `orElse` (tooLong <$ expired)
      soFar = lateAfter <$> (subtract began <$> coarseNanos) <*> readIORef stageLate
  note (Map.insert endpoint soFar)
  ended <- supervised ("redis open " <> renderEndpoint endpoint) stageOver (mapM_ dispose) (attempt Stage {stageLate, stageOver}) `onException` (soFar >>= keep)
  case join ended of
    Right result -> Right result <$ note (Map.delete endpoint)
    Left (ConnectTimedOut _) -> readIORef stageLate >>= \cause -> Left cause <$ keep cause
    Left ClosedLocally -> Left ClosedLocally <$ (soFar >>= keep)
    Left cause -> Left cause <$ keep cause
  where
    tooLong = ConnectTimedOut (seconds (configConnectTimeout connectorConfig))
    keep = note . Map.insert endpoint . pure
    note change = atomicModifyIORef' connectorFailures (\known -> (change known, ()))
    lateAfter nanos = \case
      ConnectTimedOut _ -> ConnectTimedOut (rounded nanos)
      TlsTimedOut _ -> TlsTimedOut (rounded nanos)
      cause -> cause
    rounded nanos = milliseconds (fromIntegral (nanos `quot` 1000000))

-- | Adds the cause of the connection's failure to the error of a command whose time was over while it
-- waited for a connection to an endpoint. Other errors stay as they are. \(O(\log n)\).
explained :: Connector -> Endpoint -> Error -> IO Error
explained connector endpoint = \case
  TimeoutError failure@TimeoutFailure {timeoutDelivery = NotSent, timeoutConnecting = Nothing} -> do
    cause <- readIORef (connectorFailures connector) >>= sequence . Map.lookup endpoint
    pure (TimeoutError failure {timeoutConnecting = (,) endpoint <$> cause})
  failure -> pure failure

-- | Connects to an endpoint. Blocks until the connection is ready, with TLS, or refused or out of time; the caller
-- must limit the time of the TLS handshake. Interruptible at any point, and then nothing is left behind. The
-- caller owns the transport and must receive it masked, as 'Control.Exception.bracket' does.
connectWith :: Stage -> Connector -> Endpoint -> IO (Either ConnectionCause Transport)
connectWith Stage {stageLate, stageOver} Connector {connectorConfig, connectorTls} endpoint = mask_ $ do
  -- The user's credentials action runs before this. It may have caught the exception that was to
  -- stop this thread, and gone on. No second exception is thrown, so check here.
  over <- atomically ((Just <$> stageOver) `orElse` pure Nothing)
  dialled <- case (over, endpoint) of
    (Just cause, _) -> pure (Left cause)
    (Nothing, TcpEndpoint host port) -> resolve host port >>= either (pure . Left) (dialAddresses times (writeIORef stageLate))
    (Nothing, UnixEndpoint path) -> dialUnix times path
  case dialled of
    Left cause -> pure (Left cause)
    Right socket -> do
      writeIORef stageLate (ConnectTimedOut limit)
      outcome <- equip socket `onException` release socket
      case outcome of
        Left cause -> Left cause <$ release socket
        Right transport -> pure (Right transport)
  where
    equip socket = do
      case endpoint of
        TcpEndpoint _ _ -> tuneTcp connectorConfig socket
        UnixEndpoint _ -> pure ()
      case connectorTls of
        Nothing -> Right <$> socketTransport endpoint socket
        Just context -> do
          writeIORef stageLate (TlsTimedOut limit)
          tlsTransport context endpoint socket <* writeIORef stageLate (ConnectTimedOut limit)
    deadline = configConnectTimeout connectorConfig
    limit = seconds deadline
    -- RFC 8305 recommends a quarter of a second; less where the deadline is short.
    times = DialTimes {dialDeadline = deadline, dialStagger = min 0.25 (deadline / 4)}

-- | The time limits of a dial, in seconds.
data DialTimes = DialTimes
  { -- | The limit for all addresses together.
    dialDeadline :: Double,
    -- | How long one address is tried before the next one is tried beside it.
    dialStagger :: Double
  }

-- | The addresses of a host, in the resolver's order. Interruptible: a thread of its own looks a name up, because
-- the system's resolver cannot be interrupted and may take a minute. Literal addresses need no such thread.
resolve :: Host -> Port -> IO (Either ConnectionCause [SockAddr])
resolve host port =
  try (lookUp [Socket.AI_NUMERICHOST, Socket.AI_NUMERICSERV]) >>= \case
    Right addresses -> pure (Right addresses)
    Left (_ :: IOException) -> do
      answer <- newEmptyMVar
      void . spawn "redis-client: resolver" $
        try (lookUp [Socket.AI_NUMERICSERV]) >>= putMVar answer
      first (\failure -> NameNotResolved (name <> ": " <> ioe_description (failure :: IOException))) <$> takeMVar answer
  where
    name = Text.unpack (Text.decodeUtf8With Text.lenientDecode host)
    lookUp flags =
      map Socket.addrAddress
        <$> Socket.getAddrInfo
          (Just Socket.defaultHints {Socket.addrFlags = flags, Socket.addrSocketType = Socket.Stream})
          (Just name)
          (Just (show port))

-- | An address with a connection attempt under way.
data Candidate = Candidate
  { candidateAddress :: SockAddr,
    candidateSocket :: Socket,
    -- | Retries until the kernel has decided.
    candidateDecided :: STM ()
  }

-- | The outcome of starting a connection attempt, or of waiting for it.
data DialOutcome
  = Connected Socket
  | Refused SockAddr String
  | UnderWay Candidate

-- | Runs the race that the module's header describes, among TCP addresses, for at most 'dialDeadline';
-- interruptible. The action is told, at each change, what would be wrong if the time were over. A failure
-- names each address with its reason; 'ConnectTimedOut' if the only address gave none before the deadline.
-- The socket is non-blocking and closed on @exec@; the caller owns it.
dialAddresses :: DialTimes -> (ConnectionCause -> IO ()) -> [SockAddr] -> IO (Either ConnectionCause Socket)
dialAddresses DialTimes {dialDeadline, dialStagger} tell addresses = do
  expired <- expiry dialDeadline
  mask $ \restore -> do
    opened <- newIORef []
    let closeAll = readIORef opened >>= mapM_ release
    winner <- restore (race opened expired) `onException` closeAll
    mapM_ (modifyIORef' opened . List.delete) winner
    winner <$ closeAll
  where
    race opened expired = begin [] [] addresses
      where
        begin failures [] [] = pure (Left (failed (reverse failures)))
        begin failures waiting [] = await failures waiting [] (check False)
        begin failures waiting (address : later) = do
          outcome <- start opened address
          next <- expiry dialStagger
          settle failures waiting later next outcome

        settle failures waiting later next = \case
          Connected socket -> pure (Right socket)
          Refused address reason -> begin ((address, reason) : failures) waiting later
          UnderWay candidate -> await failures (waiting <> [candidate]) later next

        await failures waiting later next = do
          tell late
          event <- atomically (asum [Decided candidate <$ candidateDecided candidate | candidate <- waiting] <|> (Next <$ nextIfAny) <|> (Expired <$ expired))
          case event of
            Decided Candidate {candidateAddress, candidateSocket = decided} -> do
              number <- Socket.getSocketOption decided Socket.SoError
              let others = filter ((/= decided) . candidateSocket) waiting
              concluded candidateAddress decided (fromIntegral number) >>= settle failures others later next
            Next -> begin failures waiting later
            Expired -> pure (Left late)
          where
            late = silent (reverse failures) (map candidateAddress waiting) later
            nextIfAny = check (not (null later)) *> next

    failed failures = ConnectFailed (List.intercalate "; " (map reasoned failures))
    reasoned (address, reason) = show address <> ": " <> reason
    silent [] [_] [] = ConnectTimedOut (seconds dialDeadline)
    silent failures waiting later = failed (failures <> [(address, "no answer") | address <- waiting] <> [(address, "not tried in time") | address <- later])

-- | An event that ends one wait of the race.
data DialEvent = Decided Candidate | Next | Expired

-- | Opens a socket, notes it among the opened ones and starts to connect it.
start :: IORef [Socket] -> SockAddr -> IO DialOutcome
start opened address =
  try (openNoted opened address) >>= \case
    Left failure -> pure (Refused address (ioe_description failure))
    Right socket ->
      startConnect socket address >>= \case
        1 -> do
          (decided, _) <- Socket.withFdSocket socket (threadWaitWriteSTM . fromIntegral)
          pure (UnderWay Candidate {candidateAddress = address, candidateSocket = socket, candidateDecided = decided})
        negated -> concluded address socket (negate negated)

-- | The outcome for the final error number of a connect, where 0 is success. A connection to itself
-- counts as a closed port: taking it for a server would make every command its own reply.
concluded :: SockAddr -> Socket -> CInt -> IO DialOutcome
concluded address socket number = do
  itself <- if number == 0 then meetsItself socket else pure False
  if number == 0 && not itself
    then pure (Connected socket)
    else Refused address (describe (if itself then eCONNREFUSED else Errno number)) <$ release socket

-- | Whether a connected socket is its own peer. Never blocks.
meetsItself :: Socket -> IO Bool
meetsItself socket = (/= 0) <$> Socket.withFdSocket socket c_meetsItself

openNoted :: IORef [Socket] -> SockAddr -> IO Socket
openNoted opened address = mask_ $ do
  socket <- open $ case address of
    SockAddrInet {} -> Socket.AF_INET
    SockAddrInet6 {} -> Socket.AF_INET6
    SockAddrUnix {} -> Socket.AF_UNIX
  socket <$ modifyIORef' opened (socket :)

-- | A non-blocking stream socket that children do not inherit.
open :: Socket.Family -> IO Socket
open family = do
  socket <- Socket.socket family Socket.Stream Socket.defaultProtocol
  socket <$ Socket.withFdSocket socket Socket.setCloseOnExecIfNeeded

-- | Closes a socket, unless it is closed. Waits for nothing but the IO manager's own bookkeeping.
release :: Socket -> IO ()
release = uninterruptibleMask_ . Socket.close

-- | Connects to a Unix socket. Interruptible. The system has no way to wait for a listener whose
-- queue is full, so the call is repeated every 5 ms until 'dialDeadline'.
dialUnix :: DialTimes -> FilePath -> IO (Either ConnectionCause Socket)
dialUnix DialTimes {dialDeadline} path =
  try dial >>= either (refused . ioe_description) pure
  where
    dial = do
      bytes <- encodePath path
      if length bytes > longestPath
        then refused "the path is too long for a socket"
        else bracketOnError (open Socket.AF_UNIX) release (connectPath bytes rounds)
    refused reason = pure (Left (ConnectFailed (path <> ": " <> reason)))
    rounds = ceiling (max 0 (min 1e6 dialDeadline) / 0.005) :: Int
    connectPath bytes left socket =
      startConnect socket (SockAddrUnix bytes) >>= \negated -> case Errno (negate negated) of
        number
          | negated == 0 -> pure (Right socket)
          | number /= eAGAIN -> release socket *> refused (describe number)
          | left <= 0 -> Left (ConnectTimedOut (seconds dialDeadline)) <$ release socket
          | otherwise -> threadDelay 5000 *> connectPath bytes (left - 1) socket
    -- sun_path holds 104 bytes on the BSDs and 108 on Linux, including the final zero byte.
    longestPath = 103

-- | The path's bytes as the system sees them, one to a 'Char', which is how 'SockAddrUnix' wants them.
encodePath :: FilePath -> IO String
encodePath path = do
  encoding <- getFileSystemEncoding
  Foreign.withCStringLen encoding path $ \(bytes, size) ->
    map castCCharToChar <$> peekArray size bytes

startConnect :: Socket -> SockAddr -> IO CInt
startConnect socket address =
  allocaBytes size $ \memory -> do
    pokeSocketAddress memory address
    Socket.withFdSocket socket $ \descriptor -> c_connect descriptor memory (fromIntegral size)
  where
    size = sizeOfSocketAddress address

describe :: Errno -> String
describe number = ioe_description (errnoToIOError "connect" number Nothing Nothing)

foreign import ccall unsafe "redis_client_connect"
  c_connect :: CInt -> Ptr SockAddr -> CInt -> IO CInt

foreign import ccall unsafe "redis_client_meets_itself"
  c_meetsItself :: CInt -> IO CInt
