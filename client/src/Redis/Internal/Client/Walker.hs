-- | What walks have in common: how they are pulled, and how long they stand still.
module Redis.Internal.Client.Walker
  ( Walk (..),
    newWalk,
    WalkOptions (..),
    walkDefaults,

    -- * Standing still
    Standstill,
    moving,
    isStuck,
    troubled,
    rest,
  )
where

import Control.Concurrent (threadDelay)
import Control.Concurrent.MVar (newMVar, withMVar)
import Control.Exception (throwIO)
import Data.IORef
import Data.Maybe (fromMaybe)
import Redis.Duration (Duration, inSeconds, seconds)
import Redis.Error
import Redis.Internal.Network.Clock
import Redis.Internal.Routing.Lasting (isLasting)
import Redis.Internal.Routing.Position

-- | A walk in progress, and where it stands. One thread at a time pulls; others wait
-- for it. It may be dropped at any time.
--
-- @since 0.1.0.0
data Walk item = Walk
  { walkPull :: IO (Maybe [item]),
    walkStands :: IO Position
  }

-- | Of a state, how it is begun to be patient anew, and what pulls: that puts down the state
-- after each thing that it has learnt, so that one who fails loses nothing.
newWalk :: state -> (Standstill -> state -> state) -> (IORef state -> IO (Maybe [item])) -> (state -> Position) -> IO (Walk item)
newWalk beginning renewed pull position = do
  place <- newIORef beginning
  turn <- newMVar ()
  pure
    Walk
      { walkPull = withMVar turn $ \() -> do
          now <- moving
          modifyIORef' place (renewed now)
          pull place,
        walkStands = position <$> readIORef place
      }

-- | How a walk goes.
--
-- @since 0.1.0.0
data WalkOptions = WalkOptions
  { -- | Where it goes on; 'Nothing' is the beginning. A position of a walk over
    -- something else counts as the beginning, too.
    walkFrom :: Maybe Position,
    -- | For how long it may come no further before it throws: longer than a
    -- fail-over takes.
    walkPatience :: Duration
  }
  deriving stock (Eq, Show)

-- | From the beginning, with a minute's patience.
--
-- @since 0.1.0.0
walkDefaults :: WalkOptions
walkDefaults = WalkOptions {walkFrom = Nothing, walkPatience = seconds 60}

-- | When it last came further, how often it tried since, and what went wrong.
data Standstill = Standstill
  { stillSince :: Nanos,
    stillRounds :: Int,
    stillWhy :: Maybe Error
  }

-- | It came further.
moving :: IO Standstill
moving = do
  now <- preciseNanos
  pure Standstill {stillSince = now, stillRounds = 0, stillWhy = Nothing}

-- | Whether something was tried since it came further.
isStuck :: Standstill -> Bool
isStuck still = stillRounds still > 0

-- | Notes what went wrong; throws it if it will be the same next time.
troubled :: Error -> Standstill -> IO Standstill
troubled problem still
  | passes problem = pure still {stillWhy = Just problem}
  | otherwise = throwIO problem

-- | Before something is tried again: rests, longer each time, but not the first time.
-- When patience is at its end, throws what went wrong, or else this.
rest :: WalkOptions -> Error -> Standstill -> IO Standstill
rest options otherwise' still = do
  now <- preciseNanos
  if secondsFromNanos (now - stillSince still) > inSeconds (walkPatience options)
    then throwIO (fromMaybe otherwise' (stillWhy still))
    else do
      if isStuck still then threadDelay (5000 * 2 ^ min 6 (stillRounds still)) else pure ()
      pure still {stillRounds = stillRounds still + 1}

-- Whether it may be otherwise next time.
passes :: Error -> Bool
passes problem = case problem of
  ReplyError ServerError {serverErrorCode} ->
    serverErrorCode `elem` ["LOADING", "CLUSTERDOWN", "MASTERDOWN", "TRYAGAIN", "MOVED", "ASK", "READONLY", "BUSY"]
  UnexpectedReply _ -> False
  ConnectionError _ -> not (isLasting problem)
  TimeoutError _ -> True
  RoutingError _ -> True
  RefusedError (NoSuchNode _) -> True
  RefusedError _ -> False
  SubscriberTooSlow _ -> False
  ClientClosed -> False
