-- | The faults, their times and their targets: two schedules that are drawn from the seed and run
-- at the same time.
--
-- /Upheavals/ concern nodes: one at a time, and after each the cluster agrees again. /Disturbances/
-- concern connections, through the proxies and by CLIENT KILL. Each kind has its turn before one is
-- repeated. The seed decides the order of the faults, their targets and their durations; it does
-- not decide at which moment a command meets a fault.
module Soak.Faults
  ( Faults,
    withFaults,
    faultsSoFar,
    recentFaults,
    calm,
  )
where

import Control.Concurrent.Async
import Control.Concurrent.STM
import Control.Exception (Handler (Handler), IOException, catches, finally)
import Control.Monad (forM_, unless, void)
import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Data.IORef
import Data.List (sortOn)
import Data.Map.Strict (Map)
import Data.Map.Strict qualified as Map
import Data.Maybe (isJust)
import GHC.Clock (getMonotonicTime)
import Numeric (showFFloat)
import Redis.Cluster.Slot (keySlot)
import Redis.TestKit.Cluster
import Redis.TestKit.Cluster.View (NodeView (viewId), viewIsPrimary)
import Redis.TestKit.Command (infoFields, replyText, request)
import Redis.TestKit.Proxy (Direction (..), Ending (..), Proxy)
import Redis.TestKit.Proxy qualified as Proxy
import Redis.TestKit.Server (Server)
import Redis.TestKit.Server qualified as Server
import Redis.TestKit.Wait (TestKitFailure (..), eventually, pause, upTo)
import Soak.Book (Keeping (..))
import Soak.Places
import System.Random (StdGen, mkStdGen, randomR)

-- | The state of both schedules.
data Faults = Faults
  { faultsDone :: IORef (Map String Int),
    -- | Seconds since the start, and the fault; the latest first.
    faultsJournal :: IORef [(Double, String)],
    faultsBegan :: Double
  }

-- | How often each kind of fault has been done. A fault that was begun and could not be finished
-- counts as @unfinished@.
faultsSoFar :: Faults -> IO (Map String Int)
faultsSoFar = readIORef . faultsDone

-- | The latest faults, with the seconds since the start.
recentFaults :: Faults -> Int -> IO [String]
recentFaults faults wanted =
  map (\(at, what) -> inSeconds at <> ": " <> what) . reverse . take wanted
    <$> readIORef (faultsJournal faults)

inSeconds :: Double -> String
inSeconds amount = showFFloat (Just 2) amount " s"

-- | Runs both schedules while an action runs. A fault that is under way when the action ends is
-- finished, and everything is 'calm' afterwards. Throws 'TestKitFailure' if the cluster does not
-- agree again: then there is no base for a load.
withFaults :: Surroundings -> Int -> (Faults -> IO a) -> IO a
withFaults around seed action = do
  over <- newTVarIO False
  began <- getMonotonicTime
  faults <- Faults <$> newIORef Map.empty <*> newIORef [] <*> pure began
  upheaving <- newIORef (mkStdGen (2 * seed))
  disturbing <- newIORef (mkStdGen (2 * seed + 1))
  withAsync (schedule faults over upheaving (1, 3) (upheavals around upheaving)) $ \nodes ->
    withAsync (schedule faults over disturbing (0.2, 1.2) (disturbances around disturbing)) $ \connections -> do
      link nodes
      link connections
      result <- action faults `finally` atomically (writeTVar over True)
      wait nodes
      wait connections
      result <$ calm around

-- | Ends every fault, and waits until the cluster agrees.
calm :: Surroundings -> IO ()
calm around = do
  mapM_ (Proxy.heal . snd) (allProxies around)
  forM_ (theServer around : map nodeServer (allNodes around)) $ \server -> do
    Server.thaw server
    runs <- Server.serverIsRunning server
    unless runs (Server.restart server)
  awaitAgreement (theCluster around)

type Random = IORef StdGen

between :: Random -> (Double, Double) -> IO Double
between random range = atomicModifyIORef' random (\generator -> let (drawn, next) = randomR range generator in (next, drawn))

