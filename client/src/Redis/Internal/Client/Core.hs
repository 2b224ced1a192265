-- | The parts of a client that running a command needs.
module Redis.Internal.Client.Core
  ( Core (..),
    Client (..),
    Learnt (..),
    keepOpen,
    unlessClosed,
    pauseFor,
    longestArgument,
    deadlineFor,
  )
where

import Control.Concurrent.STM
import Control.Monad.Primitive (touch)
import Data.ByteString (ByteString)
import Data.IORef
import Data.Map.Strict (Map)
import Redis.Error (Error (ClientClosed))
import Redis.Internal.Client.Cache (CacheStore)
import Redis.Internal.Client.Deadline
import Redis.Internal.Client.EventDispatcher
import Redis.Internal.Client.RetryEngine
import Redis.Internal.Client.Subscriptions (Subscriptions)
import Redis.Internal.Client.TraceNotes (TraceNotes)
import Redis.Internal.Command
import Redis.Internal.Config
import Redis.Internal.Network.Credentials (CredentialStore)
import Redis.Internal.Network.InFlight (OrderKey)
import Redis.Internal.Network.Runtime
import Redis.Internal.Protocol.CommandTable (CommandEntry)
import Redis.Internal.Routing.Cluster (ClusterClient)

data Core = Core
  { coreConfig :: Config,
    -- | The time limit of a command that has none of its own, or 'never'.
    coreTimeLimit :: {-# UNPACK #-} !Nanos,
    coreCluster :: ClusterClient,
    coreRetryEngine :: RetryEngine,
    -- | The client's subscriptions.
    coreSubscriptions :: Subscriptions,
    coreCredentials :: CredentialStore,
    coreClosed :: TVar Bool,
    -- | The server's answers about commands that the command table lacks, by name; the name
    -- of a subcommand follows a bar.
    coreLearnt :: IORef (Map ByteString Learnt),
    -- | The cache of replies, if the client has one.
    coreCache :: Maybe CacheStore,
    -- | Calls the user's hooks.
    coreDispatcher :: EventDispatcher,
    -- | The notes about the current command, if it is traced.
    coreNotes :: Maybe TraceNotes,
    -- | The thread whose command it is: not always the one that runs it.
    coreThread :: IO OrderKey,
    -- | Held by users, and by no thread of the library: when it is garbage, the client can
    -- no longer be used.
    coreHandle :: IORef ()
  }

-- | Connections to a server or a cluster. Any number of threads may use one client at the
-- same time; a program needs one client for each server or cluster.
newtype Client = Client Core

-- | Keeps the client alive up to this point, so that its finaliser does not run while an action waits.
keepOpen :: Core -> IO ()
keepOpen = touch
{-# INLINE keepOpen #-}

-- | The error of a command of which nothing was sent, or that the client is closed.
unlessClosed :: Core -> Error -> IO Error
unlessClosed core failed = (\closed -> if closed then ClientClosed else failed) <$> readTVarIO (coreClosed core)

-- | Blocks for so many seconds before another attempt. Ends at once, with 'False', when the client
-- is closed.
pauseFor :: Core -> Double -> IO Bool
pauseFor core delay = do
  over <- expiry delay
  atomically ((False <$ (readTVar (coreClosed core) >>= check)) `orElse` (True <$ over))

-- | The most bytes that an argument may have.
longestArgument :: Core -> Int
longestArgument = limitBulkBytes . configLimits . coreConfig

-- | The server's answer about a name that the command table lacks.
data Learnt
  = -- | The server described it.
    Described CommandEntry
  | -- | The server gave no description (this user may not ask). It is not asked again
    -- before this time.
    Untold Nanos

-- | The deadline of a command with these facts that began at this time.
deadlineFor :: Core -> Facts -> Nanos -> Deadline
deadlineFor core = wholeDeadline (coreTimeLimit core)
