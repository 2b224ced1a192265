-- | The common parts of walks: pulling pages, and limiting how long a walk makes no progress.
module Redis.Internal.Client.Walker
  ( Walk (..),
    newWalk,
    WalkOptions (..),
    walkDefaults,

    -- * Standing still
    Stall,
    moving,
    isStalled,
    troubled,
    rest,
  )
where

import Control.Concurrent (threadDelay)
import Control.Concurrent.MVar (newMVar, withMVar)
import Control.Exception (throwIO)
import Data.IORef
import Data.Maybe (fromMaybe, isJust)
import Redis.Duration (Duration, inSeconds, seconds)
import Redis.Error
import Redis.Internal.Network.Runtime
import Redis.Internal.Routing.Scan
import Redis.Internal.Routing.Topology (isPermanent)

-- | A walk in progress, and its position. One thread at a time pulls; other threads wait for
-- it. A walk may be dropped at any time.
data Walk item = Walk
  { walkPull :: IO (Maybe [item]),
    walkStands :: IO Position
  }

-- | A walk over a state, given how the state's time limit is renewed, and the action that pulls
-- a page. That action stores the state after each thing that it has learnt, so that a pull
-- that fails loses nothing.
newWalk :: state -> (Stall -> state -> state) -> (IORef state -> IO (Maybe [item])) -> (state -> Position) -> IO (Walk item)
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

-- | The options of a walk.
data WalkOptions = WalkOptions
  { -- | Where the walk goes on. 'Nothing' is the beginning. A position of a walk over
    -- something else counts as the beginning, too.
    walkFrom :: Maybe Position,
    -- | How long the walk may make no progress before it throws. It should be longer than a
    -- fail-over takes.
    walkTimeout :: Duration
  }
  deriving stock (Eq, Show)

-- | From the beginning, with a time limit of one minute.
walkDefaults :: WalkOptions
walkDefaults = WalkOptions {walkFrom = Nothing, walkTimeout = seconds 60}

-- | When a walk last made progress, how often it has tried since, and the last error.
data Stall = Stall
  { stillSince :: Nanos,
    stillRounds :: Int,
    stillWhy :: Maybe Error
  }

-- | The stall of a walk that has just made progress.
moving :: IO Stall
moving = do
  now <- preciseNanos
  pure Stall {stillSince = now, stillRounds = 0, stillWhy = Nothing}

-- | Whether anything was tried since the last progress.
isStalled :: Stall -> Bool
isStalled still = stillRounds still > 0

-- | Notes an error; throws it if it would be the same next time.
troubled :: Error -> Stall -> IO Stall
troubled problem still
  | passes problem = pure still {stillWhy = Just problem}
  | otherwise = throwIO problem

-- | Prepares another try: sleeps, longer each time, but not before the first. If the walk's
-- time limit is over and a try has failed, throws the last error, or else the given one.
rest :: WalkOptions -> Error -> Stall -> IO Stall
rest options otherwise' still = do
  now <- preciseNanos
  if (isStalled still || isJust (stillWhy still)) && secondsFromNanos (now - stillSince still) > inSeconds (walkTimeout options)
    then throwIO (fromMaybe otherwise' (stillWhy still))
    else do
      if isStalled still then threadDelay (5000 * 2 ^ min 6 (stillRounds still)) else pure ()
      pure still {stillRounds = stillRounds still + 1}

-- Whether the next try may end differently.
passes :: Error -> Bool
passes problem = case problem of
  ReplyError ServerError {serverErrorCode} ->
    serverErrorCode `elem` ["LOADING", "CLUSTERDOWN", "MASTERDOWN", "TRYAGAIN", "MOVED", "ASK", "REDIRECT", "READONLY", "BUSY"]
  UnexpectedReply _ -> False
  ConnectionError _ -> not (isPermanent problem)
  TimeoutError _ -> True
  RoutingError _ -> True
  RefusedError (NoSuchNode _) -> True
  RefusedError _ -> False
  SubscriberTooSlow _ -> False
  ClientClosed -> False
