-- | Walks on a real server without faults or changes.
module Redis.ScanLiveSpec (spec) where

import Control.Exception (try)
import Control.Monad (forM_)
import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Data.List (sort)
import Data.Map.Strict qualified as Map
import Redis
import Redis.Commands qualified as Redis
import Redis.Scan
import Redis.TestKit.Command (CommandCalls (..))
import Redis.TestKit.Server (Server, command, commandStatistics, serverDefaults, serverHost, serverPort, withServer)
import Redis.TestKit.Wait (within)
import Test.Hspec

spec :: Spec
spec = around_ (within 60) . describe "walks" $ do
  forM_ [OnlyResp2, PreferResp3] $ \protocol -> describe ("with " <> show protocol) $ do
    it "tell all keys, and those that the options name" $
      withClientOf protocol $ \_ client -> do
        foldScan client Redis.scanDefaults count 0 `shouldReturn` 0
        forM_ (numbered "user:" 2500) $ \key -> submit client (Redis.set key "v")
        forM_ (numbered "list:" 10) $ \key -> run client (raw ["RPUSH", key, "v"])
        foldScan client Redis.scanDefaults count 0 `shouldReturn` 2510
        foldScan client Redis.scanDefaults {Redis.scanMatch = Just "user:1*"} count 0 `shouldReturn` length (filter ("user:1" `Char8.isPrefixOf`) (numbered "user:" 2500))
        listed <- foldScan client Redis.scanDefaults {Redis.scanType = Just Redis.ListKey, Redis.scanCount = Just 7} collect []
        sort listed `shouldBe` sort (numbered "list:" 10)

    it "tell what a hash, a set and a sorted set hold, small and large" $
      withClientOf protocol $ \_ client -> do
        forM_ [10, 3000] $ \size -> do
          let names = numbered "n" size
          forM_ (zip names [1 :: Int ..]) $ \(name, n) -> do
            _ <- submit client (raw ["HSET", "hash", name, Char8.pack (show n)])
            _ <- submit client (raw ["SADD", "set", name])
            submit client (raw ["ZADD", "sorted", Char8.pack (show n), name])
          hash <- foldHscan client Redis.hscanDefaults "hash" collect []
          Map.fromList hash `shouldBe` Map.fromList (zip names (map (Char8.pack . show) [1 .. size]))
          members <- foldSscan client Redis.sscanDefaults "set" collect []
          sort members `shouldBe` sort names
          scored <- foldZscan client Redis.zscanDefaults "sorted" collect []
          Map.fromList scored `shouldBe` Map.fromList (zip names (map fromIntegral [1 .. size]))

    it "over what is not there are empty" $
      withClientOf protocol $ \_ client -> do
        foldHscan client Redis.hscanDefaults "none" collect [] `shouldReturn` []
        foldZscan client Redis.zscanDefaults "none" collect [] `shouldReturn` []

  it "over what comes with the first page cost one command" $
    withClientOf PreferResp3 $ \server client -> do
      _ <- run client (raw ["SADD", "set", "a", "b"])
      sort <$> foldSscan client Redis.sscanDefaults "set" collect [] `shouldReturn` ["a", "b"]
      statistics <- commandStatistics server
      fmap callsRun (Map.lookup "sscan" statistics) `shouldBe` Just 1
      -- INFO is the library's own command.
      fmap callsRun (Map.lookup "info" statistics) `shouldSatisfy` maybe True (<= 1)

  it "go on from a position, and begin at one of another walk" $
    withClientOf PreferResp3 $ \_ client -> do
      forM_ (numbered "key" 1000) $ \key -> submit client (Redis.set key "v")
      let small = Redis.scanDefaults {Redis.scanCount = Just 50}
          left options = walkScan options client small >>= \walk -> foldWalk walk count 0
      walk <- walkScan walkDefaults client small
      first <- sequence [maybe 0 length <$> nextPage walk | _ <- [1 :: Int .. 8]]
      stood <- walkPosition walk
      rest <- left walkDefaults {walkFrom = Just stood}
      sum first + rest `shouldBe` 1000
      other <- walkSscan walkDefaults client Redis.sscanDefaults "set" >>= walkPosition
      left walkDefaults {walkFrom = Just other} `shouldReturn` 1000
      -- At the end nothing is left, however often the caller asks.
      _ <- foldWalk walk count 0
      end <- walkPosition walk
      nextPage walk `shouldReturn` Nothing
      left walkDefaults {walkFrom = Just end} `shouldReturn` 0

  it "need not be allowed to run INFO, and must be allowed to run SCAN" $
    withClientOf PreferResp3 $ \server client -> do
      run client (Redis.set "key" "v")
      _ <- command server ["ACL", "SETUSER", "walker", "on", "nopass", "~*", "+@all", "-info"]
      _ <- command server ["ACL", "SETUSER", "nobody", "on", "nopass", "~*", "+@all", "-scan"]
      let as user = setCredentials (Just Credentials {credentialsUser = Just user, credentialsPassword = toSecret "x"}) (configOf PreferResp3 server)
      withClient (as "walker") $ \walker -> foldScan walker Redis.scanDefaults count 0 `shouldReturn` 1
      withClient (as "nobody") $ \nobody -> do
        refused <- try (foldScan nobody Redis.scanDefaults count 0)
        either codeOf (const "none") refused `shouldBe` "NOPERM"

  it "that were refused go on where they were, when that is allowed" $
    withClientOf PreferResp3 $ \server client -> do
      run client (Redis.set "key" "v")
      forM_ (numbered "n" 3000) $ \name -> submit client (raw ["SADD", "set", name])
      run client (Redis.scard "set") `shouldReturn` 3000
      _ <- command server ["ACL", "SETUSER", "walker", "on", "nopass", "~*", "+@all", "-scan"]
      let config = setCredentials (Just Credentials {credentialsUser = Just "walker", credentialsPassword = toSecret "x"}) (configOf PreferResp3 server)
      withClient config $ \walker -> do
        overKeys <- walkScan walkDefaults walker Redis.scanDefaults
        refused <- try (foldWalk overKeys count 0)
        either codeOf (const "none") refused `shouldBe` "NOPERM"
        _ <- command server ["ACL", "SETUSER", "walker", "+scan"]
        foldWalk overKeys count 0 `shouldReturn` 2
        overMembers <- walkSscan walkDefaults walker Redis.sscanDefaults {Redis.sscanCount = Just 50} "set"
        _ <- nextPage overMembers
        _ <- command server ["ACL", "SETUSER", "walker", "-sscan"]
        -- The page after the next one is not requested yet.
        refusedToo <- try (foldWalk overMembers count 0)
        either codeOf (const "none") refusedToo `shouldBe` "NOPERM"
        _ <- command server ["ACL", "SETUSER", "walker", "+sscan"]
        foldWalk overMembers count 0 >>= (`shouldSatisfy` (> 2000))

  it "without any time limit go to their end, if nothing fails" $
    withClientOf PreferResp3 $ \_ client -> do
      run client (Redis.set "key" "v")
      walk <- walkScan walkDefaults {walkTimeout = mempty} client Redis.scanDefaults
      foldWalk walk count 0 `shouldReturn` 1
  where
    count counted _ = pure (counted + 1 :: Int)
    collect found one = pure (one : found)
    codeOf = \case
      ReplyError problem -> serverErrorCode problem
      _ -> "another"

numbered :: ByteString -> Int -> [ByteString]
numbered prefix total = [prefix <> Char8.pack (show n) | n <- [1 .. total]]

withClientOf :: ProtocolVersion -> (Server -> Client -> IO a) -> IO a
withClientOf protocol action =
  withServer serverDefaults $ \server -> withClient (configOf protocol server) (action server)

configOf :: ProtocolVersion -> Server -> Config
configOf protocol server = setProtocol protocol (standaloneConfig (Char8.pack (serverHost server)) (fromIntegral (serverPort server)))
