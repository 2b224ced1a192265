module Redis.TestKit.GroupSpec (spec) where

import Redis.TestKit.Certificates
import Redis.TestKit.Command
import Redis.TestKit.Group
import Redis.TestKit.Server
import Redis.TestKit.Wait
import Test.Hspec hiding (after, before)

spec :: Spec
spec = do
  it "starts a primary whose replicas have what is written" $
    withGroup groupDefaults $ \group -> do
      primary <- primaryOf group
      serverPort primary `shouldBe` serverPort (head' (groupServers group))
      command primary ["SET", "key", "value"] `shouldReturn` Status "OK"
      replicas <- replicasOf group
      length replicas `shouldBe` 2
      mapM_ (\replica -> eventuallyReturns 5 (Text "value") (command replica ["GET", "key"])) replicas

  it "makes a replica the primary" $
    withGroup groupDefaults $ \group -> do
      replicas <- replicasOf group
      let chosen = head' replicas
      promote group chosen
      serverPort <$> primaryOf group `shouldReturn` serverPort chosen
      length <$> replicasOf group `shouldReturn` 2

  it "has sentinels that fail over when the primary is killed" $
    withGroup groupDefaults {groupSentinelCount = 3} $ \group -> do
      primary <- primaryOf group
      kill9 primary
      awaitPrimary group (Just (serverPort primary))
      sentinels <- groupSentinels group
      epochs <- mapM (configEpoch group) sentinels
      epochs `shouldSatisfy` all (> Just 0)

  it "fails over when the primary is killed though it has one sentinel only" $
    withGroup groupDefaults {groupSentinelCount = 1} $ \group -> do
      primary <- primaryOf group
      kill9 primary
      awaitPrimary group (Just (serverPort primary))

  it "takes no silence for a new primary when it has no sentinel" $
    withGroup groupDefaults {groupReplicaCount = 0, groupTimeout = 1} $ \group ->
      awaitPrimary group (Just 1) `shouldThrow` \(_ :: TestKitFailure) -> True

  it "has sentinels that fail over on demand, by TLS and with passwords" $
    withCertificates $ \certificates -> do
      let secured =
            serverDefaults
              { optionsPassword = Just "secret",
                optionsTls =
                  Just
                    TlsOptions
                      { tlsKeyPair = certificatesServer certificates,
                        tlsAuthority = certificatesAuthority certificates,
                        tlsClients = ClientCertificatesIgnored
                      }
              }
      withGroup groupDefaults {groupSentinelCount = 3, groupServer = secured, groupSentinel = secured {optionsPassword = Just "other"}} $ \group -> do
        before <- primaryOf group
        orderFailover group
        awaitReplicas group
        after <- primaryOf group
        serverPort after `shouldNotBe` serverPort before
  where
    head' = \case
      first : _ -> first
      [] -> error "no server"
