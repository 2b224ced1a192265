-- | Whether a connection is in the state that the handshake left: the session's answer, compared
-- with a real server's report about the connection.
module Redis.SessionLiveSpec (spec) where

import Control.Monad (forM_, when)
import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Data.Char (toLower)
import Data.Foldable (for_)
import Data.IORef
import Redis
import Redis.Commands qualified as Commands
import Redis.Surroundings (addressed)
import Redis.TestKit.Command (Connection, Reply (..), request, requestOk)
import Redis.TestKit.Server (AclUser (..), ServerOptions (..), serverDefaults, withServer)
import Redis.TestKit.Server qualified as Server
import Redis.TestKit.Wait (eventually, failure, within)
import Redis.Value (Value (..))
import Test.Hspec hiding (after, before)
import Test.QuickCheck hiding (within)

spec :: Spec
spec = describe "a connection that is lent again" $
  forM_ [(kind, options, protocol) | (kind, options) <- servers, protocol <- [PreferResp3, OnlyResp2]] $ \(kind, options, protocol) ->
    it ("is as it was, whatever was said on it (" <> kind <> ", " <> show protocol <> ")") . within 120 $
      withServer options $ \server -> do
        when (optionsCluster options) $ do
          _ <- Server.command server ["CLUSTER", "ADDSLOTSRANGE", "0", "16383"]
          eventually 20 "it serves its slots" $ (/= Failed "CLUSTERDOWN The cluster is down") <$> Server.withServerConnection server (`request` ["SET", "key", "x"])
        Server.withServerConnection server $ \observer ->
          withClient (setProtocol protocol (setMaxDedicated 1 (setClientName (Just "worker") (addressed server)))) $ \client -> do
            kept <- newIORef (0 :: Int)
            result <-
              quickCheckWithResult stdArgs {maxSuccess = 150, chatty = False} . forAllShrink history (shrinkList (const [])) $
                ioProperty . trial (Setting observer client protocol) kept
            case result of
              Success {} -> pure ()
              failed -> expectationFailure (output failed)
            -- Otherwise the property has shown nothing.
            readIORef kept >>= (`shouldSatisfy` (>= 20))
  where
    servers =
      [ ("a server alone", serverDefaults {optionsUsers = [other]}),
        ("a node of a cluster", serverDefaults {optionsUsers = [other], optionsCluster = True})
      ]
    other = AclUser {aclName = "other", aclPassword = "secret", aclRules = "~* &* +@all"}

-- | The surroundings in which the property runs.
data Setting = Setting
  { -- | A connection that asks the server about other connections.
    settingObserver :: Connection,
    settingClient :: Client,
    settingProtocol :: ProtocolVersion
  }

