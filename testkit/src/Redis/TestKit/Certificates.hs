-- | Certificates for tests: good ones, and each of the ways to be bad.
--
-- Made by the @openssl@ program, which every machine with TLS has, instead of
-- a certificate library. Elliptic keys, because they take milliseconds.
module Redis.TestKit.Certificates
  ( Certificates (..),
    KeyPair (..),
    withCertificates,
    createCertificates,
  )
where

import Redis.TestKit.Wait (failure)
import System.Directory (removeFile)
import System.Exit (ExitCode (ExitSuccess))
import System.FilePath ((<.>), (</>))
import System.IO.Temp (withSystemTempDirectory)
import System.Process (readProcessWithExitCode)

-- | The PEM files of a certificate and its private key.
data KeyPair = KeyPair
  { keyPairCertificate :: FilePath,
    keyPairKey :: FilePath
  }
  deriving stock (Eq, Show)

-- | One authority and what it signed, and one that nobody trusts.
data Certificates = Certificates
  { -- | The authority's own certificate, for clients and servers to trust.
    certificatesAuthority :: FilePath,
    -- | For @127.0.0.1@, @::1@ and @localhost@.
    certificatesServer :: KeyPair,
    -- | Valid, but for @elsewhere.example@.
    certificatesWrongHost :: KeyPair,
    -- | For the right hosts, until yesterday.
    certificatesExpired :: KeyPair,
    -- | For the right hosts, but signed by 'certificatesStranger'.
    certificatesUntrusted :: KeyPair,
    -- | For a client, whose common name is @client@.
    certificatesClient :: KeyPair,
    -- | The other authority's certificate.
    certificatesStranger :: FilePath
  }
  deriving stock (Eq, Show)

-- | Certificates in a temporary folder for the length of an action.
withCertificates :: (Certificates -> IO a) -> IO a
withCertificates action =
  withSystemTempDirectory "redis-testkit-tls" $ \folder ->
    createCertificates folder >>= action

-- | Writes all of them to an existing folder. About 0.1 s. Throws
-- 'Redis.TestKit.Wait.TestKitFailure' when @openssl@ is missing or fails.
createCertificates :: FilePath -> IO Certificates
createCertificates folder = do
  authority <- createAuthority folder "authority"
  stranger <- createAuthority folder "stranger"
  let sign = createSigned folder
  server <- sign authority "server" ourHosts 30
  wrongHost <- sign authority "wrong-host" "DNS:elsewhere.example" 30
  expired <- sign authority "expired" ourHosts (-1)
  untrusted <- sign stranger "untrusted" ourHosts 30
  client <- sign authority "client" "DNS:client" 30
  pure
    Certificates
      { certificatesAuthority = keyPairCertificate authority,
        certificatesServer = server,
        certificatesWrongHost = wrongHost,
        certificatesExpired = expired,
        certificatesUntrusted = untrusted,
        certificatesClient = client,
        certificatesStranger = keyPairCertificate stranger
      }
  where
    ourHosts = "IP:127.0.0.1,IP:::1,DNS:localhost"

keyPairIn :: FilePath -> String -> KeyPair
keyPairIn folder name =
  KeyPair
    { keyPairCertificate = folder </> name <.> "crt",
      keyPairKey = folder </> name <.> "key"
    }

createKey :: FilePath -> IO ()
createKey path =
  openssl
    ["genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", path]

createAuthority :: FilePath -> String -> IO KeyPair
createAuthority folder name = do
  createKey key
  openssl
    ["req", "-x509", "-new", "-key", key, "-subj", "/CN=" <> name, "-days", "30", "-out", certificate]
  pure pair
  where
    pair@(KeyPair certificate key) = keyPairIn folder name

createSigned :: FilePath -> KeyPair -> String -> String -> Int -> IO KeyPair
createSigned folder issuer name hosts days = do
  createKey key
  openssl ["req", "-new", "-key", key, "-subj", "/CN=" <> name, "-out", requestFile]
  writeFile extensions ("subjectAltName=" <> hosts <> "\n")
  openssl
    [ "x509",
      "-req",
      "-in",
      requestFile,
      "-CA",
      keyPairCertificate issuer,
      "-CAkey",
      keyPairKey issuer,
      "-CAcreateserial",
      "-days",
      show days,
      "-extfile",
      extensions,
      "-out",
      certificate
    ]
  removeFile requestFile
  removeFile extensions
  pure pair
  where
    pair@(KeyPair certificate key) = keyPairIn folder name
    requestFile = folder </> name <.> "csr"
    extensions = folder </> name <.> "ext"

openssl :: [String] -> IO ()
openssl arguments = do
  (code, _, problem) <- readProcessWithExitCode "openssl" arguments ""
  if code == ExitSuccess
    then pure ()
    else failure ("openssl " <> unwords arguments <> ": " <> problem)
