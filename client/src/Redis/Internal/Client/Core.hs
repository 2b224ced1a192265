-- | What running a command needs.
module Redis.Internal.Client.Core
  ( Core (..),
    Client (..),
    Learnt (..),
    keepOpen,
    remainingSeconds,
    termsWithin,
  )
where

import Control.Monad.Primitive (touch)
import Data.ByteString (ByteString)
import Data.IORef
import Data.Map.Strict (Map)
import Redis.Internal.Client.CacheStore (CacheStore)
import Redis.Internal.Client.Herald
import Redis.Internal.Client.Journey (Journey)
import Redis.Internal.Client.Recoverer
import Redis.Internal.Client.Subscriptions (Hub)
import Redis.Internal.Command
import Redis.Internal.Config
import Redis.Internal.Network.Clock
import Redis.Internal.Network.Credentials (CredentialStore)
import Redis.Internal.Network.Multiplexer (Terms (..), usualTerms)
import Redis.Internal.Protocol.CommandTable (CommandEntry)
import Redis.Internal.Routing.Router

-- | The parts of a client.
data Core = Core
  { coreConfig :: Config,
    coreRouter :: Router,
    coreRecoverer :: Recoverer,
    -- | Its subscriptions.
    coreHub :: Hub,
    coreCredentials :: CredentialStore,
    coreClosed :: IORef Bool,
    -- | What the server said of commands that the table lacks, by name; a
    -- subcommand's follows a bar.
    coreLearnt :: IORef (Map ByteString Learnt),
    -- | What is kept of what was read, if anything is.
    coreCache :: Maybe CacheStore,
    -- | Tells the hooks.
    coreHerald :: Herald,
    -- | What is noted of the command at hand, if somebody traces it.
    coreJourney :: Maybe Journey,
    -- | What users hold, and no thread of the library does: when it is gone, nobody
    -- can use the client any more.
    coreHandle :: IORef ()
  }

-- | Connections to a server or a cluster. Any number of threads may use one
-- client at the same time; a program needs one per server or cluster.
--
-- @since 0.1.0.0
newtype Client = Client Core

-- | To be done after everything that waits. Before it the client is in use, and its
-- finaliser does not run.
keepOpen :: Core -> IO ()
keepOpen = touch . coreHandle
{-# INLINE keepOpen #-}

-- | What is known of a name that the table lacks.
data Learnt
  = -- | The server described it.
    Described CommandEntry
  | -- | The server would not tell (this user may not ask); not asked again before
    -- this time.
    Untold Nanos

-- | Seconds until the time is over of a command that was begun then; the time
-- that it waits on the server is its own. 'Nothing' if it has no limit.
remainingSeconds :: Core -> Facts -> Nanos -> IO (Maybe Double)
remainingSeconds core facts began = case allowed of
  Nothing -> pure Nothing
  Just limit -> do
    now <- coarseNanos
    pure (Just (limit - secondsFromNanos (now - began)))
  where
    allowed = case factBlocking facts of
      NonBlocking -> allowedSeconds (coreConfig core) facts
      BlocksFor limit -> (+ limit) <$> allowedSeconds (coreConfig core) facts
      BlocksForever -> factPatience facts

-- | To wait for a reply for at most so many seconds. The connection sees to that: a
-- timer that throws might throw to a thread to which its owner throws as well.
termsWithin :: Maybe Double -> Terms
termsWithin patience = usualTerms {termsPatience = nanosFromSeconds <$> patience}
