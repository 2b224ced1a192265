-- | A model of the world around "Redis.Internal.Client.Cache": one key, servers that own it in
-- turn, connections that deliver in order and break, and callers that read.
module Redis.Internal.Client.CacheModel
  ( World,
    WorldKey,
    Scenario (..),
    Rule (..),
    start,
    worldKey,
    actions,
    problem,
    atEnd,
  )
where

import Data.ByteString.Char8 qualified as Char8
import Data.Map.Strict (Map)
import Data.Map.Strict qualified as Map
import Data.Maybe (catMaybes, isJust)
import Redis.Error (Endpoint (..))
import Redis.Internal.Client.Cache
import Redis.Internal.Protocol.Encode (headerOf, requestOf1)
import Redis.Internal.Protocol.Slot (keySlot, slotNumber)

-- | How often each kind of event may happen.
data Scenario = Scenario
  { -- | The number of reads of each caller.
    scenarioReads :: [Int],
    -- | The number of connections to each server.
    scenarioConnections :: Int,
    scenarioWrites :: Int,
    -- | FLUSHALL and similar commands.
    scenarioFlushes :: Int,
    -- | Connections that break.
    scenarioCuts :: Int,
    -- | Moves of the key's slot to the other server.
    scenarioMoves :: Int,
    scenarioEvictions :: Int,
    -- | Callers that are interrupted while they wait.
    scenarioLeaves :: Int
  }
  deriving stock (Show)

-- | A rule that a search can leave out, to see what goes wrong without it.
data Rule
  = -- | A change removes the placeholder of its key.
    ChangesTakePlaceholders
  | -- | A connection that ends removes the readings from its server.
    EndsTakeAll
  | -- | A flush removes placeholders.
    FlushesTakePlaceholders
  | -- | A reply fills the placeholder that was placed for it, and no other.
    TicketsAreUsedOnce
  | -- | A slot that moves removes the readings of its keys.
    MovesTakeSlots
  | -- | A reply that is not a value removes its placeholder.
    TroubleAbandons
  | -- | A reply that comes late removes the readings that others have kept.
    LateSupersedes
  | -- | A result that came through recovery removes them, too.
    RecoveredSupersedes
  deriving stock (Eq, Show, Enum, Bounded)

type Version = Int

type Server = Int

type Flight = Int

data Message
  = Answer Flight EntryVersion Version
  | Redirection Flight EntryVersion
  | Changed Version
  | Flushed Version
  deriving stock (Eq, Ord, Show)

data Connection = Connection
  { connectionAsked :: [(Flight, EntryVersion)],
    connectionStream :: [Message],
    -- | Whether the server sends an invalidation for the next change.
    connectionTracks :: Bool,
    -- | The server has closed the connection, and the client does not know yet.
    connectionCut :: Bool
  }
  deriving stock (Eq, Ord, Show)

data Caller = Caller
  { callerReads :: Int,
    callerStage :: Stage,
    callerSaw :: Version,
    -- | The last change that the client had been told of when the read began.
    callerTold :: Version
  }
  deriving stock (Eq, Ord, Show)

data Stage
  = Thinking
  | -- | The read has found nothing in the cache.
    Missed Server
  | -- | The caller has a placeholder and has not sent the read yet.
    Placing Server Flight EntryVersion
  | Waiting Flight
  deriving stock (Eq, Ord, Show)

data World = World
  { worldVersion :: Version,
    worldOwner :: Server,
    worldConnections :: Map (Server, Int) Connection,
    worldCache :: Cache Version Flight,
    -- | The server that the client believes to own the key.
    worldBelieved :: Server,
    worldResults :: Map Flight Version,
    -- | The reads in recovery, each with whether there is an answer yet.
    worldStrayed :: Map Flight Bool,
    worldFlights :: Int,
    worldCallers :: [Caller],
    -- | The newest change that the client has been told of.
    worldTold :: Version,
    worldLeft :: (Int, Int, Int, Int, Int),
    worldLeaves :: Int,
    worldProblem :: Maybe String
  }

