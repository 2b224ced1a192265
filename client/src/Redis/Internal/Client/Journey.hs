-- | Where one command has been, for who looks at it: it decides nothing.
--
-- Noted off the ordinary path only. A command whose first attempt succeeds is noted
-- when somebody traces it.
module Redis.Internal.Client.Journey
  ( Journey,
    newJourney,
    Travelled (..),
    travelled,
    noteAimed,
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

-- | What is noted of a command, or of those of a pipeline.
newtype Journey = Journey (IORef Travelled)

-- | How far it has come.
data Travelled = Travelled
  { -- | The node of the last attempt.
    travelledNode :: Maybe Endpoint,
    -- | Whether all attempts were at that node.
    travelledOneNode :: Bool,
    -- | When it stood in the queue of a connection first.
    travelledEntered :: Maybe Nanos,
    -- | Commands that were handed to the recoverer.
    travelledFlights :: Int,
    travelledAttempts :: Int,
    travelledRedirects :: Int,
    -- | When an attempt failed first.
    travelledTrouble :: Maybe Nanos
  }

-- | Of one that has not begun.
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

-- | As it stands.
travelled :: Journey -> IO Travelled
travelled (Journey known) = readIORef known

-- | A command is about to be sent there for the first time, or has been.
noteAimed :: Journey -> Endpoint -> IO ()
noteAimed journey node = note journey $ \known ->
  known
    { travelledNode = travelledNode known <|> Just node,
      travelledOneNode = travelledOneNode known && maybe True (== node) (travelledNode known)
    }

-- | It stands in the queue of a connection at this time.
noteEntered :: Journey -> Nanos -> IO ()
noteEntered journey now = note journey $ \known -> known {travelledEntered = travelledEntered known <|> Just now}

-- | A command is dealt with by the recoverer.
noteFlight :: Journey -> IO ()
noteFlight journey = note journey $ \known -> known {travelledFlights = travelledFlights known + 1}

-- | It was sent to a node, or tried to be.
noteAttempt :: Journey -> Endpoint -> IO ()
noteAttempt journey node = note journey $ \known ->
  known
    { travelledNode = Just node,
      travelledOneNode = travelledOneNode known && maybe True (== node) (travelledNode known),
      travelledAttempts = travelledAttempts known + 1
    }

-- | An attempt failed at this time.
noteTrouble :: Journey -> Nanos -> IO ()
noteTrouble journey now = note journey $ \known -> known {travelledTrouble = travelledTrouble known <|> Just now}

-- | It was sent elsewhere.
noteRedirect :: Journey -> IO ()
noteRedirect journey = note journey $ \known -> known {travelledRedirects = travelledRedirects known + 1}

note :: Journey -> (Travelled -> Travelled) -> IO ()
note (Journey known) f = atomicModifyIORef' known (\before -> (f before, ()))
