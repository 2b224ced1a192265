-- | A cell's server, with the cell's program, persistence, directory and distance, started for the
-- cell and removed afterwards.
module Tool.Campaign.Server
  ( Surroundings (..),
    Delayer (..),
    delayer,
    Started (..),
    withCellServer,
    withForgetfulServer,
    Namespace (..),
    withNamespace,
    withNamespaceBy,
    netemProblem,
  )
where

import Control.Exception (IOException, bracket, try)
import Control.Monad (join, replicateM, unless, void)
import Data.Bits (shiftR, (.&.))
import Data.List (intercalate, isInfixOf)
import Redis.TestKit.Address (Address (..))
import Redis.TestKit.Command (Reply (..), requestOk, withConnection)
import Redis.TestKit.Disk (Disk, diskEnvironment, diskInUse, withDisk)
import Redis.TestKit.Folder qualified as Folder
import Redis.TestKit.Server
import System.Exit (ExitCode (..))
import System.FilePath ((</>))
import System.IO.Temp (withTempDirectory)
import System.Posix.Files (setFileMode)
import System.Posix.Process (getProcessID)
import System.Process (readProcessWithExitCode)
import Tool.Bench.Time (monotonic)
import Tool.Campaign.Design
import Tool.Failure (unavailable)
import Tool.Relay (relayPort, withRelay)
import Tool.Span (renderSpan, secondsIn)
import Tool.Statistics (median)

-- | What all cells share.
data Surroundings = Surroundings
  { -- | The cores that servers may run on; an empty list means all.
    surroundingsCores :: [Int],
    surroundingsDelayer :: Delayer
  }

-- | How a round trip is made longer.
data Delayer
  = -- | By the kernel.
    DelayerNetem
  | -- | By the relay, for this reason why the kernel cannot.
    DelayerRelay String

-- | The kernel if it can delay, otherwise the relay.
delayer :: IO Delayer
delayer = maybe DelayerNetem DelayerRelay <$> netemProblem

-- | A server that is ready.
data Started = Started
  { startedServer :: Server,
    -- | The address to measure: the server, or the relay before it.
    startedHost :: String,
    startedPort :: Int,
    -- | How the round trip is made, for the report: @local@, @netem rtt=1ms@ or
    -- @relay rtt=1ms@.
    startedNetwork :: String,
    -- | The median of a hundred PINGs from here, one after the other, in nanoseconds.
    startedPing :: Int
  }

-- | Starts the server in a directory of its own within the cell's place. Afterwards ends it and
-- removes the directory. Throws if the program does not start or the place cannot be written.
withCellServer :: Surroundings -> Cell -> (Started -> IO a) -> IO a
withCellServer surroundings cell action =
  withFolder cell $ \folder -> withServerIn folder [] surroundings cell action

-- | Like 'withCellServer', but on a disk that forgets what was not synchronised, and always on this
-- machine, whatever the distance of the cell. 'Left' says in one line why such a disk is impossible
-- here.
withForgetfulServer :: Surroundings -> Cell -> (Disk -> Started -> IO a) -> IO (Either String a)
withForgetfulServer surroundings cell action =
  withFolder cell $ \folder -> fmap join . withDisk folder $ \disk ->
    withServerIn folder (diskEnvironment disk) surroundings cell {cellNet = NetLocal} $ \started ->
      diskInUse disk >>= \case
        True -> Right <$> action disk started
        False -> pure (Left "the server does not take LD_PRELOAD: is it linked statically?")

withFolder :: Cell -> (FilePath -> IO a) -> IO a
withFolder cell = withTempDirectory (namedPath (cellPlace cell)) "redis-client-campaign"

-- Starts the server in this directory, with these environment variables.
withServerIn :: FilePath -> [(String, String)] -> Surroundings -> Cell -> (Started -> IO a) -> IO a
withServerIn folder variables surroundings cell action =
  case (cellNet cell, surroundingsDelayer surroundings) of
    (NetLocal, _) -> withServer options (here "local")
    (NetRoundTrip nanos, DelayerNetem) ->
      withNamespace (Just (nanos `div` 2)) (namedPath (cellServer cell)) $ \namespace ->
        withServer
          options
            { optionsBinary = Just (namespaceWrapper namespace),
              optionsHosts = [namespaceHost namespace]
            }
          (here ("netem " <> netName (cellNet cell)))
    (NetRoundTrip nanos, DelayerRelay _) ->
      withServer options $ \server ->
        withRelay (nanos `div` 2) (serverAddress server) $ \relay ->
          begin ("relay " <> netName (cellNet cell)) "127.0.0.1" (relayPort relay) server
  where
    options =
      serverDefaults
        { optionsBinary = Just (namedPath (cellServer cell)),
          optionsCores = surroundingsCores surroundings,
          optionsEnvironment = variables,
          -- A long log takes a while to be read again.
          optionsTimeout = 120,
          optionsConfig =
            [ "dir " <> quoted folder,
              -- An empty name sends the log to the file that keeps the server's output. A relative
              -- name would be in the directory above.
              "logfile \"\""
            ]
              <> persistenceConfig (cellPersistence cell)
        }
    here network server = begin network (serverHost server) (serverPort server) server
    begin network host port server = do
      ping <- pingMedian (TcpAddress host port)
      case cellNet cell of
        NetRoundTrip nanos
          | ping < nanos ->
            unavailable $
              network <> ": a PING takes " <> renderSpan (secondsIn ping)
                <> ", less than the round trip asked for"
        _ -> pure ()
      action (Started server host port network ping)

