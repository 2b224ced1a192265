-- | Commands that are missing in the client's table, so that the client asks the server for their
-- facts and their keys.
module UnknownCommandSpec (spec) where

import Control.Concurrent (threadDelay)
import Control.Concurrent.Async (cancel, withAsync)
import Control.Concurrent.STM
import Control.Monad (forM_)
import Data.ByteString (ByteString)
import Data.List (nub)
import Data.Map.Strict qualified as Map
import FakeNode
import GHC.Clock (getMonotonicTime)
import Redis
import Redis.Metrics
import Redis.TestKit.Command (Reply (..))
import Redis.TestKit.Wait (eventually)
import Redis.Value (Value (..))
import Support
import Test.Hspec

spec :: Spec
spec = describe "a command that only the server knows" $ do
  it "goes to the node of the keys that the server names, and is asked about once" $
    limited . withTwoNodes $ \a b -> do
      forM_ [a, b] $ \node -> do
        setView node (shardsView [shard [(0, 8191)] a, shard [(8192, 16383)] b])
        setScript node (describedAs (firstKey "write"))
      withClient (clusterOf [fakeEndpoint a]) $ \client -> do
        forM_ [1 :: Int .. 3] $ \_ -> run client (raw ["X.ADD", high]) `shouldReturn` SimpleString "OK"
        countHeard b ["X.ADD"] `shouldReturn` 3
        countHeard a ["X.ADD"] `shouldReturn` 0
        asked <- (+) <$> countHeard a ["COMMAND"] <*> countHeard b ["COMMAND"]
        asked `shouldBe` 1

  it "stays repeatable if its caller says that it is" $
    limited . withFakeNode $ \a -> do
      hangingUp 1 "X.ADD" (describedAs (firstKey "write")) >>= setScript a
      withClient (clusterOf [fakeEndpoint a]) $ \client ->
        run client (idempotent (raw ["X.ADD", high])) `shouldReturn` SimpleString "OK"
      countHeard a ["X.ADD"] `shouldReturn` 2

  it "is not sent again otherwise" $
    limited . withFakeNode $ \a -> do
      setScript a $ \connection -> \case
        "X.ADD" : _ -> pure (Just HangUp)
        other -> describedAs (firstKey "write") connection other
      withClient (clusterOf [fakeEndpoint a]) $ \client -> do
        problem <- tryRun client (raw ["X.ADD", high]) >>= expectError
        errorDelivery problem `shouldBe` MaybeExecuted
      countHeard a ["X.ADD"] `shouldReturn` 1

  it "gives its connection back when its caller gives up, if the server may keep it waiting" $
    limited . withFakeNode $ \a -> do
      answering <- newTVarIO False
      setScript a $ \connection -> \case
        "X.ADD" : _ -> Nothing <$ atomically (readTVar answering >>= check)
        other -> describedAs (firstKey "blocking") connection other
      withClient (clustered a) $ \client -> do
        let lent = sum . map (gaugeLent . gaugeDedicated) . snapshotNodes <$> clientSnapshot client
        withAsync (run client (raw ["X.ADD", high])) $ \waiting -> do
          eventually 5 "it waits there" $ (== 1) <$> countHeard a ["X.ADD"]
          lent `shouldReturn` 1
          cancel waiting
        eventually 5 "nobody has the connection" $ (== 0) <$> lent
      atomically (writeTVar answering True)

  forM_ [("a single server", alone), ("a cluster", clustered)] $ \(what, config) ->
    it ("runs on " <> what <> " that does not let its user ask about commands") $
      limited . withFakeNode $ \a -> do
        setScript a $ \_ -> \case
          "COMMAND" : _ -> pure (Just (Say (Failed "NOPERM User reader has no permissions to run the 'command|info' command")))
          _ -> pure Nothing
        withClient (config a) $ \client ->
          run client (raw ["X.ADD", high]) `shouldReturn` SimpleString "OK"

  it "finds the node of its key by a redirect where nobody says what its keys are" $
    limited . withTwoNodes $ \a b -> do
      setScript a $ \_ -> \case
        "COMMAND" : _ -> pure (Just (Say (Failed "NOPERM")))
        "X.ADD" : _ -> pure (Just (Say (Failed ("MOVED 0 " <> fakeAddress b))))
        _ -> pure Nothing
      withClient (clustered a) $ \client ->
        run client (raw ["X.ADD", high]) `shouldReturn` SimpleString "OK"
      countHeard b ["X.ADD"] `shouldReturn` 1

  it "is not asked for its keys on a single server, where they decide nothing" $
    limited . withFakeNode $ \a -> do
      setScript a (describedAs movable)
      withClient (alone a) $ \client -> do
        forM_ [1 :: Int .. 3] $ \_ -> run client (raw ["X.ADD", high]) `shouldReturn` SimpleString "OK"
      countHeard a ["COMMAND", "GETKEYS"] `shouldReturn` 0
      countHeard a ["COMMAND"] `shouldReturn` 1

  it "that a user may not ask about is asked for once, and runs on a connection that nobody uses after it" $
    limited . withFakeNode $ \a -> do
      setScript a $ \_ -> \case
        "COMMAND" : _ -> pure (Just (Say (Failed "NOPERM this user has no permissions to run the 'command' command")))
        _ -> pure Nothing
      withClient (alone a) $ \client -> do
        forM_ [1 :: Int .. 5] $ \_ -> run client (raw ["X.ADD", high]) `shouldReturn` SimpleString "OK"
      countHeard a ["COMMAND"] `shouldReturn` 1
      used <- map fst . filter ((== ["X.ADD"]) . take 1 . snd) <$> heardOn a
      length (nub used) `shouldBe` 5

  it "that a module brings later is asked about again" $
    limited . withFakeNode $ \a -> do
      setScript a (describedAs Nil)
      withClient (clustered a) $ \client -> do
        run client (raw ["X.ADD", high]) `shouldReturn` SimpleString "OK"
        setScript a (describedAs (firstKey "readonly"))
        run client (raw ["X.ADD", high]) `shouldReturn` SimpleString "OK"
        run client (raw ["X.ADD", high]) `shouldReturn` SimpleString "OK"
      countHeard a ["COMMAND", "INFO"] `shouldReturn` 2

  it "is asked about also where its node is named, and gets the connection that it needs" $
    limited . withFakeNode $ \a -> do
      setScript a (describedAs (firstKey "blocking"))
      withClient (clustered a) $ \client -> do
        run client (onNode (fakeEndpoint a) (raw ["X.ADD", high])) `shouldReturn` SimpleString "OK"
        run client (onEvery Primaries (raw ["X.ADD", high])) `shouldReturn` Map.singleton (fakeEndpoint a) (SimpleString "OK")
      let on name = map fst . filter ((== [name]) . take 1 . snd) <$> heardOn a
      asked <- on "COMMAND"
      length asked `shouldBe` 1
      added <- on "X.ADD"
      added `shouldSatisfy` \used -> length used == 2 && all (`notElem` asked) used

  it "may have run in part when it is answered by an error, also where its node is named or lent" $
    limited . withFakeNode $ \a -> do
      setScript a $ \connection -> \case
        "X.ADD" : _ -> pure (Just (Say (Failed "ERR after a part")))
        other -> describedAs (firstKey "write") connection other
      withClient (clustered a) $ \client -> do
        let add = raw ["X.ADD", high]
        problems <-
          sequence
            [ tryRun client add,
              tryRun client (onNode (fakeEndpoint a) add),
              withDedicated client AnyPrimary (`tryRunOn` add)
            ]
        map (either (Just . errorDelivery) (const Nothing)) problems `shouldBe` replicate 3 (Just MaybeExecuted)

  it "has what is left of its time when it is sent again on a connection of its own" $
    limited . withFakeNode $ \a -> do
      isFirst <- newTVarIO True
      setScript a $ \_ -> \case
        "COMMAND" : _ -> pure (Just (Say (Failed "NOPERM")))
        "X.ADD" : _ -> do
          first <- atomically (swapTVar isFirst False)
          if first then Just HangUp <$ threadDelay 1600000 else pure (Just Silence)
        _ -> pure Nothing
      withClient (setCommandTimeout (Just (seconds 2)) (alone a)) $ \client -> do
        began <- getMonotonicTime
        _ <- tryRun client (idempotent (raw ["X.ADD", high])) >>= expectError
        ended <- getMonotonicTime
        -- A second attempt with the whole time would end after 3.6 s.
        ended - began `shouldSatisfy` (< 3)
      countHeard a ["X.ADD"] `shouldReturn` 2

  forM_ [("a single server", alone), ("a cluster", clustered)] $ \(what, config) ->
    it ("has of its time limit what the questions leave, on " <> what) $
      limited . withFakeNode $ \a -> do
        setScript a $ \connection -> \case
          "X.ADD" : _ -> pure (Just Silence)
          asked@("COMMAND" : _) -> threadDelay 700000 *> describedAs (firstKey "write") connection asked
          _ -> pure Nothing
        withClient (setCommandTimeout (Just (seconds 1)) (config a)) $ \client -> do
          began <- getMonotonicTime
          _ <- tryRun client (raw ["X.ADD", high]) >>= expectError
          ended <- getMonotonicTime
          -- With its whole limit from the answer on it would end after 1.7 s.
          ended - began `shouldSatisfy` (< 1.4)
        countHeard a ["X.ADD"] `shouldReturn` 1

  describe "with a subcommand" $ do
    it "that moves a cursor is asked of the primary, and once, though the server calls it a read" $
      limited . withTwoNodes $ \a b -> do
        forM_ [a, b] $ \node -> do
          setView node (replicated a b)
          setScript node $ \connection -> \case
            "FT.CURSOR" : _ -> pure (Just HangUp)
            other -> describedAs (container "ft.cursor" [subcommand "ft.cursor|read" "readonly" "@read" 2]) connection other
        withClient (preferringReplicas [fakeEndpoint a]) $ \client -> do
          problem <- tryRun client (raw ["FT.CURSOR", "READ", high, "7"]) >>= expectError
          errorDelivery problem `shouldBe` MaybeExecuted
        countHeard a ["FT.CURSOR"] `shouldReturn` 1
        countHeard b ["FT.CURSOR"] `shouldReturn` 0

    it "is what its subcommand is, and goes where that one's keys are" $
      limited . withTwoNodes $ \a b -> do
        forM_ [a, b] $ \node -> do
          setView node (shardsView [shard [(0, 8191)] a, shard [(8192, 16383)] b])
          setScript node (describedAs (container "x.box" [subcommand "x.box|add" "write" "@write" 2, subcommand "x.box|look" "readonly" "@read" 3]))
        withClient (clusterOf [fakeEndpoint a]) $ \client ->
          forM_ [1 :: Int .. 3] $ \_ -> do
            run client (raw ["x.box", "add", high, low]) `shouldReturn` SimpleString "OK"
            run client (raw ["X.BOX", "LOOK", high, low]) `shouldReturn` SimpleString "OK"
        countHeard b ["X.BOX", "add"] `shouldReturn` 3
        countHeard a ["X.BOX", "LOOK"] `shouldReturn` 3
        countHeard a ["X.BOX"] `shouldReturn` 3
        asked <- (+) <$> countHeard a ["COMMAND"] <*> countHeard b ["COMMAND"]
        asked `shouldBe` 2

    it "that changes its connection is not sent where others are served, whatever its container is" $
      limited . withFakeNode $ \a -> do
        setScript a (describedAs (container "client" [subcommand "client|notyetinvented" "fast" "@connection" 0]))
        withClient (clustered a) $ \client ->
          tryRun client (raw ["CLIENT", "NOTYETINVENTED"]) `shouldReturn` Left (RefusedError (NeedsDedicatedConnection "CLIENT NOTYETINVENTED"))
        countHeard a ["CLIENT", "NOTYETINVENTED"] `shouldReturn` 0

    forM_
      [ ("does not have it", container "client" [subcommand "client|id" "fast" "@connection" 0], 3),
        ("tells no subcommands", List (take 6 (elements (container "client" []))), 1)
      ]
      $ \(what, description, questions) ->
        it ("runs on a connection that nobody uses after it where the server " <> what) $
          limited . withFakeNode $ \a -> do
            setScript a (describedAs description)
            withClient (clustered a) $ \client ->
              forM_ [1 :: Int .. 3] $ \_ -> run client (raw ["CLIENT", "NOTYETINVENTED"]) `shouldReturn` SimpleString "OK"
            used <- map fst . filter ((== ["CLIENT", "NOTYETINVENTED"]) . take 2 . snd) <$> heardOn a
            length (nub used) `shouldBe` 3
            countHeard a ["COMMAND"] `shouldReturn` questions

