-- | How many reads at replicas miss a key that was written long before, while its slot moves: for a
-- client that only reads at replicas, and for one that also writes to the slot and so sees the
-- server's redirects.
module Lab.Moving
  ( MovingOptions (..),
    moving,
  )
where

import Control.Concurrent.Async (withAsync)
import Control.Monad (forM, forM_, forever, when)
import Data.Aeson (Value, object, (.=))
import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Data.IORef (IORef, atomicModifyIORef', newIORef)
import Data.List (find)
import Data.List.NonEmpty (NonEmpty, nonEmpty)
import Data.Maybe (isNothing)
import Redis (Client, Config, Endpoint (..), ReadFrom (PreferReplica))
import Redis qualified
import Redis.Commands qualified as Commands
import Redis.TestKit.Address (Address (..))
import Redis.TestKit.Cluster
import Redis.TestKit.Server qualified as Server
import Redis.TestKit.Wait (eventually, failure, pause)
import System.Exit (ExitCode (..))
import Tool.Bench.Document (documentOf)
import Tool.Bench.Document.Json (documentObject)
import Tool.Bench.Environment (manifest)
import Tool.Bench.Progress (Progress, announce)
import Tool.Connect (plainTarget, serverVersion)
import Tool.Text (Align (..), table)

-- | The options of @moving@.
data MovingOptions = MovingOptions
  { movingRounds :: Int,
    movingJson :: Maybe FilePath
  }
  deriving stock (Eq, Show)

-- The reads of a client, and how many of them missed their key.
data Reads = Reads
  { readsMade :: Int,
    readsMissed :: Int
  }

-- | Moves a slot of a thousand keys to another primary and back, ten keys at a time with pauses, and
-- counts the reads of both clients from the beginning of a move until all nodes agree on its end.
-- Takes about four seconds for a round.
moving :: MovingOptions -> Progress -> (Value -> IO ()) -> IO ExitCode
moving options progress write = do
  about <- manifest
  withCluster clusterDefaults {clusterPrimaryCount = 3, clusterReplicasPerPrimary = 1, clusterNodeTimeout = 15000} $ \cluster -> do
    slot <- slotOf cluster tag
    addresses <- clusterAddresses cluster >>= maybe (failure "a cluster without nodes") pure . nonEmpty . map endpointOf
    version <- serverOf cluster
    rounds <- forM [1 .. movingRounds options] $ \turn -> do
      announce progress ("move " <> show turn <> " of " <> show (movingRounds options))
      source <- slotPrimary cluster slot
      target <- otherPrimary cluster source
      -- New clients: none knows of earlier moves.
      Redis.withClient (configOf addresses) $ \only ->
        Redis.withClient (configOf addresses) $ \mixed -> do
          forM_ keys $ \key -> Redis.run mixed (Commands.set key key)
          forM_ [only, mixed] $ \client -> eventually 20 "the replicas have every key" (not . any isNothing <$> traverse (readOne client) keys)
          onlyReads <- newIORef (Reads 0 0)
          mixedReads <- newIORef (Reads 0 0)
          withAsync (reading only onlyReads) $ \_ ->
            withAsync (readingAndWriting mixed mixedReads) $ \_ -> do
              forM_ [onlyReads, mixedReads] takeReads
              migrateSlot cluster quietMigration {migrationMoved = const (pause 0.02)} slot target
              (,) <$> takeReads onlyReads <*> takeReads mixedReads
    putStrLn version
    mapM_ putStrLn (table [AlignLeft, AlignRight, AlignRight, AlignRight, AlignRight] (heading : zipWith line [1 :: Int ..] rounds))
    write $
      documentObject
        [ "server" .= version,
          "keys" .= length keys,
          "reads_per_write" .= writeEvery,
          "moves" .= [object ["only_reads" .= counted one, "writes_too" .= counted other] | (one, other) <- rounds]
        ]
        (documentOf about [])
    pure ExitSuccess
  where
    heading = ["move", "only reads", "missed", "writes too", "missed"]
    line turn (one, other) = [show turn, show (readsMade one), show (readsMissed one), show (readsMade other), show (readsMissed other)]
    counted found = object ["reads" .= readsMade found, "missed" .= readsMissed found]
    takeReads counts = atomicModifyIORef' counts (\found -> (Reads 0 0, found))

tag :: ByteString
tag = "{moving}"

keys :: [ByteString]
keys = [tag <> Char8.pack (show number) | number <- [1 .. 1000 :: Int]]

-- The client that writes sends one SET for so many GETs.
writeEvery :: Int
writeEvery = 20

readOne :: Client -> ByteString -> IO (Maybe ByteString)
readOne client key = Redis.run client (Commands.get key)

reading :: Client -> IORef Reads -> IO ()
reading client counts = forever $ forM_ keys (counting client counts)

readingAndWriting :: Client -> IORef Reads -> IO ()
readingAndWriting client counts = forever $
  forM_ (zip [1 ..] keys) $ \(number, key) -> do
    when (number `rem` writeEvery == 0) $ Redis.run client (Commands.set key key)
    counting client counts key

counting :: Client -> IORef Reads -> ByteString -> IO ()
counting client counts key = do
  found <- readOne client key
  atomicModifyIORef' counts $ \(Reads made missed) -> (Reads (made + 1) (if isNothing found then missed + 1 else missed), ())

configOf :: NonEmpty Endpoint -> Config
configOf = Redis.setReadFrom PreferReplica . Redis.clusterConfig

endpointOf :: Address -> Endpoint
endpointOf = \case
  TcpAddress host port -> TcpEndpoint (Char8.pack host) (fromIntegral port)
  UnixAddress path -> UnixEndpoint path

-- The name and version of the cluster's servers.
serverOf :: Cluster -> IO String
serverOf cluster = do
  nodes <- clusterNodes cluster
  case nodes of
    node : _ -> fst <$> serverVersion (plainTarget (Char8.pack (Server.serverHost (nodeServer node))) (fromIntegral (Server.serverPort (nodeServer node))))
    [] -> failure "a cluster without nodes"

-- A primary other than this one.
otherPrimary :: Cluster -> Node -> IO Node
otherPrimary cluster node =
  clusterPrimaries cluster >>= maybe (failure "there is no other primary") pure . find (/= node) . map fst
