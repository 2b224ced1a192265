-- | The notes about the attempts of one command, or of all commands of a pipeline, for the user's hook.
-- They are taken only if there is such a hook. Of a first attempt that succeeds they have the node, and the
-- time at which the command stood in a queue.
module Redis.Internal.Client.TraceNotes
  ( TraceNotes,
    newTraceNotes,
    Noted (..),
    readNotes,
    noteTarget,
    noteEntered,
    noteRetried,
    noteAttempt,
    noteFailed,
    noteRedirect,
  )
where

import Control.Applicative ((<|>))
import Data.IORef
import Redis.Error (Endpoint)
import Redis.Internal.Network.Runtime (Nanos)

-- | The notes about a command, or about all commands of a pipeline.
newtype TraceNotes = TraceNotes (IORef Noted)

data Noted = Noted
  { -- | The node of the last attempt.
    notedNode :: Maybe Endpoint,
    -- | Whether all attempts were at that node.
    notedOneNode :: Bool,
    -- | When the command first stood in the queue of a connection.
    notedEntered :: Maybe Nanos,
    -- | How many commands were handed to the retry engine.
    notedFlights :: Int,
    notedAttempts :: Int,
    notedRedirects :: Int,
    -- | When an attempt first failed.
    notedTrouble :: Maybe Nanos
  }

newTraceNotes :: IO TraceNotes
newTraceNotes =
  TraceNotes
    <$> newIORef
      Noted
        { notedNode = Nothing,
          notedOneNode = True,
          notedEntered = Nothing,
          notedFlights = 0,
          notedAttempts = 0,
          notedRedirects = 0,
          notedTrouble = Nothing
        }

readNotes :: TraceNotes -> IO Noted
readNotes (TraceNotes known) = readIORef known

-- | Notes the node of a first attempt, shortly before or after it is sent.
noteTarget :: TraceNotes -> Endpoint -> IO ()
noteTarget notes node = note notes $ \known -> (atNode node known) {notedNode = notedNode known <|> Just node}

-- | Notes that the command stands in the queue of a connection at this time.
noteEntered :: TraceNotes -> Nanos -> IO ()
noteEntered notes now = note notes $ \known -> known {notedEntered = notedEntered known <|> Just now}

noteRetried :: TraceNotes -> IO ()
noteRetried notes = note notes $ \known -> known {notedFlights = notedFlights known + 1}

-- | Notes an attempt at a node, also if it could not be sent.
noteAttempt :: TraceNotes -> Endpoint -> IO ()
noteAttempt notes node = note notes $ \known -> (atNode node known) {notedNode = Just node, notedAttempts = notedAttempts known + 1}

atNode :: Endpoint -> Noted -> Noted
atNode node known = known {notedOneNode = notedOneNode known && all (== node) (notedNode known)}

noteFailed :: TraceNotes -> Nanos -> IO ()
noteFailed notes now = note notes $ \known -> known {notedTrouble = notedTrouble known <|> Just now}

noteRedirect :: TraceNotes -> IO ()
noteRedirect notes = note notes $ \known -> known {notedRedirects = notedRedirects known + 1}

note :: TraceNotes -> (Noted -> Noted) -> IO ()
note (TraceNotes known) f = atomicModifyIORef' known (\before -> (f before, ()))
