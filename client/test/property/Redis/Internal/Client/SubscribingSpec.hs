-- | Subscriptions through any order of events: servers that answer at any time, connections that
-- are lost with everything on its way, slots that move before the map shows it, and hearers that
-- come and go.
module Redis.Internal.Client.SubscribingSpec (spec) where

import Control.Monad (forM_)
import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Data.Foldable (foldl', toList)
import Data.IntMap.Strict qualified as IntMap
import Data.List.NonEmpty (NonEmpty ((:|)))
import Data.Map.Strict (Map)
import Data.Map.Strict qualified as Map
import Data.Sequence (Seq (..), (|>))
import Data.Sequence qualified as Seq
import Data.Set (Set)
import Data.Set qualified as Set
import Redis.Config (backoffDefaults)
import Redis.Error
import Redis.Internal.Client.EventQueue (Kind (..), Topic (..), topicName)
import Redis.Internal.Client.Subscribing
import Redis.Internal.Config (AddressMapping (..))
import Redis.Internal.Network.Runtime (Nanos)
import Redis.Internal.Protocol.Slot (keySlot, slotNumber)
import System.Random (mkStdGen)
import Test.Hspec hiding (after, before, it)
import Test.Hspec qualified as Hspec
import Test.QuickCheck

spec :: Spec
spec = describe "subscribing" $ do
  Hspec.it "has each message heard once and in order, or told to be missing, whatever happens" $
    property $ \(Choices choices) seed -> checked (settledDown (foldl' (flip chosen) (newWorld seed) choices))

  Hspec.it "ends with the servers knowing what is wanted, and nothing else" $
    property $ \(Choices choices) seed ->
      let world = settledDown (foldl' (flip chosen) (newWorld seed) choices)
          known = Set.unions [Set.map ((,) (connLine conn)) (connKnows conn) | conn <- Map.elems (worldConns world)]
          wanted = Set.fromList [(pubSub, name) | (_, name) <- Map.keys (worldWanted world), pubSub <- pubSubsFor (worldState world) name]
       in counterexample (show (known, wanted)) (known === wanted .&&. and [isHeard (worldState world) subscriber name | (subscriber, name) <- Map.keys (worldWanted world)])

  Hspec.it "says of a topic that the server refuses which it is, however many were asked together" $
    property $ \(Positive many) refusedOnes ->
      let names = [Channel (Char8.pack (show number)) | number <- [1 .. many `mod` 200 + 1 :: Int]]
          refused = Set.fromList [name | (name, True) <- zip names (cycle (refusedOnes <> [False]))]
          world = settledDown (event (Want 1 names) (newWorld 0) {worldRefused = refused, worldWanted = Map.fromList [((1, name), Nothing) | name <- names, name `Set.notMember` refused]})
       in Set.fromList [name | Refuse 1 name _ <- worldTold world] === refused
            .&&. Set.unions (map connKnows (Map.elems (worldConns world))) === Set.fromList names `Set.difference` refused

  Hspec.it "says that what is on its way from a node is missing when its topic moves, however long it has been on its way" $
    let sent = publish (ShardChannel "s") (worldOwner hearing) hearing
     in checked (settledDown (look (moved (TcpEndpoint "n2" 1) (foldl' (\w _ -> later w) sent [1 .. 20 :: Int]))))

  Hspec.it "says that what went to a node's successor is missing, although the node has answered since and is lost before it learns" $
    let owner = TcpEndpoint "n2" 1
        answered = everything (later (publish (ShardChannel "s") owner (movedUnseen owner hearing)))
     in checked (settledDown (look (lostWith (ShardChannel "s") answered)))

  Hspec.it "does not believe a node that takes a channel again which it has just ended: a replica may not get the messages yet" $
    let name = ShardChannel "s"
        old = worldOwner hearing
        new = TcpEndpoint "n2" 1
        demoted = (learntAt old (movedUnseen new hearing)) {worldStale = Set.singleton old, worldTold = []}
        asked = everything (later (everything (later (everything demoted))))
        forwarding world = (publish name old world {worldOwner = old}) {worldOwner = new}
        unheard = everything (forwarding (publish name new asked))
     in conjoin
          [ counterexample "it is asked once" $ length [() | Send _ questions <- worldTold asked, Subscribe OfShard <- map questionAsk questions] === 1,
            checked (settledDown (look unheard)),
            -- The slot has come back, and the map has not changed.
            counterexample "it is not heard again" $ isHeardAt old name (iterate (everything . later) unheard {worldOwner = old} !! 10)
          ]

  Hspec.it "hears a topic that is wanted again while it is being left, if the connection is lost, before anything else changes" $
    let name = ShardChannel "s"
        wanted = event (Want 1 [name]) (event (Unwant 1 [name]) (look hearing))
        later' = everything . later
     in isHeard (worldState (later' (later' (lostWith name wanted)))) 1 name `shouldBe` True

  Hspec.it "says that key events may be missing that are on their way from a node that is a primary no more" $
    let sent = publish (KeyEvents "k") (TcpEndpoint "n3" 1) hearing
        others = filter (/= TcpEndpoint "n3" 1) (toList nodes)
        servers = Servers {serversPrimaries = others, serversOwner = \_ -> Just (worldOwner sent), serversClustered = True}
        told = worldTold (event (ServersChanged servers) sent {worldTold = []})
     in [since | Missed 1 (KeyEvents "k") since <- told, since < worldNow sent] `shouldSatisfy` not . null

  Hspec.it "moves channels from a node that is a primary no more, and says that messages may be missing" $
    let homes = pubSubsFor (worldState hearing) (Channel "a")
        others = filter (`notElem` map pubSubEndpoint homes) (toList nodes)
        servers = Servers {serversPrimaries = others, serversOwner = \_ -> Just (worldOwner hearing), serversClustered = True}
        moving = everything (everything (event (ServersChanged servers) hearing {worldTold = []}))
     in do
          pubSubsFor (worldState moving) (Channel "a") `shouldSatisfy` all (`notElem` homes)
          [name | Missed 1 name since <- worldTold moving, since < worldNow hearing] `shouldContain` [Channel "a"]

  Hspec.it "lets out nothing older than was heard elsewhere, when a node answers that the topic had left and that it came back to" $
    let name = ShardChannel "s"
        old = worldOwner hearing
        new = TcpEndpoint "n2" 1
        at node act world = foldl' (\w number -> maybe w (\conn -> act number conn w) (Map.lookup number (worldConns w))) world [number | (number, conn) <- Map.toList (worldConns world), connLine conn == PubSubConnection node ForMessages]
        opening world = foldl' (\w (pubSub, number) -> opened True pubSub number w) world (worldOpening world)
        -- The new node subscribes, publishes and ends, and nothing of that comes.
        stalled = publish name new (at new (\number conn -> answeredBy number conn Nothing) (opening (look (moved new hearing))))
        onlyOld world = foldl' (\w _ -> at old delivered (at old (\number conn -> answeredBy number conn Nothing) (opening w))) world [1 .. 20 :: Int]
        back = onlyOld (publish name old (onlyOld (later (onlyOld (look (moved old stalled))))))
     in checked (settledDown (look (moved new back)))

  Hspec.it "does not connect again and again when no node can be connected to" $
    let fails world = case worldOpening world of
          (pubSub, number) : _ -> opened False pubSub number world
          [] -> world
        only = quiet (event (Want 1 [Channel "a"]) (newWorld 0) {worldWanted = Map.singleton (1, Channel "a") Nothing})
        lost = (lostWith (Channel "a") only) {worldTold = []}
        -- Without a tick, so no time for another attempt at the same node comes.
        attempts = [pubSub | OpenPubSub pubSub _ <- worldTold (iterate fails lost !! 100)]
     in length attempts `shouldSatisfy` (<= 2 * length nodes)

  Hspec.it "says that key events may be missing of a primary that left and came back before it answered" $
    let name = KeyEvents "k"
        node = TcpEndpoint "n3" 1
        servers primaries = ServersChanged Servers {serversPrimaries = primaries, serversOwner = \_ -> Just (worldOwner hearing), serversClustered = True}
        reopened = foldl' (\w (pubSub, number) -> opened True pubSub number w) (lostAt node name hearing) (worldOpening (lostAt node name hearing))
        away = event (servers (filter (/= node) (toList nodes))) reopened
     in checked (settledDown (event (servers (toList nodes)) (publish name node away)))

  Hspec.it "moves channels and patterns to another node when their node's connection is lost or cannot be opened" $
    let lost = lostWith (Channel "a") hearing
        refused = foldl' (\w (pubSub, number) -> opened False pubSub number w) lost [opening | opening@(pubSub, _) <- worldOpening lost, pubSub `elem` pubSubsFor (worldState lost) (Channel "a")]
        homes name = map (`pubSubsFor` name) [worldState hearing, worldState lost, worldState refused]
     in forM_ [Channel "a", Channel "b", Pattern "a"] $ \name ->
          homes name `shouldSatisfy` \pubSubs -> all ((== 1) . length) pubSubs && and (zipWith (/=) pubSubs (drop 1 pubSubs))
  where
    isHeardAt endpoint name world = or [endpoint == pubSubEndpoint (connLine conn) && not (null (subscribersAt (worldState world) (connLine conn) number name)) | (number, conn) <- Map.toList (worldConns world)]
    lostWith = lostWhere (const True)
    lostAt node = lostWhere ((== node) . pubSubEndpoint)
    lostWhere isOne name world = case [(number, conn) | (number, conn) <- Map.toList (worldConns world), name `Set.member` connKnows conn, isOne (connLine conn)] of
      [(number, conn)] -> event (Lost (connLine conn) number ClosedByPeer) world {worldConns = Map.delete number (worldConns world)}
      _ -> world
    -- All topics are heard, and nothing is on its way.
    hearing = quiet (event (Want 1 (toList topics)) (newWorld 0) {worldWanted = Map.fromList [((1, name), Nothing) | name <- toList topics]})

-- | The events, as numbers. Each number chooses one of the possible events.
newtype Choices = Choices [Int]
  deriving stock (Show)

instance Arbitrary Choices where
  arbitrary = do
    count <- chooseInt (0, 400)
    Choices <$> vectorOf count (chooseInt (0, 1000000))
  shrink (Choices choices) = Choices <$> shrinkList (const []) choices

-- | What a hearer was told: a message by its stream and number, or a gap between two times.
data Told = Heard' Stream Int | Missed' Topic Nanos Nanos

-- | The messages of one topic. Key events are numbered at each node.
type Stream = (Topic, Maybe Endpoint)

-- | Something on its way from a server.
data Item = Answer Answer | Message Topic Stream Int

data Conn = Conn
  { connLine :: PubSubConnection,
    -- | The questions on their way to the server.
    connAsked :: Seq Question,
    connComing :: Seq Item,
    -- | The topics to which the server has subscribed the connection.
    connKnows :: Set Topic
  }

data World = World
  { worldNow :: Nanos,
    worldState :: State,
    worldConns :: Map Int Conn,
    worldOpening :: [(PubSubConnection, Int)],
    -- | The node that serves the slot.
    worldOwner :: Endpoint,
    -- | Nodes that served it and have not learnt that another one does.
    worldStale :: Set Endpoint,
    -- | When the client looked at the map last.
    worldLooked :: Nanos,
    -- | By stream: the number and the time of each message, the last first.
    worldPublished :: Map Stream [(Int, Nanos)],
    -- | Messages of ordinary channels on their way to each node, with their times, the first first.
    worldForwarded :: Map Endpoint (Seq (Nanos, Item)),
    worldHeard :: Map SubscriberId [Told],
    -- | The time since which the topic is heard.
    worldWanted :: Map (SubscriberId, Topic) (Maybe Nanos),
    worldRefused :: Set Topic,
    -- | The actions of all steps, the last first.
    worldTold :: [Action],
    worldWrong :: [String]
  }

nodes :: NonEmpty Endpoint
nodes = (`TcpEndpoint` 1) <$> "n1" :| ["n2", "n3"]

topics :: NonEmpty Topic
topics = Channel "a" :| [Channel "b", Pattern "a", ShardChannel "s", KeyEvents "k"]

newWorld :: Int -> World
newWorld seed =
  look
    World
      { worldNow = 1,
        worldState = newState Settings {settingsBackoff = backoffDefaults, settingsSilence = Nothing, settingsBeat = 50, settingsHorizon = 1000000000, settingsForwarding = forwardedIn, settingsDemotion = 700000000, settingsMapping = AddressMapping id} (mkStdGen seed),
        worldConns = Map.empty,
        worldOpening = [],
        worldOwner = case nodes of first :| _ -> first,
        worldStale = Set.empty,
        worldLooked = 0,
        worldPublished = Map.empty,
        worldForwarded = Map.empty,
        worldHeard = Map.empty,
        worldWanted = Map.empty,
        worldRefused = Set.empty,
        worldTold = [],
        worldWrong = []
      }

look :: World -> World
look world =
  event (ServersChanged Servers {serversPrimaries = toList nodes, serversOwner = \_ -> Just (worldOwner world), serversClustered = True}) world {worldLooked = worldNow world}

-- | Steps the machine and performs its actions.
event :: Event -> World -> World
event what world = noted (foldl' act world {worldNow = now, worldState = state} actions)
  where
    now = worldNow world + 1
    (state, actions) = step now what (worldState world)
    noted w = w {worldWanted = Map.mapWithKey (since w) (worldWanted w)}
    since w (subscriber, name) = \case
      Nothing | isHeard (worldState w) subscriber name -> Just now
      known -> known
    act w action =
      let told = w {worldTold = action : worldTold w}
       in case action of
            OpenPubSub pubSub number -> told {worldOpening = worldOpening w <> [(pubSub, number)]}
            Send number questions -> told {worldConns = Map.adjust (\conn -> conn {connAsked = foldl' (|>) (connAsked conn) questions}) number (worldConns w)}
            HangUp number _ -> told {worldConns = Map.delete number (worldConns w), worldOpening = filter ((/= number) . snd) (worldOpening w)}
            Missed subscriber name from -> told {worldHeard = Map.insertWith (<>) subscriber [Missed' name from now] (worldHeard w)}
            _ -> told

-- | Performs the event that a number chooses.
chosen :: Int -> World -> World
chosen choice world = case choice `mod` 14 of
  0 -> whoWants (\subscriber name w -> event (Want subscriber [name]) w {worldWanted = Map.insertWith (\_ old -> old) (subscriber, name) Nothing (worldWanted w)})
  1 | rest `mod` 3 == 0 -> whoWants (\subscriber name w -> event (Unwant subscriber [name]) w {worldWanted = Map.delete (subscriber, name) (worldWanted w), worldHeard = Map.adjust (filter ((/= name) . about)) subscriber (worldHeard w)})
  2 -> publish (pick topics) (pick nodes) world
  3 -> publish (ShardChannel "s") (pick nodes) world
  4 | rest `mod` 5 == 0, (number, conn) : _ <- rotated (Map.toList (worldConns world)) -> event (Lost (connLine conn) number ClosedByPeer) world {worldConns = Map.delete number (worldConns world)}
  5 | (pubSub, number) : _ <- worldOpening world -> opened (rest `mod` 4 > 0) pubSub number world
  6 -> later world
  7
    | rest `mod` 3 == 0 -> moved (pick nodes) world
    | rest `mod` 3 == 1 -> movedUnseen (pick nodes) world
  8 -> look world
  9 | rest `mod` 4 == 0, (number, conn) : _ <- rotated (Map.toList (worldConns world)) -> answeredBy number conn (Just "LOADING Redis is loading the dataset in memory") world
  10 | (number, conn) : _ <- rotated (Map.toList (worldConns world)) -> answeredBy number conn Nothing world
  11 -> learnt world
  12 -> forwarded (const True) (pick nodes) world
  _ | (number, conn) : _ <- rotated (Map.toList (worldConns world)) -> delivered number conn world
  _ -> world
  where
    rest = choice `quot` 14
    pick (first :| others) = case drop (rest `mod` (1 + length others)) (first : others) of
      one : _ -> one
      [] -> first
    rotated list = let (some, others) = splitAt (rest `mod` max 1 (length list)) list in others <> some
    whoWants act = act (1 + rest `mod` 2) (pick topics) world
    about = \case
      Heard' (name, _) _ -> name
      Missed' name _ _ -> name

-- | Time passes. The client's map does not become older than it may, and no message takes longer than it may.
later :: World -> World
later world = event (Tick IntMap.empty) arrived {worldNow = worldNow arrived + 100000000}
  where
    looked = if worldNow world - worldLooked world > 800000000 then look world else world
    arrived = foldl' (flip (forwarded (< worldNow looked + 200000000 - forwardedIn))) looked nodes

-- | The longest that a message takes from one node to another.
forwardedIn :: Nanos
forwardedIn = 500000000

-- | The messages on their way to a node come there, as long as their times satisfy the condition.
forwarded :: (Nanos -> Bool) -> Endpoint -> World -> World
forwarded due node world = world {worldForwarded = Map.insert node left (worldForwarded world), worldConns = Map.map (\conn -> foldl' comes conn (map snd (toList come))) (worldConns world)}
  where
    (come, left) = Seq.spanl (due . fst) (Map.findWithDefault Seq.empty node (worldForwarded world))
    comes conn = \case
      item@(Message name _ _) | pubSubEndpoint (connLine conn) == node, name `Set.member` connKnows conn -> conn {connComing = connComing conn |> item}
      _ -> conn

opened :: Bool -> PubSubConnection -> Int -> World -> World
opened well pubSub number world
  | well = event (Opened pubSub number) world' {worldConns = Map.insert number (Conn pubSub Seq.empty Seq.empty Set.empty) (worldConns world')}
  | otherwise = event (NotOpened pubSub number (ConnectFailed "refused")) world'
  where
    world' = world {worldOpening = filter ((/= number) . snd) (worldOpening world)}

-- | Publishes a message: to an ordinary channel, which takes its time to each node, to a shard channel at the slot's
-- owner, and a key event at one node.
publish :: Topic -> Endpoint -> World -> World
publish name node world = case name of
  KeyEvents _ -> sentAt node
  ShardChannel _ -> sentAt (worldOwner world)
  _ -> published {worldForwarded = Map.fromListWith (flip (<>)) (Map.toList (worldForwarded world) <> [(to, Seq.singleton (now, Message name stream number)) | to <- toList nodes])}
  where
    published = world {worldNow = now, worldPublished = Map.insertWith (<>) stream [(number, now)] (worldPublished world)}
    sentAt endpoint = published {worldConns = Map.map (sent endpoint) (worldConns world)}
    now = worldNow world + 1
    stream = (name, case name of KeyEvents _ -> Just node; _ -> Nothing)
    number = 1 + maximum (0 : map fst (Map.findWithDefault [] stream (worldPublished world)))
    sent endpoint conn
      | name `Set.member` connKnows conn, pubSubEndpoint (connLine conn) == endpoint = conn {connComing = connComing conn |> Message name stream number}
      | otherwise = conn

-- | Gives the slot a new owner. The old one ends its shard subscriptions.
moved :: Endpoint -> World -> World
moved owner world
  | owner == worldOwner world = world
  | otherwise = learntAt (worldOwner world) (movedUnseen owner world)

-- | Gives the slot a new owner, of which the old one does not know yet. The new one knows who had it.
movedUnseen :: Endpoint -> World -> World
movedUnseen owner world
  | owner == worldOwner world = world
  | otherwise = let known = learntAt owner world in known {worldOwner = owner, worldStale = Set.insert (worldOwner world) (worldStale known)}

-- | Every node learns who the owner is.
learnt :: World -> World
learnt world = foldl' (flip learntAt) world (worldStale world)

-- | A node learns that the slot has another owner, and ends its shard subscriptions.
learntAt :: Endpoint -> World -> World
learntAt node world = world {worldStale = Set.delete node (worldStale world), worldConns = Map.map end (worldConns world)}
  where
    end conn
      | pubSubEndpoint (connLine conn) == node, ShardChannel "s" `Set.member` connKnows conn = conn {connKnows = Set.delete (ShardChannel "s") (connKnows conn), connComing = connComing conn |> Answer (Ended OfShard "s")}
      | otherwise = conn

-- | The server answers one question.
answeredBy :: Int -> Conn -> Maybe ByteString -> World -> World
answeredBy number conn refusal world = case connAsked conn of
  question :<| others -> world {worldNow = worldNow world + 1, worldConns = Map.insert number (foldl' (flip ($)) conn {connAsked = others} (answers question)) (worldConns world)}
  Empty -> world
  where
    endpoint = pubSubEndpoint (connLine conn)
    answers question = case (questionAsk question, refusal) of
      (Subscribe _, Just text) -> [saying (Refusal (serverErrorFromText text))]
      (Subscribe kind, Nothing)
        | any (`Set.member` worldRefused world) (questionTopics question) -> [saying (Refusal (serverErrorFromText "NOPERM no"))]
        | kind == OfShard, isElsewhere -> [moves]
        | otherwise -> [\it -> saying (Began kind (topicName name)) it {connKnows = Set.insert name (connKnows it)} | name <- questionTopics question]
      (Unsubscribe OfShard, _) | isElsewhere -> [moves]
      (Unsubscribe kind, _) -> [\it -> saying (Ended kind (topicName name)) it {connKnows = Set.delete name (connKnows it)} | name <- questionTopics question]
      (Probe, _) -> [saying Ponged]
    isElsewhere = endpoint /= worldOwner world && endpoint `Set.notMember` worldStale world
    moves = saying (Refusal (serverErrorFromText ("MOVED " <> Char8.pack (show (slotNumber (keySlot "s"))) <> " " <> Char8.pack (renderEndpoint (worldOwner world)))))
    saying answer it = it {connComing = connComing it |> Answer answer}

-- | The client receives one item.
delivered :: Int -> Conn -> World -> World
delivered number conn world = case connComing conn of
  Empty -> world
  item :<| others ->
    let taken = world {worldConns = Map.insert number conn {connComing = others} (worldConns world)}
     in case item of
          Answer answer -> event (Said (connLine conn) number answer) taken
          Message name stream count -> foldl' (heard stream count) taken (subscribersAt (worldState taken) (connLine conn) number name)
  where
    heard stream count w subscriber = w {worldHeard = Map.insertWith (<>) subscriber [Heard' stream count] (worldHeard w)}

-- | Delivers everything on its way, makes the client learn of the moves, and then publishes a last
-- message on each topic.
settledDown :: World -> World
settledDown world = quiet (look (foldl' (flip (uncurry publish)) (quiet (look (learnt world))) ((,) <$> toList topics <*> toList nodes)))

quiet :: World -> World
quiet = go (200 :: Int)
  where
    go left world
      | left == 0 = world {worldWrong = "it does not come to rest" : worldWrong world}
      | settled = world
      | otherwise = go (left - 1) (foldl' (\w _ -> everything w) (later world) [1 .. 3 :: Int])
      where
        settled = left < 190 && null (worldOpening world) && all idle (Map.elems (worldConns world))
        idle conn = Seq.null (connComing conn) && all ((== Probe) . questionAsk) (toList (connAsked conn))

-- | Opens what is to be opened, and delivers and answers everything on its way.
everything :: World -> World
everything world = foldl' perConn open (Map.keys (worldConns world))
  where
    open = foldl' (\w (pubSub, number) -> opened True pubSub number w) come (worldOpening world)
    come = foldl' (flip (forwarded (const True))) world nodes
    perConn w number = foldl' (\known act -> maybe known (\conn -> act number conn known) (Map.lookup number (worldConns known))) w (replicate 30 (\n conn -> answeredBy n conn Nothing) <> replicate 200 delivered)

-- | The property that nothing is wrong with the world.
checked :: World -> Property
checked world = counterexample (unlines wrong) (null wrong)
  where
    wrong = worldWrong world <> concat [ofStream subscriber from stream | ((subscriber, name), Just from) <- Map.toList (worldWanted world), stream <- filter ((== name) . fst) (Map.keys (worldPublished world))]
    ofStream subscriber from stream@(name, _) = walk (0 :: Int) [] [] (reverse (Map.findWithDefault [] subscriber (worldHeard world)))
      where
        sent = [(number, at) | (number, at) <- reverse (worldPublished world Map.! stream), at > from]
        final = maximum (0 : map fst sent)
        -- Takes the gaps since the message before, and all earlier ones.
        walk before gaps told = \case
          [] -> [show subscriber <> " has not heard the last of " <> show stream <> ": " <> show (before, final) | before < final]
          Missed' missed since until' : rest -> walk before ([(since, until') | missed == name] <> gaps) told rest
          Heard' other number : rest
            | other /= stream -> walk before gaps told rest
            | number <= before, mayComeAgain number (gaps <> told) -> walk before gaps told rest
            | number <= before -> (show subscriber <> " heard " <> show (stream, number) <> " after " <> show before) : walk before gaps told rest
            | otherwise -> [show subscriber <> " missed " <> show (stream, one) <> " of " <> show at <> ", heard since " <> show from <> ", with " <> show gaps | (one, at) <- sent, one > before, one < number, not (covered at gaps)] <> walk number [] (gaps <> told) rest
        -- Through the node to which the topic moved.
        mayComeAgain number known = isForwarded && and [covered at known | (one, at) <- sent, one == number]
        covered at = any (\(since, until') -> since <= at && at <= until')
        isForwarded = case name of
          Channel _ -> True
          Pattern _ -> True
          _ -> False
