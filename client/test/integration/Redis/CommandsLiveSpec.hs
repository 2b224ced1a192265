-- | Runs every case of "Redis.CommandCases" on a real server, with both protocols, against the same
-- expectation.
module Redis.CommandsLiveSpec (spec) where

import Control.Exception (IOException, try)
import Control.Monad (forM_)
import Data.ByteString (ByteString)
import Data.ByteString qualified as ByteString
import Data.ByteString.Char8 qualified as Char8
import Data.List (isInfixOf, isPrefixOf)
import Data.Map.Strict qualified as Map
import Data.Maybe (catMaybes)
import Redis
import Redis.Command (commandKeys)
import Redis.CommandCase
import Redis.CommandCases
import Redis.Commands (clientId, get, set)
import Redis.Decode qualified as Decode
import Redis.Internal.Protocol.CommandTable (CommandEntry (entryName), lookupCommand)
import Redis.TestKit.Command (Connection, Reply (..), infoFields, replyText, request)
import Redis.TestKit.Server (Server, ServerOptions (..), serverDefaults, serverHost, serverPort, withServer, withServerConnection)
import Redis.TestKit.Wait (eventuallyReturns, within)
import Test.Hspec

spec :: Spec
spec = do
  it "a reply of another shape than expected is named with its command, and the connection goes on" . within 60 $
    withServer serverDefaults $ \server ->
      withClient (setMuxCount (Just 1) (config PreferResp3 server)) $ \client -> do
        own <- run client clientId
        run client (set "key" "value")
        tryRun client (raw ["GET", "key"] `decodedBy` Decode.list Decode.bytes) >>= \case
          Left (UnexpectedReply problem) ->
            (decodeErrorCommand problem, decodeErrorExpected problem, decodeErrorGot problem) `shouldBe` ("GET key", "an array", "BulkString \"value\"")
          other -> expectationFailure (show other)
        run client (get "key") `shouldReturn` Just "value"
        run client clientId `shouldReturn` own

  describe "every command" $
    forM_ [OnlyResp2, PreferResp3] $ \protocol -> do
      it ("does on a server what it should, with " <> show protocol) . within 120 $ do
        permanent <- withServer serverDefaults $ \server ->
          withServerConnection server $ \bare -> do
            version <- serverVersion bare
            withClient (config protocol server) $ \client ->
              traverse (tried version bare client) (filter (not . endsServer) cases)
        ending <- traverse (ended protocol) (filter endsServer cases)
        -- Reports all failures, not only the first.
        case catMaybes (permanent <> ending) of
          [] -> pure ()
          failures -> expectationFailure (unlines failures)

      it ("does in a cluster what it should, if it has keys, with " <> show protocol) . within 120 $
        withServer serverDefaults {optionsCluster = True} $ \server ->
          withServerConnection server $ \bare -> do
            _ <- request bare ("CLUSTER" : "ADDSLOTS" : map (Char8.pack . show) [0 .. 16383 :: Int])
            eventuallyReturns 10 True (serves bare)
            version <- serverVersion bare
            withClient (clusterOf protocol server) $ \client -> do
              length (filter keyed cases) `shouldSatisfy` (> 400)
              judged <- traverse (tried version bare client) (filter keyed cases)
              case filter (not . hasNone) (catMaybes judged) of
                [] -> pure ()
                failures -> expectationFailure (unlines failures)
  where
    -- A cluster has one database, and no keys by pattern; the server refuses these commands with
    -- that reason.
    hasNone failure = any (`isPrefixOf` failure) ["copyWith,", "move", "sort"] && any (`isInfixOf` failure) ["luster mode", "DB index is out of range"]

    serves bare = maybe False ("cluster_state:ok" `ByteString.isInfixOf`) . replyText <$> request bare ["CLUSTER", "INFO"]

-- | Whether the command goes where its keys are. The cases of the cluster commands are left out:
-- they expect the replies of a server that is not in a cluster.
keyed :: Case -> Bool
keyed Case {caseName, caseCommand, caseLent} =
  not caseLent && not (null (commandKeys caseCommand)) && not ("cluster" `isPrefixOf` caseName)

clusterOf :: ProtocolVersion -> Server -> Config
clusterOf protocol server =
  setProtocol protocol (clusterConfig (TcpEndpoint (Char8.pack (serverHost server)) (fromIntegral (serverPort server)) :| []))

