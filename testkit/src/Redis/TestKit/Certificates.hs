-- | Certificates for tests: good ones, and one for each way of being bad.
--
-- Made by the @openssl@ program, which every machine with TLS has, instead of a certificate
-- library. The keys are elliptic because these take only milliseconds to make.
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

import Redis.TestKit.Folder (withFolder)
import Redis.TestKit.Wait (failure)
import System.Directory (createDirectory, removePathForcibly)
import System.Exit (ExitCode (ExitSuccess))
import System.FilePath ((<.>), (</>))
import System.Process (readProcessWithExitCode)

-- | The PEM files of a certificate and its private key.
data KeyPair = KeyPair
  { keyPairCertificate :: FilePath,
    keyPairKey :: FilePath
  }
  deriving stock (Eq, Show)

-- | An authority with its certificates, and a second authority that no party trusts.
data Certificates = Certificates
  { -- | The authority's own certificate, for clients and servers to trust.
    certificatesAuthority :: FilePath,
    -- | A server's, valid for @127.0.0.1@, @::1@ and @localhost@.
    certificatesServer :: KeyPair,
    -- | Valid, but for the host @elsewhere.example@.
    certificatesWrongHost :: KeyPair,
    -- | For the right hosts, but expired some years ago.
    certificatesExpired :: KeyPair,
    -- | For the right hosts, but signed by 'certificatesStranger'.
    certificatesUntrusted :: KeyPair,
    -- | A client's, with the common name @client@.
    certificatesClient :: KeyPair,
    -- | The other authority's certificate.
    certificatesStranger :: FilePath
  }
  deriving stock (Eq, Show)

-- | The time in which a certificate is valid.
data Validity
  = -- | For thirty days from now.
    Current
  | -- | For one day, years ago.
    Past

-- | Certificates in a temporary folder, for the duration of an action.
withCertificates :: (Certificates -> IO a) -> IO a
withCertificates action =
  withFolder "redis-testkit-tls" $ \folder ->
    createCertificates folder >>= action

-- | Writes all certificates to an existing folder. About 0.1 s. Throws
-- 'Redis.TestKit.Wait.TestKitFailure' if @openssl@ is missing or fails.
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

-- | Creates an authority in an existing folder; its files get this name.
createAuthority :: FilePath -> String -> IO KeyPair
createAuthority folder name = createSelfSigned folder name "DNS:authority.example"

-- | Creates a self-signed certificate, for hosts in the notation of 'createSigned'.
createSelfSigned :: FilePath -> String -> String -> IO KeyPair
createSelfSigned folder name hosts = do
  createKey key
  openssl $
    ["req", "-x509", "-new", "-key", key, "-subj", "/CN=" <> name, "-days", "30", "-out", certificate]
      <> ["-addext", "subjectAltName=" <> hosts]
  pure pair
  where
    pair@(KeyPair certificate key) = keyPairIn folder name

-- | Creates a certificate signed by an authority, for hosts such as @DNS:redis.test,IP:::1@.
--
-- It uses @openssl ca@, with all the files that it needs: the simpler @openssl x509@ has no way to
-- make an expired certificate that works in all of its versions.
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