choice :: Random -> a -> [a] -> IO a
choice random first others = do
  index <- atomicModifyIORef' random (\generator -> let (drawn, next) = randomR (0, length others) generator in (next, drawn))
  pure $ case drop index (first : others) of
    chosen : _ -> chosen
    [] -> first

-- | A kind of fault: its name, and its action.
data Fault = Fault String Act

-- | Takes the function with which it reports what it does.
type Act = (String -> IO ()) -> IO ()

schedule :: Faults -> TVar Bool -> Random -> (Double, Double) -> [Fault] -> IO ()
schedule faults over random rest kinds = deal []
  where
    deal [] = do
      order <- mapM (\kind -> flip (,) kind <$> between random (0, 1)) kinds
      deal (map snd (sortOn fst order))
    deal (Fault name act : others) = do
      seconds <- between random rest
      -- A pause that the end of the soak cuts short.
      ended <- isJust <$> upTo seconds (atomically (readTVar over >>= check))
      unless ended $ do
        finished <- attempted (act (tell . ((name <> " ") <>)))
        modifyIORef'' (faultsDone faults) (Map.insertWith (+) (if finished then name else "unfinished") 1)
        deal others
    attempted act =
      (True <$ act)
        `catches` [ Handler (\(TestKitFailure problem) -> False <$ tell ("unfinished: " <> takeWhile (/= '\n') problem)),
                    Handler (\(problem :: IOException) -> False <$ tell ("unfinished: " <> show problem))
                  ]
    tell what = do
      now <- getMonotonicTime
      modifyIORef'' (faultsJournal faults) (take 2000 . ((now - faultsBegan faults, what) :))
    modifyIORef'' reference change = atomicModifyIORef' reference (\old -> (change old, ()))

-- Nodes.