config :: ProtocolVersion -> Server -> Config
config protocol server =
  setProtocol protocol (standaloneConfig (Char8.pack (serverHost server)) (fromIntegral (serverPort server)))

-- | Runs a case that ends its server, on a server of its own. Returns what is wrong.
ended :: ProtocolVersion -> Case -> IO (Maybe String)
ended protocol one@Case {caseCommand, caseNeeds} =
  withServer serverDefaults $ \server -> do
    version <- withServerConnection server serverVersion
    outcome <- withClient (config protocol server) (`tryRun` caseCommand)
    after' <- try (withServerConnection server (`request` ["PING"]))
    pure $ case (fits version caseNeeds, outcome, after') of
      -- The server sends nothing and is gone.
      (True, Left (ConnectionError {}), Left (_ :: IOException)) -> Nothing
      (False, Left (ReplyError _), Right _) -> Nothing
      (_, got, Left _) -> Just (wrong one ("it said " <> show got))
      (_, got, Right _) -> Just (wrong one ("the server is still there, and said " <> show got))

endsServer :: Case -> Bool
endsServer Case {caseOutcome} = case caseOutcome of
  EndsServer -> True
  _ -> False

-- | Runs a case and returns what is wrong with the outcome.
tried :: (Family, Version) -> Connection -> Client -> Case -> IO (Maybe String)
tried version bare client one@Case {caseCommand, caseWords, caseGiven, caseOutcome, caseNeeds, caseLent} = do
  forM_ ([["FLUSHALL"], ["FUNCTION", "FLUSH"], ["SCRIPT", "FLUSH"]] <> caseGiven) $ \given ->
    request bare given
  known <- isKnown bare caseWords
  outcome <- if caseLent then withDedicated client AnyPrimary (`tryRunOn` caseCommand) else tryRun client caseCommand
  pure . fmap (wrong one) $ case (known && fits version caseNeeds, outcome, caseOutcome) of
    (_, Left (RefusedError (UnfitArgument _ _)), Unfit) -> Nothing
    -- A server that is too old must refuse the command; nothing else excuses a failure.
    (False, Left (ReplyError _), _) -> Nothing
    (False, other, _) -> Just ("a server too old for it takes it: " <> show other)
    (True, Right got, Gives expected) | got == expected -> Nothing
    (True, Right got, Such _ holds) | holds got -> Nothing
    (True, Left (ReplyError ServerError {serverErrorCode}), Fails code) | serverErrorCode == code -> Nothing
    (True, got, Gives expected) -> Just ("expected " <> show expected <> ", got " <> show got)
    (True, got, Such sentence _) -> Just ("expected what " <> sentence <> ", got " <> show got)
    (True, got, Fails code) -> Just ("expected an error " <> show code <> ", got " <> show got)
    (True, got, Unfit) -> Just ("it should be refused here, and said " <> show got)
    (True, got, EndsServer) -> Just ("it should end the server, and said " <> show got)

wrong :: Case -> String -> String
wrong Case {caseName, caseWords} why = caseName <> ", " <> Char8.unpack (Char8.unwords caseWords) <> ": " <> why

fits :: (Family, Version) -> Needs -> Bool
fits (family, version) = \case
  TheCommand -> True
  AtLeast versions -> maybe False (version >=) (lookup family versions)

-- | Whether the server has the command, including the subcommand.
isKnown :: Connection -> [ByteString] -> IO Bool
isKnown bare words' = do
  described <- request bare ["COMMAND", "INFO", maybe "" entryName (lookupCommand words')]
  pure $ case described of
    List [List (_ : _)] -> True
    _ -> False

serverVersion :: Connection -> IO (Family, Version)
serverVersion bare = do
  fields <- maybe mempty infoFields . replyText <$> request bare ["INFO", "server"]
  let said name = Map.lookup name fields >>= versionOf
  case (said "valkey_version", said "redis_version") of
    (Just version, _) -> pure (IsValkey, version)
    (Nothing, Just version) -> pure (IsRedis, version)
    (Nothing, Nothing) -> fail "a server that does not say its version"

versionOf :: ByteString -> Maybe Version
versionOf text = do
  (major, rest) <- Char8.readInt text
  (minor, _) <- Char8.readInt (Char8.drop 1 rest)
  pure (major, minor)