-- The lines of the server's configuration. Snapshots follow the server's own defaults.
persistenceConfig :: Persistence -> [String]
persistenceConfig = \case
  PersistNone -> ["save \"\"", "appendonly no"]
  PersistRdb -> ["save 3600 1", "save 300 100", "save 60 10000", "appendonly no"]
  PersistAofNo -> aof "no"
  PersistAofEverysec -> aof "everysec"
  PersistAofAlways -> aof "always"
  where
    aof policy = ["save \"\"", "appendonly yes", "appendfsync " <> policy]

pingMedian :: Address -> IO Int
pingMedian address = withConnection address $ \connection -> do
  times <- replicateM netPings $ do
    begun <- monotonic
    answer <- requestOk connection ["PING"]
    ended <- monotonic
    case answer of
      Status "PONG" -> pure (ended - begun)
      other -> unavailable ("PING is answered with " <> show other)
  pure (round (median (map fromIntegral times)))

-- | A network namespace that exists for the length of an action, joined to the machine's own by a
-- pair of virtual interfaces that the kernel delays (netem): each end gets half of the round trip,
-- and the loopback is never touched. Needs the rights to administer networks.
data Namespace = Namespace
  { -- | The address at which a server inside listens.
    namespaceHost :: String,
    -- | A program that runs the given program inside: the same process, in another network.
    namespaceWrapper :: FilePath
  }

-- | Why the kernel cannot delay here, in one line. 'Nothing': it can. Changes nothing that others
-- see. Blocks for some milliseconds.
netemProblem :: IO (Maybe String)
netemProblem =
  either Just (const Nothing) <$> run "unshare" (words "--net tc qdisc add dev lo root netem delay 1ms")

-- | Makes a namespace for the length of an action, in which the given program runs by way of
-- 'namespaceWrapper'. Delays each direction by this number of nanoseconds, or not at all. Throws
-- 'Tool.Failure.Failure' if the system does not allow it.
withNamespace :: Maybe Int -> FilePath -> (Namespace -> IO a) -> IO a
withNamespace = withNamespaceBy id

-- | The same, given where the programs of these names are (@ip@ and @tc@).
withNamespaceBy :: (String -> FilePath) -> Maybe Int -> FilePath -> (Namespace -> IO a) -> IO a
withNamespaceBy programAt delay program action = do
  process <- fromIntegral <$> getProcessID
  -- The namespace takes its interface with it, and that one takes the other.
  bracket (claimed (map (`mod` 32768) [process .. process + 63])) (void . deleted) $ \number -> do
    mapM_ required (building number)
    Folder.withFolder "redis-client-namespace" $ \folder -> do
      let wrapper = folder </> "enter"
      writeFile wrapper . unlines $
        [ "#!/bin/sh",
          "exec " <> inShell (programAt "ip") <> " netns exec " <> nameOf number <> " " <> inShell program <> " \"$@\""
        ]
      setFileMode wrapper 0o700
      action Namespace {namespaceHost = there number, namespaceWrapper = wrapper}
  where
    -- The address range that is reserved for benchmarks (RFC 2544) has 32768 ranges of four. The
    -- first that is free is taken, from that of the process id on. It is taken while there is a
    -- namespace of its name.
    claimed :: [Int] -> IO Int
    claimed = \case
      [] -> unavailable "network namespace: no range of addresses is free"
      number : others ->
        attempt ["ip", "netns", "add", nameOf number] >>= \case
          Right () -> pure number
          Left problem
            | "File exists" `isInfixOf` problem -> claimed others
            | otherwise -> unavailable ("network namespace: " <> problem)
    deleted number = attempt ["ip", "netns", "del", nameOf number]
    nameOf number = "redis-client-" <> show number
    here, there :: Int -> String
    here number = address number 1
    there number = address number 2
    address :: Int -> Int -> String
    address number place =
      intercalate "." $
        "198" :
        map show [18 + bits 14 1, bits 6 255, bits 0 63 * 4 + place]
      where
        bits from mask = (number `shiftR` from) .&. mask
    building number =
      [ ["ip", "link", "add", near, "type", "veth", "peer", "name", far, "netns", name],
        ["ip", "addr", "add", here number <> "/30", "dev", near],
        ["ip", "link", "set", near, "up"],
        ["ip", "-n", name, "addr", "add", there number <> "/30", "dev", far],
        ["ip", "-n", name, "link", "set", far, "up"],
        ["ip", "-n", name, "link", "set", "lo", "up"]
      ]
        <> delayed ["tc", "qdisc", "add", "dev", near]
        <> delayed ["ip", "netns", "exec", name, programAt "tc", "qdisc", "add", "dev", far]
      where
        name = nameOf number
        near = "rcn" <> show number
        far = "rcf" <> show number
    delayed ends =
      [ ends <> ["root", "netem", "delay", show (nanos `div` 1000) <> "us", "limit", "100000"]
        | Just nanos <- [delay]
      ]
    required words' = attempt words' >>= either (unavailable . ("network namespace: " <>)) pure
    attempt = \case
      [] -> pure (Right ())
      name : arguments -> run (programAt name) arguments
    inShell text = "'" <> concatMap escaped text <> "'"
    escaped character = if character == '\'' then "'\\''" else [character]

run :: FilePath -> [String] -> IO (Either String ())
run name arguments = do
  outcome <- try (readProcessWithExitCode name arguments "")
  pure $ case outcome of
    Left (_ :: IOException) -> Left (name <> " cannot be run")
    Right (ExitSuccess, _, _) -> Right ()
    Right (ExitFailure _, _, said) -> do
      let line = takeWhile (/= '\n') said
      unless (null line) (Left (name <> ": " <> line))
      Left (name <> " failed")
