-- | A cluster node that sends prepared replies, for replies that a real server does not send on
-- demand.
--
-- It speaks RESP2, accepts any number of connections, and records every command. A script may
-- answer a command, leave it unanswered, or hang up. The node answers the commands that the script
-- leaves alone like a healthy node that owns every slot it is asked about.
module FakeNode
  ( FakeNode,
    fakeEndpoint,
    fakeAddress,
    fakePort,
    withFakeNode,
    withFakeNodeAt,
    withTwoNodes,

    -- * What it says
    Answer (..),
    Script,
    setScript,
    setView,
    quiet,
    hangingUp,
    hangUpAll,

    -- * What it was told
    heard,
    heardOn,
    countHeard,
    connectionsNow,
    connectionsEver,

    -- * Views
    View,
    FakeShard (..),
    shard,
    allSlots,
    shardsView,
    replicated,
    slotsView,
  )
where

import Control.Concurrent.STM
import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Data.Char (toUpper)
import Redis (Endpoint (..), renderEndpoint)
import Redis.TestKit.Command (Protocol (Resp2), Reply (..), encodeReply)
import Redis.TestKit.Listener (AndThen, Caller, Listener, callerNumber, listenerPort, sayTo, withListener)
import Redis.TestKit.Listener qualified as Listener

-- | A fake node.
data FakeNode = FakeNode
  { fakeHost :: ByteString,
    fakeListener :: Listener,
    fakeScript :: TVar Script,
    fakeView :: TVar View,
    -- | The commands received, each with the number of its connection; the latest first.
    fakeHeard :: TVar [(Int, [ByteString])]
  }

-- | The port on which the node listens.
fakePort :: FakeNode -> Int
fakePort = listenerPort . fakeListener

fakeEndpoint :: FakeNode -> Endpoint
fakeEndpoint node = TcpEndpoint (fakeHost node) (fromIntegral (fakePort node))

-- | The node's address, as redirects write it.
fakeAddress :: FakeNode -> ByteString
fakeAddress = Char8.pack . renderEndpoint . fakeEndpoint

-- | What the node does with a command.
data Answer
  = Say Reply
  | -- | Sends nothing, as if the node hung.
    Silence
  | -- | Closes the connection.
    HangUp

-- | Takes the number of the connection and a command, with its name (and subcommand) in capitals.
-- 'Nothing' means: answer like a healthy node.
type Script = Int -> [ByteString] -> IO (Maybe Answer)

-- | A script that leaves every command to the healthy node's answers.
quiet :: Script
quiet _ _ = pure Nothing

-- | Hangs up on the first commands of a name, as often as given. The other script handles all other
-- commands.
hangingUp :: Int -> ByteString -> Script -> IO Script
hangingUp times name otherwise' = do
  left <- newTVarIO times
  pure $ \connection words' -> do
    now <- if take 1 words' == [name] then atomically (stateTVar left (\n -> (n, n - 1))) else pure 0
    if now > 0 then pure (Just HangUp) else otherwise' connection words'

setScript :: FakeNode -> Script -> IO ()
setScript node = atomically . writeTVar (fakeScript node)

-- | Sets the node's reply to CLUSTER SHARDS.
setView :: FakeNode -> View -> IO ()
setView node = atomically . writeTVar (fakeView node)

-- | Every command that the node has received, in the order of arrival.
heard :: FakeNode -> IO [[ByteString]]
heard node = map snd . reverse <$> readTVarIO (fakeHeard node)

-- | Like 'heard', with the number of each command's connection.
heardOn :: FakeNode -> IO [(Int, [ByteString])]
heardOn node = reverse <$> readTVarIO (fakeHeard node)

-- | How many of the commands received begin with these words.
countHeard :: FakeNode -> [ByteString] -> IO Int
countHeard node beginning = length . filter ((== beginning) . take (length beginning)) <$> heard node

connectionsNow :: FakeNode -> IO Int
connectionsNow = atomically . Listener.connectionsNow . fakeListener

connectionsEver :: FakeNode -> IO Int
connectionsEver = atomically . Listener.connectionsEver . fakeListener

-- | Closes every connection. A connection that ends by itself meanwhile does no harm.
hangUpAll :: FakeNode -> IO ()
hangUpAll = Listener.hangUpAll . fakeListener

-- | Two nodes at 127.0.0.1. Both say that the first one owns all slots.
withTwoNodes :: (FakeNode -> FakeNode -> IO a) -> IO a
withTwoNodes action = withFakeNode $ \a -> withFakeNode $ \b -> do
  setView b (shardsView [shard allSlots a])
  action a b

