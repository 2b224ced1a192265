module Redis.TestKit.CertificatesSpec (spec) where

import Redis.TestKit.Certificates
import System.Exit (ExitCode (..))
import System.Process (readProcessWithExitCode)
import Test.Hspec

spec :: Spec
spec = aroundAll withCertificates $ do
  it "signs a server certificate for the loopback addresses" $ \certificates -> do
    let server = certificatesServer certificates
    verify certificates ["-verify_ip", "127.0.0.1"] server `shouldReturn` True
    verify certificates ["-verify_ip", "::1"] server `shouldReturn` True
    verify certificates ["-verify_hostname", "localhost"] server `shouldReturn` True

  it "makes one for another host" $ \certificates -> do
    let wrong = certificatesWrongHost certificates
    verify certificates [] wrong `shouldReturn` True
    verify certificates ["-verify_hostname", "localhost"] wrong `shouldReturn` False

  it "makes one that has expired" $ \certificates -> do
    let expired = certificatesExpired certificates
    verify certificates [] expired `shouldReturn` False
    verify certificates ["-no_check_time"] expired `shouldReturn` True

  it "makes one of an authority that nobody trusts" $ \certificates ->
    verify certificates [] (certificatesUntrusted certificates) `shouldReturn` False

  it "makes one for a client" $ \certificates ->
    verify certificates [] (certificatesClient certificates) `shouldReturn` True

verify :: Certificates -> [String] -> KeyPair -> IO Bool
verify certificates options pair = do
  (code, _, _) <-
    readProcessWithExitCode
      "openssl"
      ( ["verify", "-CAfile", certificatesAuthority certificates]
          <> options
          <> [keyPairCertificate pair]
      )
      ""
  pure (code == ExitSuccess)
