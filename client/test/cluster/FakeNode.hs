-- | A node that says what it is told to: for replies that a real server does
-- not give on demand.
--
-- It speaks RESP2, takes any number of connections, and writes down every
-- command. A script may answer a command, leave it unanswered, or hang up; what
-- it does not want to answer is answered as by a healthy node that owns all it
-- is asked for.
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

-- | A node.
data FakeNode = FakeNode
  { fakeHost :: ByteString,
    fakeListener :: Listener,
    fakeScript :: TVar Script,
    fakeView :: TVar View,
    -- | The latest first, with the number of the connection.
    fakeHeard :: TVar [(Int, [ByteString])]
  }

-- | Where it listens.
fakePort :: FakeNode -> Int
fakePort = listenerPort . fakeListener

fakeEndpoint :: FakeNode -> Endpoint
fakeEndpoint node = TcpEndpoint (fakeHost node) (fromIntegral (fakePort node))

-- | As redirects name it.
fakeAddress :: FakeNode -> ByteString
fakeAddress = Char8.pack . renderEndpoint . fakeEndpoint

-- | What becomes of a command.
data Answer
  = Say Reply
  | -- | As if it hung.
    Silence
  | -- | Closes the connection.
    HangUp

-- | Number of the connection, and a command whose name (and subcommand) is in
-- capitals. 'Nothing' is what a healthy node says.
type Script = Int -> [ByteString] -> IO (Maybe Answer)

-- | Answers nothing in its own way.
quiet :: Script
quiet _ _ = pure Nothing

-- | Hangs up on the first so many commands of a name, and does what another
-- script says of the rest.
hangingUp :: Int -> ByteString -> Script -> IO Script
hangingUp times name otherwise' = do
  left <- newTVarIO times
  pure $ \connection words' -> do
    now <- if take 1 words' == [name] then atomically (stateTVar left (\n -> (n, n - 1))) else pure 0
    if now > 0 then pure (Just HangUp) else otherwise' connection words'

setScript :: FakeNode -> Script -> IO ()
setScript node = atomically . writeTVar (fakeScript node)

-- | What it says to CLUSTER SHARDS.
setView :: FakeNode -> View -> IO ()
setView node = atomically . writeTVar (fakeView node)

-- | Every command, in the order of arrival.
heard :: FakeNode -> IO [[ByteString]]
heard node = map snd . reverse <$> readTVarIO (fakeHeard node)

-- | The same, with the connection's number.
heardOn :: FakeNode -> IO [(Int, [ByteString])]
heardOn node = reverse <$> readTVarIO (fakeHeard node)

-- | How often it heard commands that begin like this.
countHeard :: FakeNode -> [ByteString] -> IO Int
countHeard node beginning = length . filter ((== beginning) . take (length beginning)) <$> heard node

connectionsNow :: FakeNode -> IO Int
connectionsNow = atomically . Listener.connectionsNow . fakeListener

connectionsEver :: FakeNode -> IO Int
connectionsEver = atomically . Listener.connectionsEver . fakeListener

-- | Closes every connection. One that ends by itself meanwhile is as good.
hangUpAll :: FakeNode -> IO ()
hangUpAll = Listener.hangUpAll . fakeListener

-- | Two nodes at 127.0.0.1, the first of which owns all slots, by both's view.
withTwoNodes :: (FakeNode -> FakeNode -> IO a) -> IO a
withTwoNodes action = withFakeNode $ \a -> withFakeNode $ \b -> do
  setView b (shardsView [shard allSlots a])
  action a b

withFakeNode :: (FakeNode -> IO a) -> IO a
withFakeNode = withFakeNodeAt "127.0.0.1"

-- | A node at a numeric address, for the length of an action.
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

-- What a healthy node says.
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

-- | Slots, the primary's address, and those of its replicas; hosts as the
-- server would say them.
data FakeShard = FakeShard
  { shardRange :: [(Int, Int)],
    shardPrimaryAt :: (Reply, Int),
    shardReplicasAt :: [(Reply, Int)]
  }

allSlots :: [(Int, Int)]
allSlots = [(0, 16383)]

-- | Slots of one node, without replicas.
shard :: [(Int, Int)] -> FakeNode -> FakeShard
shard ranges node =
  FakeShard {shardRange = ranges, shardPrimaryAt = (Text (fakeHost node), fakePort node), shardReplicasAt = []}

-- | As CLUSTER SHARDS says it, with fields that nobody needs.
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

-- | The first serves all slots, and the second copies it.
replicated :: FakeNode -> FakeNode -> View
replicated primary replica =
  shardsView [(shard allSlots primary) {shardReplicasAt = [(Text (fakeHost replica), fakePort replica)]}]

-- | As CLUSTER SLOTS says it, with metadata that nobody needs.
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