upheavals :: Surroundings -> Random -> [Fault]
upheavals around random =
  map
    settling
    [ Fault "kill a primary that keeps" killKept,
      Fault "kill the primary that may be replaced" killElecting,
      Fault "kill a replica" killReplica,
      Fault "kill the server" killServer,
      Fault "freeze for a moment" (freezeNode (0.05, 0.9)),
      Fault "freeze for a moment" (freezeNode (0.05, 0.9)),
      Fault "freeze for long" (freezeNode (2.5, 5)),
      Fault "freeze the server" freezeServer,
      Fault "fail over" failOver,
      Fault "fail over" failOver,
      Fault "reshard" reshard,
      Fault "reshard" reshard,
      Fault "a primary joins and leaves" primaryJoins,
      Fault "a replica joins and leaves" replicaJoins,
      Fault "change the password" changePassword
    ]
  where
    cluster = theCluster around

    -- A fault that could not be finished must not prevent the next ones.
    settling (Fault name act) = Fault name $ \say -> act say `finally` recovered
    recovered = do
      forM_ (theServer around : map nodeServer (allNodes around)) $ \server -> do
        Server.thaw server
        runs <- Server.serverIsRunning server
        unless runs (Server.restart server)
      awaitAgreement cluster
      clusterNodes cluster >>= mapM_ leave . filter (`notElem` allNodes around)

    keptPair = case keptPairs around of
      first : others -> choice random first others
      [] -> pure (electingPair around)

    -- The pair in its current roles: primary and replica.
    roles (Pair one other) = do
      primaries <- map fst <$> clusterPrimaries cluster
      pure (if one `elem` primaries then (one, other) else (other, one))

    killFor :: (String -> IO ()) -> Node -> (Double, Double) -> IO ()
    killFor say node range = do
      down <- between random range
      say (nameOf node <> " for " <> inSeconds down)
      Server.kill9 (nodeServer node)
      pause down
      Server.restart (nodeServer node)

    killKept, killReplica, killElecting, killServer, freezeServer, failOver, reshard, primaryJoins, replicaJoins, changePassword :: Act
    killKept say = do
      (primary, _) <- keptPair >>= roles
      -- While a newly promoted replica writes its file for the first time, the file is incomplete.
      eventually 20 "the file is whole" (fileIsWhole (nodeServer primary))
      killFor say primary (0.1, 3)

    killReplica say = do
      pair <- choice random (electingPair around) (keptPairs around)
      (_, replica) <- roles pair
      killFor say replica (0.1, 3)

    killElecting say = do
      (primary, replica) <- roles (electingPair around)
      awaited <- between random (0, 1)
      if awaited < 0.3
        then killFor say primary (0.05, 0.5)
        else do
          say (nameOf primary <> " until " <> nameOf replica <> " has taken over")
          Server.kill9 (nodeServer primary)
          -- In some states Redis 7.0 never elects ('killPrimary').
          void . upTo 15 $ eventually 20 "another primary" (isPrimaryNow replica)
          pause =<< between random (0, 1)
          Server.restart (nodeServer primary)

    -- Whether the node regards itself as a primary.
    isPrimaryNow node = any (\view -> viewId view == nodeId node && viewIsPrimary view) <$> viewOf node

    killServer say = do
      down <- between random (0.1, 2)
      say ("for " <> inSeconds down)
      Server.kill9 (theServer around)
      pause down
      Server.restart (theServer around)

    freezeNode :: (Double, Double) -> Act
    freezeNode range say = do
      (primary, replica) <- choice random (electingPair around) (keptPairs around) >>= roles
      node <- choice random primary [primary, replica]
      frozen <- between random range
      say (nameOf node <> " for " <> inSeconds frozen)
      Server.freeze (nodeServer node)
      pause frozen
      Server.thaw (nodeServer node)

    freezeServer say = do
      frozen <- between random (0.05, 2.5)
      say ("for " <> inSeconds frozen)
      Server.freeze (theServer around)
      pause frozen
      Server.thaw (theServer around)

    failOver say = do
      (primary, replica) <- keptPair >>= roles
      say (nameOf primary <> " to " <> nameOf replica)
      -- The servers themselves give up after five seconds if replication is disturbed meanwhile.
      persistently (failover (withClusterTimeout 8 cluster) replica)

    reshard say = do
      tags <- choice random Kept [Kept, MayLose]
      slot <- slotOfTags tags
      -- A slot that keeps its data stays with pairs that do.
      target <- case (tags, keptPairs around) of
        (Kept, first : others) -> choice random first others
        _ -> choice random (electingPair around) (keptPairs around)
      (primary, _) <- roles target
      say ("slot " <> show slot <> " to " <> nameOf primary)
      persistently (migrateSlot cluster quietMigration slot primary)

    slotOfTags tags =
      case [keySlot tag | place <- take 1 (thePlaces around), (tag, keeping) <- placeTags place, keeping == tags] of
        first : others -> choice random first others
        [] -> pure 0

    -- The newcomers are not behind 'allProxies', and no other fault meets them.
    primaryJoins say = do
      slot <- slotOfTags Kept
      newcomer <- addPrimary cluster
      say (nameOf newcomer <> " for slot " <> show slot)
      persistently (migrateSlot cluster quietMigration slot newcomer)
      between random (0.2, 2) >>= pause
      leave newcomer

    replicaJoins say = do
      (primary, _) <- choice random (electingPair around) (keptPairs around) >>= roles
      newcomer <- addReplica cluster primary
      say (nameOf newcomer <> " of " <> nameOf primary)
      between random (0.2, 2) >>= pause
      leave newcomer

    -- A node gives its slots to a pair that keeps, and leaves the cluster.
    leave node = do
      (heir, _) <- keptPair >>= roles
      owned <- concat . lookup node <$> clusterPrimaries cluster
      forM_ [slot | (first, final) <- owned, slot <- [first .. final]] $ \slot ->
        persistently (migrateSlot cluster quietMigration slot heir)
      removeNode cluster node

    -- Both passwords are valid until no handshake is under way with the old one.
    changePassword say = do
      old <- readIORef (thePassword around)
      drawn <- between random (0, 1)
      let new = Char8.pack (show drawn)
          change rule = do
            void (Server.command (theServer around) ["ACL", "SETUSER", theUser, rule])
            -- For a restart.
            void (Server.command (theServer around) ["CONFIG", "REWRITE"])
      say ("of " <> Char8.unpack theUser)
      change (">" <> new)
      writeIORef (thePassword around) new
      pause 2
      change ("<" <> old)

    persistently act = go (3 :: Int)
      where
        go tries =
          act
            `catches` [ Handler (\problem@(TestKitFailure _) -> if tries > 1 then go (tries - 1) else ioError (userError (show problem)))
                      ]

