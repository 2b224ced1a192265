-- | @bench record@ with servers whose @MONITOR@ sends wrong lines, is silent, or is refused; and
-- without room for the recording.
module Tool.RecordSpec (spec) where

import Control.Concurrent.Async (concurrently, concurrently_, withAsync)
import Control.Concurrent.MVar (MVar, modifyMVar_, newMVar, withMVar)
import Control.Exception (IOException, bracket, finally, handle)
import Control.Monad (forM_, unless, when)
import Data.ByteString (ByteString)
import Data.ByteString qualified as ByteString
import Data.ByteString.Char8 qualified as Char8
import Data.List (isInfixOf, isPrefixOf)
import MonitorLines (renderLine)
import Network.Socket (Socket)
import Network.Socket qualified as Socket
import Network.Socket.ByteString qualified as Socket.ByteString
import OnServer (at, probed, watched)
import Redis.TestKit.Address (Address (TcpAddress), listenOn)
import Redis.TestKit.Command (takeRequest)
import Redis.TestKit.Server
import Redis.TestKit.Wait (eventually)
import System.Directory (listDirectory)
import System.Exit (ExitCode (..))
import System.FilePath ((</>))
import System.IO (IOMode (WriteMode), withFile)
import System.IO.Temp (withSystemTempDirectory)
import System.Posix.Files (getFileStatus, isCharacterDevice)
import System.Posix.Signals (sigINT, signalProcess)
import System.Process
import Test.Hspec
import Test.Hspec.QuickCheck (modifyMaxSize, prop)
import Test.QuickCheck
import Tool.Monitor
import Tool.ProgramSpec (oneLine, program, run')
import Tool.Record.Wire (Probed (..), withoutProbe)

-- | How a peer behaves.
data Manner = Manner
  { -- | The reply to @MONITOR@. If it is empty, the peer hangs up.
    mannerMonitor :: ByteString,
    -- | The line that @MONITOR@ shows for a command, if it shows the command at all.
    mannerShows :: [ByteString] -> Maybe ByteString,
    -- | The reply to all commands except @MONITOR@.
    mannerAnswers :: [ByteString] -> ByteString
  }

-- | A peer that behaves like a proper server.
good :: Manner
good = Manner {mannerMonitor = "+OK\r\n", mannerShows = Just . line, mannerAnswers = const "$2\r\nhi\r\n"}

line :: [ByteString] -> ByteString
line arguments =
  renderLine Observed {observedMicros = 1700000000000000, observedDatabase = 0, observedOrigin = OriginClient "127.0.0.1:1", observedWords = arguments}

-- | A line in which control bytes are escaped, but quotes and backslashes are not, as in Valkey
-- 8.1.1.
careless :: [ByteString] -> ByteString
careless arguments = "1700000000.000000 [0 127.0.0.1:1] " <> Char8.unwords ["\"" <> Char8.concatMap one word <> "\"" | word <- arguments]
  where
    one = \case
      '"' -> "\""
      '\\' -> "\\"
      other -> Char8.takeWhile (/= '"') (ByteString.drop 1 (Char8.dropWhile (/= '"') (line [Char8.singleton other])))

-- | Runs a peer while the action runs, and gives the action its port.
withPeer :: Manner -> (Int -> IO a) -> IO a
withPeer manner action =
  bracket (listenOn (TcpAddress "127.0.0.1" 0)) Socket.close $ \listening -> do
    port <- Socket.socketPort listening
    watching <- newMVar []
    let accepting = do
          (connection, _) <- Socket.accept listening
          concurrently_ (serve manner watching connection) accepting
    withAsync accepting (const (action (fromIntegral port)))

-- | Serves a client until it disconnects. Clients that watch are shown the commands of the others.
serve :: Manner -> MVar [Socket] -> Socket -> IO ()
serve manner watching connection = handle (\(_ :: IOException) -> pure ()) (go "") `finally` Socket.close connection
  where
    go rest = do
      received <- Socket.ByteString.recv connection 4096
      unless (ByteString.null received) (commands (rest <> received) >>= go)
    commands bytes = case takeRequest bytes of
      Right (arguments, rest) -> run arguments >> commands rest
      Left _ -> pure bytes
    run = \case
      ["MONITOR"] -> do
        say connection (mannerMonitor manner)
        when (ByteString.null (mannerMonitor manner)) $ Socket.shutdown connection Socket.ShutdownBoth
        modifyMVar_ watching (pure . (connection :))
      arguments -> do
        forM_ (mannerShows manner arguments) $ \shown ->
          withMVar watching (mapM_ (`say` ("+" <> shown <> "\r\n")))
        say connection (mannerAnswers manner arguments)
    say = Socket.ByteString.sendAll

recordPeer :: Int -> FilePath -> [String] -> IO (ExitCode, String, String)
recordPeer port file more = run' (["bench", "record", "-h", "127.0.0.1", "-p", show port, "--out", file] <> more)

spec :: Spec
spec = describe "bench record" $ do
  -- Longer lists have more of the same.
  modifyMaxSize (const 40) . prop "keeps what is shown before and after its own word, and not that" $ \earlier later ->
    let word = "nonce \" \\ \n \\x41\\"
        others :: [[String]] -> ByteString
        others = foldMap (\words' -> "+" <> line ("get" : map Char8.pack words') <> "\r\n")
        whole = others earlier <> "+" <> line ["ECHO", word] <> "\r\n" <> others later
     in conjoin
          [ withoutProbe "nonce" word whole === ReadBack (others earlier <> others later),
            forAll (choose (0, ByteString.length (others earlier) + 20)) $ \size ->
              withoutProbe "nonce" word (ByteString.take size whole) === NotYet
          ]

  it "knows a word that was not escaped from one that was" $ do
    let word = "nonce \" \\ x"
    withoutProbe "nonce" word ("+" <> careless ["ECHO", word] <> "\r\n") `shouldBe` Garbled
    withoutProbe "nonce" word ("+" <> line ["ECHO", word] <> "\r\n") `shouldBe` ReadBack ""

  describe "says in one line, and writes nothing," $ do
    let refuses manner part =
          withSystemTempDirectory "record-spec" $ \folder ->
            withPeer manner $ \port -> do
              (code, output, problem) <- recordPeer port (folder </> "recording") ["--for", "5s"]
              (code, output) `shouldBe` (ExitFailure 3, "")
              problem `oneLine` part
              listDirectory folder `shouldReturn` []
    it "that a server's MONITOR does not escape quotes and backslashes" $
      refuses good {mannerShows = Just . careless} "does not escape quotes and backslashes"
    it "that it cuts what it shows" $
      refuses good {mannerShows = Just . ByteString.take 90 . line} "does not escape"
    it "that it refuses MONITOR" $
      refuses good {mannerMonitor = "-NOPERM this user has no permissions\r\n"} ": the server refuses: NOPERM this user"
    it "that it hangs up" $
      refuses good {mannerMonitor = ""} ": the server closed the connection"
    it "that it is no such server" $
      refuses good {mannerMonitor = "HTTP/1.1 400 Bad Request\r\n\r\n"} ": it does not speak the Redis protocol: \"HTTP/1.1 400"
    it "that it does not let its MONITOR be tried" $
      refuses good {mannerShows = const Nothing, mannerAnswers = const "-NOPERM this user has no permissions\r\n"} "refuses ECHO"

  it "tries a server by another command where ECHO is refused" $
    withSystemTempDirectory "record-spec" $ \folder -> do
      let refused = \case
            "ECHO" : _ -> True
            _ -> False
          manner =
            good
              { mannerShows = \arguments -> if refused arguments then Nothing else Just (line arguments),
                mannerAnswers = \arguments -> if refused arguments then "-NOPERM no\r\n" else "-ERR Client names cannot contain spaces\r\n"
              }
      withPeer manner $ \port -> do
        (code, output, problem) <- recordPeer port (folder </> "recording") ["--for", "100ms"]
        (code, problem) `shouldBe` (ExitSuccess, "")
        output `shouldSatisfy` ("0 commands in " `isPrefixOf`)
        ByteString.readFile (folder </> "recording") `shouldReturn` ""

  it "says that it fell behind where it did not get all that was sent before its end" $
    withSystemTempDirectory "record-spec" $ \folder -> do
      -- It shows the word that tests it, which has a line end, and nothing else.
      let manner = good {mannerShows = \arguments -> if any (Char8.elem '\n') arguments then Just (line arguments) else Nothing}
      withPeer manner $ \port -> do
        (code, _, problem) <- recordPeer port (folder </> "recording") ["--for", "100ms"]
        code `shouldBe` ExitFailure 3
        lines problem `shouldBe` ["127.0.0.1:" <> show port <> ": the recording fell behind and lacks the latest commands"]
        listDirectory folder `shouldReturn` ["recording"]

  it "has every command that was answered before its end, large values too" $
    withSystemTempDirectory "record-spec" $ \folder ->
      withServer serverDefaults $ \server -> do
        let load = do
              eventually 30 "somebody watches" (watched server)
              forM_ ["1", "2", "3"] $ \key -> command server ["SET", key, ByteString.replicate 2000000 0]
            file = folder </> "recording"
        process <- program [] (["bench", "record", "--out", file] <> at server)
        code <- withFile "/dev/null" WriteMode $ \nowhere ->
          withCreateProcess process {std_out = UseHandle nowhere} $ \_ _ _ recorder -> do
            load
            -- Ctrl-C, although it has not received all by now.
            getPid recorder >>= mapM_ (signalProcess sigINT)
            waitForProcess recorder
        code `shouldBe` ExitSuccess
        recorded <- Char8.lines <$> ByteString.readFile file
        length (filter ("\"SET\"" `ByteString.isInfixOf`) recorded) `shouldBe` 3

  it "writes to the standard output and to devices, and replaces none" $
    withServer serverDefaults $ \server -> do
      let load = eventually 30 "somebody watches" (watched server) >> forM_ ["1", "2", "3"] (\value -> command server ["SET", "key", value])
          recorded out = fst <$> concurrently (run' (["bench", "record", "--count", "3", "--for", "60s", "--out", out] <> at server)) load
      (code, output, said) <- recorded "-"
      code `shouldBe` ExitSuccess
      length (lines output) `shouldBe` 3
      said `shouldSatisfy` ("3 commands in " `isPrefixOf`)
      (full, nothing, problem) <- recorded "/dev/full"
      (full, nothing) `shouldBe` (ExitFailure 3, "")
      problem `oneLine` "/dev/full: the disk is full"
      isCharacterDevice <$> getFileStatus "/dev/full" `shouldReturn` True

  it "keeps what a server said before it ended, and says so" $
    withSystemTempDirectory "record-spec" $ \folder ->
      withServer serverDefaults $ \server -> do
        let file = folder </> "recording"
            load = do
              eventually 30 "somebody watches" (probed server)
              forM_ ["1", "2", "3"] (\value -> command server ["SET", "key", value])
              -- When this has been answered, the watching clients have been sent everything before
              -- it.
              eventually 30 "somebody watches still" (watched server)
              kill9 server
        ((code, output, problem), ()) <- concurrently (run' (["bench", "record", "--for", "60s", "--out", file] <> at server)) load
        code `shouldBe` ExitFailure 3
        output `shouldSatisfy` (file `isInfixOf`)
        lines problem `shouldSatisfy` ((== 1) . length)
        problem `shouldSatisfy` ("the server closed the connection after " `isInfixOf`)
        recorded <- Char8.lines <$> ByteString.readFile file
        filter ("\"SET\"" `ByteString.isInfixOf`) recorded `shouldSatisfy` ((== 3) . length)

  it "says that it cannot put a recording in the place of a directory, before it asks anybody" $
    withSystemTempDirectory "record-spec" $ \folder -> do
      (code, _, problem) <- recordPeer 1 folder ["--for", "1s"]
      code `shouldBe` ExitFailure 2
      problem `oneLine` "is a directory"