-- A key in the upper half of the slots, and one in the lower half.
high, low :: ByteString
high = keyIn "high" (>= 8192)
low = keyIn "low" (< 8192)

clustered, alone :: FakeNode -> Config
clustered node = clusterOf [fakeEndpoint node]
alone node = case fakeEndpoint node of
  TcpEndpoint host port -> setProtocol OnlyResp2 (impatient (standaloneConfig host port))
  UnixEndpoint path -> impatient (unixConfig path)

-- Sends this description in reply to COMMAND INFO of one command.
describedAs :: Reply -> Script
describedAs description _ = \case
  "COMMAND" : "INFO" : _ -> pure (Just (Say (List [description])))
  "COMMAND" : _ -> pure (Just (Say (List [Text high])))
  _ -> pure Nothing

-- A command whose key follows its name, in the description of servers before version 7.
firstKey :: ByteString -> Reply
firstKey what = List [Text "x.add", Number (-2), List [Status what], Number 1, Number 1, Number 1]

-- A command whose keys only the server can find.
movable :: Reply
movable = List [Text "x.add", Number (-2), List [Status "write", Status "movablekeys"], Number 0, Number 0, Number 0]

-- A command with subcommands, in the description of servers since version 7.
container :: ByteString -> [Reply] -> Reply
container name subcommands =
  List [Text name, Number (-2), List [], Number 0, Number 0, Number 0, List [Status "@slow"], List [], List [], List subcommands]

-- The description of a subcommand: its name, a flag, a category, and the position of its key.
subcommand :: ByteString -> ByteString -> ByteString -> Integer -> Reply
subcommand name what category position =
  List [Text name, Number (-2), List [Status what], Number 0, Number 0, Number 0, List [Status category], List [], List [keyAt | position > 0], List []]
  where
    keyAt =
      List
        [ Text "flags",
          List [Status "RW"],
          Text "begin_search",
          List [Text "type", Text "index", Text "spec", List [Text "index", Number position]],
          Text "find_keys",
          List [Text "type", Text "range", Text "spec", List [Text "lastkey", Number 0, Text "keystep", Number 1, Text "limit", Number 0]]
        ]

elements :: Reply -> [Reply]
elements = \case
  List found -> found
  other -> [other]