fileIsWhole :: Server -> IO Bool
fileIsWhole server = do
  info <- maybe Map.empty infoFields . replyText <$> Server.command server ["INFO", "persistence"]
  pure $
    all
      (\(name, value) -> Map.lookup name info == Just (value :: ByteString))
      [("aof_enabled", "1"), ("aof_rewrite_in_progress", "0"), ("aof_rewrite_scheduled", "0"), ("aof_last_bgrewrite_status", "ok")]

-- Connections.

disturbances :: Surroundings -> Random -> [Fault]
disturbances around random =
  [ Fault "cut" . through $ \proxy -> ending >>= Proxy.cut proxy,
    Fault "cut after bytes" . through $ \proxy -> do
      direction <- way
      bytes <- between random (0, 3000)
      ending >>= Proxy.cutAfter proxy direction (round bytes)
      -- Waits until the bytes have passed, which may take long on a quiet connection.
      pause 1,
    Fault "silence" . through $ \proxy -> do
      direction <- way
      Proxy.freeze proxy direction
      between random (0.05, 2.5) >>= pause
      Proxy.thaw proxy direction,
    Fault "silence, then cut" . through $ \proxy -> do
      direction <- way
      Proxy.freeze proxy direction
      between random (0.05, 0.5) >>= pause
      ending >>= Proxy.cut proxy
      Proxy.thaw proxy direction,
    Fault "delay" . through $ \proxy -> do
      direction <- way
      between random (0.001, 0.08) >>= Proxy.delay proxy direction
      between random (0.5, 2) >>= pause
      Proxy.heal proxy,
    Fault "slices" . through $ \proxy -> do
      direction <- way
      size <- between random (1, 9)
      Proxy.slice proxy direction (round size)
      between random (0.2, 1) >>= pause
      Proxy.heal proxy,
    Fault "refuse and cut" . through $ \proxy -> do
      Proxy.refuse proxy
      ending >>= Proxy.cut proxy
      between random (0.05, 1) >>= pause
      Proxy.accept proxy,
    Fault "CLIENT KILL" killClients
  ]
  where
    proxies = allProxies around
    way = choice random ToServer [ToClient]
    ending = choice random Close [Reset]
    through :: (Proxy -> IO ()) -> Act
    through act say = do
      -- The single server as often as all nodes together.
      alone <- between random (0, 1)
      chosen <- case proxies of
        server : nodes
          | alone < 0.4 -> pure (Just server)
          | first : others <- nodes -> Just <$> choice random first others
        _ -> pure Nothing
      forM_ chosen $ \(name, proxy) -> do
        say name
        act proxy `finally` Proxy.heal proxy

    -- Only the connections of the clients: the testkit has some, too.
    killClients :: Act
    killClients say = do
      server <- choice random (theServer around) (theServer around : map nodeServer (allNodes around))
      say (show (Server.serverPort server))
      void . upTo 2 $ do
        clients <- maybe [] Char8.lines . replyText <$> Server.command server ["CLIENT", "LIST"]
        let ids = [rest | client <- clients, "name=soak" `elem` Char8.words client, field : _ <- [Char8.words client], Just rest <- [Char8.stripPrefix "id=" field]]
        -- For a connection that is gone already the reply is an error, which does not matter.
        Server.withServerConnection server $ \connection ->
          forM_ ids $ \number -> request connection ["CLIENT", "KILL", "ID", number]