withFakeNode :: (FakeNode -> IO a) -> IO a
withFakeNode = withFakeNodeAt "127.0.0.1"

-- | Runs a node at a numeric address while the action runs.
withFakeNodeAt :: String -> (FakeNode -> IO a) -> IO a
withFakeNodeAt host action = do
  fakeScript <- newTVarIO quiet
  fakeHeard <- newTVarIO []
  fakeView <- newTVarIO (List [])
  let nodeOf fakeListener = FakeNode {fakeHost = Char8.pack host, fakeListener, fakeScript, fakeView, fakeHeard}
  withListener host (serve . nodeOf) $ \listener -> do
    let node = nodeOf listener
    setView node (shardsView [shard allSlots node])
    action node

serve :: FakeNode -> Caller -> [ByteString] -> IO AndThen
serve node caller words' = do
  let command = upperName words'
      say reply = Listener.GoOn <$ sayTo caller (encodeReply Resp2 reply)
  atomically (modifyTVar' (fakeHeard node) ((callerNumber caller, command) :))
  script <- readTVarIO (fakeScript node)
  script (callerNumber caller) command >>= \case
    Just (Say reply) -> say reply
    Just Silence -> pure Listener.GoOn
    Just HangUp -> pure Listener.HangUp
    Nothing -> ordinary node command >>= say

-- The replies of a healthy node.
ordinary :: FakeNode -> [ByteString] -> IO Reply
ordinary node = \case
  ["CLUSTER", "SHARDS"] -> readTVarIO (fakeView node)
  ["CLUSTER", "INFO"] -> pure (Text "cluster_state:ok\r\ncluster_current_epoch:1\r\n")
  "GET" : _ -> pure (Text (Char8.pack (show (fakePort node))))
  "INCR" : _ -> pure (Number 1)
  _ -> pure (Status "OK")

upperName :: [ByteString] -> [ByteString]
upperName = \case
  name : sub : rest | Char8.map toUpper name `elem` ["CLUSTER", "CLIENT"] -> upper name : upper sub : rest
  name : rest -> upper name : rest
  [] -> []
  where
    upper = Char8.map toUpper

-- | The reply to CLUSTER SHARDS or CLUSTER SLOTS.
type View = Reply

-- | The slots of a shard, its primary's address, and its replicas' addresses. The hosts are
-- replies, as the server would send them.
data FakeShard = FakeShard
  { shardRange :: [(Int, Int)],
    shardPrimaryAt :: (Reply, Int),
    shardReplicasAt :: [(Reply, Int)]
  }

allSlots :: [(Int, Int)]
allSlots = [(0, 16383)]

-- | A shard of one node without replicas.
shard :: [(Int, Int)] -> FakeNode -> FakeShard
shard ranges node =
  FakeShard {shardRange = ranges, shardPrimaryAt = (Text (fakeHost node), fakePort node), shardReplicasAt = []}

-- | The reply to CLUSTER SHARDS, with fields that the client does not need.
shardsView :: [FakeShard] -> View
shardsView = List . map one
  where
    one FakeShard {shardRange, shardPrimaryAt, shardReplicasAt} =
      List
        [ Text "slots",
          List [Number (toInteger slot) | (from, to) <- shardRange, slot <- [from, to]],
          Text "nodes",
          List (node "master" shardPrimaryAt : map (node "replica") shardReplicasAt)
        ]
    node role (host, port) =
      List
        [ Text "id",
          Text "0123456789012345678901234567890123456789",
          Text "port",
          Number (toInteger port),
          Text "ip",
          host,
          Text "endpoint",
          host,
          Text "role",
          Text role,
          Text "replication-offset",
          Number 72156,
          Text "health",
          Text "online"
        ]

-- | A view in which the first node serves all slots and the second is its replica.
replicated :: FakeNode -> FakeNode -> View
replicated primary replica =
  shardsView [(shard allSlots primary) {shardReplicasAt = [(Text (fakeHost replica), fakePort replica)]}]

-- | The reply to CLUSTER SLOTS, with metadata that the client does not need.
slotsView :: [FakeShard] -> View
slotsView shards =
  List
    [ List ([Number (toInteger from), Number (toInteger to)] <> map node (shardPrimaryAt : shardReplicasAt))
      | FakeShard {shardRange, shardPrimaryAt, shardReplicasAt} <- shards,
        (from, to) <- shardRange
    ]
  where
    node (host, port) =
      List
        [ host,
          Number (toInteger port),
          Text "0123456789012345678901234567890123456789",
          List [Text "hostname", Text "node.example"]
        ]