type WorldKey = ((Version, Server, Map (Server, Int) Connection, CacheState Version Flight), (Server, Map Flight Version, Map Flight Bool, [Caller], Version), (Int, Int, Int, Int, Int), Int)

worldKey :: World -> WorldKey
worldKey world =
  ( (worldVersion world, worldOwner world, worldConnections world, cacheState (worldCache world)),
    (worldBelieved world, worldResults world, worldStrayed world, worldCallers world, worldTold world),
    worldLeft world,
    worldLeaves world
  )

start :: Scenario -> World
start Scenario {scenarioReads, scenarioConnections, scenarioWrites, scenarioFlushes, scenarioCuts, scenarioMoves, scenarioEvictions, scenarioLeaves} =
  World
    { worldVersion = 1,
      worldOwner = 0,
      worldConnections = Map.fromList [((server, number), fresh) | server <- [0 .. if scenarioMoves > 0 then 1 else 0], number <- [1 .. scenarioConnections]],
      worldCache = newCache 1000,
      worldBelieved = 0,
      worldResults = Map.empty,
      worldStrayed = Map.empty,
      worldFlights = 0,
      worldCallers = [Caller {callerReads = count, callerStage = Thinking, callerSaw = 0, callerTold = 0} | count <- scenarioReads],
      worldTold = 0,
      worldLeft = (scenarioWrites, scenarioFlushes, scenarioCuts, scenarioMoves, scenarioEvictions),
      worldLeaves = scenarioLeaves,
      worldProblem = Nothing
    }

fresh :: Connection
fresh = Connection {connectionAsked = [], connectionStream = [], connectionTracks = False, connectionCut = False}

-- | The problem, if something went wrong.
problem :: World -> Maybe String
problem world = case worldProblem world of
  Just what -> Just what
  Nothing -> case found (worldBelieved world) world of
    Here version
      | version < worldVersion world && not (excused (worldBelieved world)) -> Just ("kept for ever: version " <> show version <> " of " <> show (worldVersion world))
    _ -> Nothing
  where
    -- The reading will go, because the client will receive something that removes it.
    excused server =
      worldBelieved world /= worldOwner world
        || or [connectionCut connection || any isNews (connectionStream connection) | ((at, _), connection) <- Map.toList (worldConnections world), at == server]
    isNews = \case
      Changed _ -> True
      Flushed _ -> True
      _ -> False

-- | The problem of a world in which nothing can happen any more.
atEnd :: World -> Maybe String
atEnd world
  | any ((> 0) . callerReads) (worldCallers world) || any ((/= Thinking) . callerStage) (worldCallers world) = Just "a caller waits for ever"
  | or [True | (_, _, Left _) <- stateEntries (cacheState (worldCache world))] = Just "a placeholder stands for ever"
  | otherwise = Nothing

found :: Server -> World -> Found Version Flight
found server world = find (sourceAt server) (worldCache world)

endpointOf :: Server -> Endpoint
endpointOf server = UnixEndpoint (show server)

sourceAt :: Server -> Source
sourceAt server = Source {sourceNode = endpointOf server, sourceHash = 7, sourceRequest = requestOf1 (headerOf ["GET"]) theKey, sourceKey = theKey}

theKey :: Char8.ByteString
theKey = "k"

theSlot :: Int
theSlot = slotNumber (keySlot theKey)