-- | Runs the commands on a dedicated connection. If that connection is lent again, the server must
-- report it as the handshake left it, and it must behave like such a connection.
trial :: Setting -> IORef Int -> [[ByteString]] -> IO Property
trial Setting {settingObserver, settingClient, settingProtocol} kept said = do
  before <- withDedicated settingClient AnyPrimary $ \own -> do
    identity <- runOn own Commands.clientId
    described <- describe' identity
    started <- mapM (submitOn own . raw) said
    mapM_ tryAwaitReply started
    pure (identity, described)
  withDedicated settingClient AnyPrimary $ \own -> do
    identity <- runOn own Commands.clientId
    if identity /= fst before
      then pure (property True)
      else do
        modifyIORef' kept (+ 1)
        described <- describe' identity
        -- Servers before 7.4 do not report which keys are watched.
        for_ watchable $ \key -> requestOk settingObserver ["SET", key, "changed"]
        transaction <- mapM (fmap snd . attempted own) [["MULTI"], ["ECHO", "x"], ["EXEC"]]
        speaks <- attempted own ["DEBUG", "PROTOCOL", "map"]
        pure . counterexample (show (before, described, transaction, speaks)) . property $
          described == snd before
            && drop 2 transaction == [Right (Array [BulkString "x"])]
            && speaksAs (snd speaks)
  where
    attempted own words' = (,) words' <$> tryRunOn own (raw words')
    describe' identity =
      request settingObserver ["CLIENT", "LIST", "ID", Char8.pack (show identity)] >>= \case
        Text line -> pure (filter ((`elem` telling) . fst) (map (outside . field) (Char8.words line)))
        other -> failure (show other)
    field = fmap (Char8.drop 1) . Char8.break (== '=')
    -- After a transaction, Valkey's number of queued commands stays 0; the flags tell the
    -- difference.
    outside = \case
      ("multi", "-1") -> ("multi", "0")
      other -> other
    telling = ["name", "flags", "db", "sub", "psub", "ssub", "multi", "watch", "user", "redir", "resp"]
    speaksAs = \case
      Right (Map _) -> settingProtocol == PreferResp3
      Right (Array _) -> settingProtocol == OnlyResp2
      _ -> False

watchable :: [ByteString]
watchable = ["key", "other"]

-- | Some commands, often together with commands that undo them.
history :: Gen [[ByteString]]
history = do
  count <- chooseInt (1, 4)
  concat <$> vectorOf count (frequency [(3, elements phrases), (2, (: []) <$> elements alphabet), (1, changingCase <$> elements alphabet)])
  where
    changingCase words' = [map' words']
    map' = \case
      name : rest -> Char8.map toLower name : rest
      [] -> []

-- | Sequences that leave nothing behind, unless they are mixed with others.
phrases :: [[[ByteString]]]
phrases =
  [ [["WATCH", "key"], ["UNWATCH"]],
    [["WATCH", "key"], ["MULTI"], ["SET", "key", "x"], ["EXEC"]],
    [["WATCH", "key"], ["SET", "key", "y"], ["MULTI"], ["GET", "key"], ["EXEC"]],
    [["MULTI"], ["WATCH", "other"], ["EXEC"]],
    [["MULTI"], ["GET"], ["EXEC"]],
    [["MULTI"], ["MULTI"], ["DISCARD"]],
    [["MULTI"], ["CLIENT", "SETNAME", "other"], ["CLIENT", "SETNAME", "worker"], ["EXEC"]],
    [["MULTI"], ["SELECT", "3"], ["INCR", "list"], ["SELECT", "0"], ["EXEC"]],
    [["MULTI"], ["SELECT", "3"], ["DISCARD"]],
    [["MULTI"], ["SELECT", "3"], ["EXEC"]],
    [["SELECT", "3"], ["MULTI"], ["SELECT", "0"], ["EXEC"]],
    [["MULTI"], ["CLIENT", "SETNAME", "other"], ["EXEC"]],
    [["AUTH", "other", "secret"]],
    [["READONLY"]],
    [["SUBSCRIBE", "news"]],
    [["SUBSCRIBE", "news"], ["UNSUBSCRIBE", "news"]],
    [["SELECT", "3"], ["SELECT", "0"]],
    [["SELECT", "3"], ["SELECT", "5000"], ["SELECT", "0"]],
    [["CLIENT", "SETNAME", "other"], ["CLIENT", "SETNAME", "worker"]],
    [["CLIENT", "NO-EVICT", "ON"], ["CLIENT", "NO-EVICT", "OFF"]],
    [["CLIENT", "TRACKING", "ON"], ["CLIENT", "TRACKING", "OFF"]],
    [["READONLY"], ["READWRITE"]],
    [["ASKING"], ["GET", "key"]],
    [["ASKING"], ["MULTI"], ["EXEC"]]
  ]

alphabet :: [[ByteString]]
alphabet =
  [ ["GET", "key"],
    ["SET", "key", "z"],
    ["LPUSH", "key", "wrong"],
    ["GET"],
    ["NO.SUCH"],
    ["EVAL", "return redis.call('SELECT', '3')", "0"],
    ["EVAL", "redis.setresp(3) return 1", "0"],
    ["MULTI"],
    ["EXEC"],
    ["DISCARD"],
    ["WATCH", "key"],
    ["WATCH", "key", "other"],
    ["WATCH"],
    ["UNWATCH"],
    ["SELECT", "0"],
    ["SELECT", "3"],
    ["SELECT", "5000"],
    ["SUBSCRIBE", "news"],
    ["PSUBSCRIBE", "n*"],
    ["SSUBSCRIBE", "news"],
    ["UNSUBSCRIBE", "news"],
    ["CLIENT", "REPLY", "ON"],
    ["CLIENT", "REPLY", "OFF"],
    ["CLIENT", "REPLY", "SKIP"],
    ["CLIENT", "SETNAME", "other"],
    ["CLIENT", "SETNAME", "worker"],
    ["CLIENT", "SETNAME", "bad name"],
    ["CLIENT", "NO-EVICT", "ON"],
    ["CLIENT", "NO-EVICT", "OFF"],
    ["CLIENT", "TRACKING", "ON", "BCAST"],
    ["CLIENT", "TRACKING", "ON", "OPTIN"],
    ["CLIENT", "TRACKING", "OFF"],
    ["CLIENT", "CACHING", "YES"],
    ["AUTH", "other", "secret"],
    ["AUTH", "other", "wrong"],
    ["HELLO"],
    ["HELLO", "2"],
    ["HELLO", "3"],
    ["HELLO", "9"],
    ["RESET"],
    ["READONLY"],
    ["READWRITE"],
    ["ASKING"],
    ["MONITOR"],
    ["QUIT"],
    ["WAIT", "0", "1"]
  ]
