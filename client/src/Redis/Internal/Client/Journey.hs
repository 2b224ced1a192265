-- | The notes about one command's way, for observers. They decide nothing.
--
-- Notes are taken off the ordinary path only. For a command whose first attempt succeeds,
-- they are taken only if it is traced.
module Redis.Internal.Client.Journey
  ( Journey,
    newJourney,
    Travelled (..),
    travelled,
    noteTarget,
    noteEntered,
    noteFlight,
    noteAttempt,
    noteTrouble,
    noteRedirect,
  )
where

import Control.Applicative ((<|>))
import Data.IORef
import Redis.Error (Endpoint)
import Redis.Internal.Network.Clock (Nanos)

-- | The notes about a command, or about all commands of a pipeline.
newtype Journey = Journey (IORef Travelled)

-- | The notes so far.
data Travelled = Travelled
  { -- | The node of the last attempt.
    travelledNode :: Maybe Endpoint,
    -- | Whether all attempts were at that node.
    travelledOneNode :: Bool,
    -- | When the command first stood in the queue of a connection.
    travelledEntered :: Maybe Nanos,
    -- | How many commands were handed to the recoverer.
    travelledFlights :: Int,
    travelledAttempts :: Int,
    travelledRedirects :: Int,
    -- | When an attempt first failed.
    travelledTrouble :: Maybe Nanos
  }

-- | The journey of a command that has not begun.
newJourney :: IO Journey
newJourney =
  Journey
    <$> newIORef
      Travelled
        { travelledNode = Nothing,
          travelledOneNode = True,
          travelledEntered = Nothing,
          travelledFlights = 0,
          travelledAttempts = 0,
          travelledRedirects = 0,
          travelledTrouble = Nothing
        }

-- | The notes as they are now.
travelled :: Journey -> IO Travelled
travelled (Journey known) = readIORef known

-- | Notes the node of a first attempt, shortly before or after it is sent.
noteTarget :: Journey -> Endpoint -> IO ()
noteTarget journey node = note journey $ \known ->
  known
    { travelledNode = travelledNode known <|> Just node,
      travelledOneNode = travelledOneNode known && maybe True (== node) (travelledNode known)
    }

-- | Notes that the command stands in the queue of a connection at this time.
noteEntered :: Journey -> Nanos -> IO ()
noteEntered journey now = note journey $ \known -> known {travelledEntered = travelledEntered known <|> Just now}

-- | Notes that the recoverer takes the command over.
noteFlight :: Journey -> IO ()
noteFlight journey = note journey $ \known -> known {travelledFlights = travelledFlights known + 1}

-- | Notes an attempt at a node, also if it could not be sent.
noteAttempt :: Journey -> Endpoint -> IO ()
noteAttempt journey node = note journey $ \known ->
  known
    { travelledNode = Just node,
      travelledOneNode = travelledOneNode known && maybe True (== node) (travelledNode known),
      travelledAttempts = travelledAttempts known + 1
    }

-- | Notes that an attempt failed at this time.
noteTrouble :: Journey -> Nanos -> IO ()
noteTrouble journey now = note journey $ \known -> known {travelledTrouble = travelledTrouble known <|> Just now}

-- | Notes that a node redirected the command.
noteRedirect :: Journey -> IO ()
noteRedirect journey = note journey $ \known -> known {travelledRedirects = travelledRedirects known + 1}

note :: Journey -> (Travelled -> Travelled) -> IO ()
note (Journey known) f = atomicModifyIORef' known (\before -> (f before, ()))
