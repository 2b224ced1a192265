-- | Certificates for tests: good ones, and each of the ways to be bad.
--
-- Made by the @openssl@ program, which every machine with TLS has, instead of
-- a certificate library. Elliptic keys, because they take milliseconds.
module Redis.TestKit.Certificates
  ( Certificates (..),
    KeyPair (..),
    withCertificates,
    createCertificates,

    -- * One by one
    createAuthority,
    createSigned,
    createSelfSigned,
    Validity (..),
  )
where

import Redis.TestKit.Wait (failure)
import System.Directory (createDirectory, removePathForcibly)
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
    -- | For the right hosts, until some years ago.
    certificatesExpired :: KeyPair,
    -- | For the right hosts, but signed by 'certificatesStranger'.
    certificatesUntrusted :: KeyPair,
    -- | For a client, whose common name is @client@.
    certificatesClient :: KeyPair,
    -- | The other authority's certificate.
    certificatesStranger :: FilePath
  }
  deriving stock (Eq, Show)

-- | When a certificate is valid.
data Validity
  = -- | For thirty days from now.
    Current
  | -- | For one day, years ago.
    Past

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
  server <- sign authority "server" ourHosts Current
  wrongHost <- sign authority "wrong-host" "DNS:elsewhere.example" Current
  expired <- sign authority "expired" ourHosts Past
  untrusted <- sign stranger "untrusted" ourHosts Current
  client <- sign authority "client" "DNS:client" Current
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

-- | An authority in an existing folder, by the name that its files get.
createAuthority :: FilePath -> String -> IO KeyPair
createAuthority folder name = createSelfSigned folder name "DNS:authority.example"

-- | A certificate that signed itself, for hosts in the notation of
-- 'createSigned'.
createSelfSigned :: FilePath -> String -> String -> IO KeyPair
createSelfSigned folder name hosts = do
  createKey key
  openssl $
    ["req", "-x509", "-new", "-key", key, "-subj", "/CN=" <> name, "-days", "30", "-out", certificate]
      <> ["-addext", "subjectAltName=" <> hosts]
  pure pair
  where
    pair@(KeyPair certificate key) = keyPairIn folder name

-- | A certificate of an authority, for hosts such as @DNS:redis.test,IP:::1@.
--
-- By @openssl ca@, with all the files it wants: the simpler @openssl x509@ has
-- no way to make an expired certificate that all its versions have.
createSigned :: FilePath -> KeyPair -> String -> String -> Validity -> IO KeyPair
createSigned folder issuer name hosts validity = do
  createKey key
  createDirectory work
  openssl ["req", "-new", "-key", key, "-subj", "/CN=" <> name, "-out", requestFile]
  writeFile database ""
  writeFile settings $
    unlines
      [ "[ca]",
        "default_ca = authority",
        "[authority]",
        "database = " <> database,
        "new_certs_dir = " <> work,
        "rand_serial = yes",
        "default_md = sha256",
        "policy = names",
        "x509_extensions = extensions",
        "[names]",
        "commonName = supplied",
        "[extensions]",
        "subjectAltName = " <> hosts
      ]
  openssl $
    ["ca", "-batch", "-notext", "-config", settings, "-in", requestFile, "-out", certificate]
      <> ["-cert", keyPairCertificate issuer, "-keyfile", keyPairKey issuer]
      <> case validity of
        Current -> ["-days", "30"]
        Past -> ["-startdate", "20200101000000Z", "-enddate", "20200102000000Z"]
  removePathForcibly work
  pure pair
  where
    pair@(KeyPair certificate key) = keyPairIn folder name
    work = folder </> name <.> "work"
    requestFile = work </> "request"
    database = work </> "database"
    settings = work </> "settings"

openssl :: [String] -> IO ()
openssl arguments = do
  (code, _, problem) <- readProcessWithExitCode "openssl" arguments ""
  if code == ExitSuccess
    then pure ()
    else failure ("openssl " <> unwords arguments <> ": " <> problem)