-- | All that can happen next.
actions :: Maybe Rule -> World -> [World]
actions without world =
  concat
    [ callersDo,
      serversAnswer,
      clientHears,
      clientNotices,
      recoveries,
      catMaybes [writes, flushes, moves, learns, evicts],
      cuts
    ]
  where
    keeps rule = without /= Just rule
    (writesLeft, flushesLeft, cutsLeft, movesLeft, evictionsLeft) = worldLeft world

    callersDo = concat [map (\(caller', world') -> world' {worldCallers = before <> [caller'] <> after}) (callerDoes caller) | (before, caller : after) <- splits (worldCallers world)]
    splits list = [splitAt position list | position <- [0 .. length list - 1]]

    callerDoes caller = case callerStage caller of
      Thinking
        | callerReads caller == 0 -> []
        | otherwise ->
          let begun = caller {callerReads = callerReads caller - 1, callerTold = worldTold world}
           in case found (worldBelieved world) world of
                Here version -> [begun `sees` version]
                OnItsWay flight -> [(begun {callerStage = Waiting flight}, world)]
                Nowhere -> [(begun {callerStage = Missed (worldBelieved world)}, world)]
      Missed server ->
        let flight = worldFlights world
         in case place (sourceAt server) (const True) flight (worldCache world) of
              (_, Has version) -> [caller `sees` version]
              (_, Joins other) -> [(caller {callerStage = Waiting other}, world)]
              (cache, Leads entryVersion) -> [(caller {callerStage = Placing server flight entryVersion}, world {worldCache = cache, worldFlights = flight + 1})]
      Placing server flight entryVersion ->
        [ (caller {callerStage = Waiting flight}, onConnection key (\connection -> connection {connectionAsked = connectionAsked connection <> [(flight, entryVersion)]}) world)
          | key@(at, _) <- Map.keys (worldConnections world),
            at == server
        ]
      Waiting flight ->
        [ outdone flight <$> (caller `sees` version)
          | Just version <- [Map.lookup flight (worldResults world)]
        ]
          <> [(caller {callerStage = Thinking}, world {worldLeaves = worldLeaves world - 1}) | worldLeaves world > 0]

    outdone flight world'
      | keeps RecoveredSupersedes && Map.member flight (worldStrayed world') = world' {worldCache = foldr (supersede . sourceAt) (worldCache world') [0, 1]}
      | otherwise = world'

    sees caller version =
      ( caller {callerStage = Thinking, callerSaw = version},
        if version < callerTold caller
          then world {worldProblem = Just "saw what it had been told was over"}
          else
            if version < callerSaw caller
              then world {worldProblem = Just "saw an older version after a newer"}
              else world
      )

    serversAnswer =
      [ onConnection key (const (answered server connection flight entryVersion rest)) world
        | (key@(server, _), connection) <- Map.toList (worldConnections world),
          not (connectionCut connection),
          (flight, entryVersion) : rest <- [connectionAsked connection]
      ]
    answered server connection flight entryVersion rest
      | server == worldOwner world = connection {connectionAsked = rest, connectionTracks = True, connectionStream = connectionStream connection <> [Answer flight entryVersion (worldVersion world)]}
      | otherwise = connection {connectionAsked = rest, connectionStream = connectionStream connection <> [Redirection flight entryVersion]}

    clientHears =
      [ heard server message (onConnection key (const connection {connectionStream = rest}) world)
        | (key@(server, _), connection) <- Map.toList (worldConnections world),
          message : rest <- [connectionStream connection]
      ]

    heard server message world' = case message of
      Answer flight entryVersion version ->
        let ticket'
              | keeps TicketsAreUsedOnce = entryVersion
              | otherwise = head' entryVersion [other | (from, other, Left _) <- stateEntries (cacheState (worldCache world')), from == endpointOf server]
            cache = case fill (sourceAt server) ticket' 1 version (worldCache world') of
              (_, Late) | not (keeps LateSupersedes) -> worldCache world'
              (after, _) -> after
         in landed flight version world' {worldCache = cache}
      Redirection flight entryVersion -> troubled server (flight, entryVersion) world'
      Changed version
        | keeps ChangesTakePlaceholders || not (flies server world') -> told version world' {worldCache = invalidate (endpointOf server) [theKey] (worldCache world')}
        | otherwise -> told version world'
      Flushed version
        | keeps FlushesTakePlaceholders || not (flies server world') -> told version world' {worldCache = flush (endpointOf server) (worldCache world')}
        | otherwise -> told version world'

    told version world' = world' {worldTold = max version (worldTold world')}
    flies server world' = case found server world' of
      OnItsWay _ -> True
      _ -> False
    head' other = \case
      one : _ -> one
      [] -> other

    landed flight version world' = world' {worldResults = Map.insertWith (\_ old -> old) flight version (worldResults world')}

    troubled server (flight, entryVersion) world' =
      world'
        { worldStrayed = Map.insert flight False (worldStrayed world'),
          worldCache = if keeps TroubleAbandons then abandon (sourceAt server) entryVersion (worldCache world') else worldCache world'
        }

    -- The owner's answer comes through recovery.
    recoveries =
      [ landed flight (worldVersion world) world {worldStrayed = Map.insert flight True (worldStrayed world)}
        | (flight, False) <- Map.toList (worldStrayed world)
      ]

    clientNotices =
      [ foldr (troubled server) (onConnection key (const fresh) world {worldCache = after server}) (connectionAsked connection <> [(flight, entryVersion) | message <- connectionStream connection, (flight, entryVersion) <- flightOf message])
        | (key@(server, _), connection) <- Map.toList (worldConnections world),
          connectionCut connection
      ]
      where
        after server = if keeps EndsTakeAll then flush (endpointOf server) (worldCache world) else worldCache world
    flightOf = \case
      Answer flight entryVersion _ -> [(flight, entryVersion)]
      Redirection flight entryVersion -> [(flight, entryVersion)]
      _ -> []

    ownerTells change tracks world' =
      world'
        { worldConnections =
            Map.mapWithKey
              ( \(server, _) connection ->
                  if server == worldOwner world' && not (connectionCut connection) && tracks connection
                    then connection {connectionStream = connectionStream connection <> [change], connectionTracks = False}
                    else connection
              )
              (worldConnections world')
        }

    writes
      | writesLeft == 0 = Nothing
      | otherwise =
        let version = worldVersion world + 1
         in Just (ownerTells (Changed version) connectionTracks world {worldVersion = version, worldLeft = (writesLeft - 1, flushesLeft, cutsLeft, movesLeft, evictionsLeft)})
    flushes
      | flushesLeft == 0 = Nothing
      | otherwise =
        let version = worldVersion world + 1
         in Just (ownerTells (Flushed version) (const True) world {worldVersion = version, worldLeft = (writesLeft, flushesLeft - 1, cutsLeft, movesLeft, evictionsLeft)})
    cuts
      | cutsLeft == 0 = []
      | otherwise =
        [ onConnection key (\cut -> cut {connectionCut = True, connectionTracks = False}) world {worldLeft = (writesLeft, flushesLeft, cutsLeft - 1, movesLeft, evictionsLeft)}
          | (key, connection) <- Map.toList (worldConnections world),
            not (connectionCut connection)
        ]
    -- The old owner sends no invalidation for the keys that it had.
    moves
      | movesLeft == 0 || worldBelieved world /= worldOwner world = Nothing
      | otherwise =
        Just
          world
            { worldOwner = 1 - worldOwner world,
              worldConnections = Map.mapWithKey (\(server, _) connection -> if server == worldOwner world then connection {connectionTracks = False} else connection) (worldConnections world),
              worldLeft = (writesLeft, flushesLeft, cutsLeft, movesLeft - 1, evictionsLeft)
            }
    learns
      | worldBelieved world == worldOwner world = Nothing
      | otherwise = Just world {worldBelieved = worldOwner world, worldCache = if keeps MovesTakeSlots then moved [theSlot] (worldCache world) else worldCache world}
    evicts = case oldest (worldCache world) of
      Just one
        | evictionsLeft > 0 && isJust (oldestKept one) -> Just world {worldCache = evict one (worldCache world), worldLeft = (writesLeft, flushesLeft, cutsLeft, movesLeft, evictionsLeft - 1)}
      _ -> Nothing

onConnection :: (Server, Int) -> (Connection -> Connection) -> World -> World
onConnection key change world = world {worldConnections = Map.adjust change key (worldConnections world)}
