-- | Tells the user's hook when commands begin and end.
module Redis.Internal.Client.Trace
  ( Trace,
    beginTrace,
    beginTraceOf,
    traceCore,
    enteredQueue,
    sentTo,
    endTrace,
    Subject,
    oneCommand,
    pipelineOf,
    transactionOf,
    atNode,
  )
where

import Data.ByteString (ByteString)
import Data.ByteString qualified as ByteString
import Data.ByteString.Char8 qualified as Char8
import Data.Maybe (fromMaybe)
import Redis.Error (Endpoint)
import Redis.Internal.Client.Core
import Redis.Internal.Client.TraceNotes
import Redis.Internal.Command (writeFacts)
import Redis.Internal.Command.Shown (shownArguments)
import Redis.Internal.Config
import Redis.Internal.Hooks
import Redis.Internal.Network.Runtime
import Redis.Internal.Protocol.CommandTable (nameFromArguments)
import Redis.Internal.Routing.Nodes (Destination (destinationNode), Node (nodeEndpoint))
import Redis.Internal.Routing.Router (destinationFor)
import Redis.Internal.Routing.Target (Target (TargetAnyNode))

-- | A command, pipeline or transaction that begins.
data Subject = Subject
  { subjectExtent :: Extent,
    -- | The information for the hook. The database is filled in later.
    subjectBegun :: CommandBegun,
    -- | The database, if it is not the client's, and the node, if it is known already.
    subjectDestination :: Maybe (Maybe Int, Endpoint)
  }

-- | Whether everything goes to one place, as far as is known.
data Extent = Alone | Scattered
  deriving stock (Eq)

oneCommand :: [ByteString] -> Subject
oneCommand given = described Alone (nameFromArguments given) [given]

-- | A pipeline of these commands. A single command counts as itself.
pipelineOf :: [[ByteString]] -> Subject
pipelineOf = \case
  [only] -> oneCommand only
  given -> described Scattered (named "PIPELINE" given) given

transactionOf :: [[ByteString]] -> Subject
transactionOf given = described Alone (named "MULTI" given) given

-- | The name of a batch, with the name of its commands if all have the same.
named :: ByteString -> [[ByteString]] -> ByteString
named kind given = case map nameFromArguments given of
  first : others | all (== first) others -> kind <> " " <> first
  _ -> kind

described :: Extent -> ByteString -> [[ByteString]] -> Subject
described extent operation given =
  Subject
    { subjectExtent = extent,
      subjectDestination = Nothing,
      subjectBegun =
        CommandBegun
          { begunOperation = operation,
            begunBatch = if length given >= 2 then Just (length given) else Nothing,
            begunText = listed shownArguments,
            begunShape = listed shapeOf,
            begunProcedure = procedure,
            begunDatabase = 0,
            begunNode = Nothing
          }
    }
  where
    listed shown = ByteString.intercalate "; " (map shown (take 16 given)) <> (if length (take 17 given) > 16 then "; ..." else "")
    procedure = case given of
      [name : called : _] | nameFromArguments [name] `elem` ["EVALSHA", "EVALSHA_RO", "FCALL", "FCALL_RO"] -> Just called
      _ -> Nothing

-- | The name, and a question mark for each further word, up to 16.
shapeOf :: [ByteString] -> ByteString
shapeOf given = Char8.unwords (name : map (const "?") (take 16 others) <> ["..." | length (take 17 others) > 16])
  where
    name = nameFromArguments given
    others = drop (Char8.count ' ' name + 1) given

-- | The subject on a connection to this node, in this database if that is known.
atNode :: Maybe Int -> Endpoint -> Subject -> Subject
atNode database node subject = subject {subjectDestination = Just (database, node)}

-- | The trace of something that has begun and not ended.
data Trace = Trace
  { traceClient :: Core,
    traceNotes :: TraceNotes,
    traceExtent :: Extent,
    traceBegan :: Nanos,
    traceEnding :: CommandEnded -> IO ()
  }

-- | Tells the hook that the subject begins. Runs on the thread that begins it.
beginTrace :: Core -> CommandHook -> Subject -> IO Trace
beginTrace core hook subject = newTraceNotes >>= beginTraceOf core hook subject

-- | Like 'beginTrace', with the notes in these notes.
beginTraceOf :: Core -> CommandHook -> Subject -> TraceNotes -> IO Trace
beginTraceOf traceClient hook Subject {subjectExtent = traceExtent, subjectBegun, subjectDestination} traceNotes = do
  begunNode <- case (subjectDestination, configTopology config) of
    -- A single server may have redirected the client to another one.
    (Nothing, Standalone _) -> fmap (nodeEndpoint . destinationNode) <$> destinationFor (coreCluster traceClient) writeFacts TargetAnyNode
    _ -> pure (snd <$> subjectDestination)
  traceEnding <-
    beginObserving
      hook
      subjectBegun
        { begunDatabase = fromMaybe (configDatabase config) (subjectDestination >>= fst),
          begunNode
        }
  traceBegan <- preciseNanos
  pure Trace {traceClient, traceExtent, traceNotes, traceBegan, traceEnding}
  where
    config = coreConfig traceClient

-- | The core that runs the command, and notes its way in the trace's notes.
traceCore :: Trace -> Core
traceCore trace = (traceClient trace) {coreNotes = Just (traceNotes trace)}

-- | Notes that the command stands in the queue of a connection.
enteredQueue :: Trace -> IO ()
enteredQueue trace = preciseNanos >>= noteEntered (traceNotes trace)

sentTo :: Trace -> Endpoint -> IO ()
sentTo = noteTarget . traceNotes

-- | Tells the hook that the command has ended. Runs on the thread that waits for it.
endTrace :: Trace -> CommandOutcome -> IO ()
endTrace Trace {traceExtent, traceNotes, traceBegan, traceEnding} endedOutcome = do
  ended <- preciseNanos
  known <- readNotes traceNotes
  let -- The attempt of a command that succeeds at once is not noted.
      once = maybe 0 (const 1) (notedNode known)
      (node, attempts) = case traceExtent of
        Alone -> (notedNode known, max once (notedAttempts known))
        Scattered
          | notedOneNode known -> (notedNode known, again)
          | otherwise -> (Nothing, again)
      again = 1 + max 0 (notedAttempts known - notedFlights known)
  traceEnding
    CommandEnded
      { endedOutcome,
        endedNode = node,
        endedAttempts = attempts,
        endedRedirects = notedRedirects known,
        endedTook = durationFromNanos (ended - traceBegan),
        endedEntering = durationFromNanos . subtract traceBegan <$> notedEntered known,
        endedRecovering = maybe mempty (durationFromNanos . (ended -)) (notedTrouble known)
      }
