-- | Certificates, made with the @openssl@ program in a folder.
module Certificates
  ( Issuer,
    Certificate (..),
    authority,
    selfSigned,
    issue,
    Validity (..),
    issuerFile,
  )
where

import Control.Monad (unless)
import System.Directory (createDirectory, removePathForcibly)
import System.Exit (ExitCode (ExitSuccess))
import System.FilePath ((<.>), (</>))
import System.Process (readProcessWithExitCode)

-- | PEM files.
data Certificate = Certificate
  { certificateFile :: FilePath,
    certificateKey :: FilePath
  }

-- | A certificate that signs others.
newtype Issuer = Issuer Certificate

-- | The file to trust.
issuerFile :: Issuer -> FilePath
issuerFile (Issuer certificate) = certificateFile certificate

data Validity = Valid | Expired

-- | A new authority in a folder, by a name.
authority :: FilePath -> String -> IO Issuer
authority folder name = Issuer <$> selfSigned folder name "DNS:authority.test"

-- | A certificate that signed itself, for subject alternative names.
selfSigned :: FilePath -> String -> String -> IO Certificate
selfSigned folder name names = do
  openssl (["req", "-x509", "-days", "2", "-addext", "subjectAltName=" <> names, "-out", file] <> fresh folder name)
  pure (Certificate file (keyOf folder name))
  where
    file = folder </> name <.> "pem"

-- | A certificate of an authority, for subject alternative names such as
-- @DNS:redis.test,IP:127.0.0.1@. By @openssl ca@, with all the files it wants:
-- the simpler @openssl x509@ has no way to make an expired certificate that all
-- its versions have.
issue :: FilePath -> Issuer -> String -> Validity -> String -> IO Certificate
issue folder (Issuer by) name validity names = do
  createDirectory work
  openssl (["req", "-new", "-out", request] <> fresh folder name)
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
        "subjectAltName = " <> names
      ]
  openssl $
    ["ca", "-batch", "-notext", "-config", settings, "-in", request, "-out", file]
      <> ["-cert", certificateFile by, "-keyfile", certificateKey by]
      <> case validity of
        Valid -> ["-days", "2"]
        Expired -> ["-startdate", "20200101000000Z", "-enddate", "20200102000000Z"]
  removePathForcibly work
  pure (Certificate file (keyOf folder name))
  where
    file = folder </> name <.> "pem"
    work = folder </> name <.> "work"
    request = work </> "request"
    database = work </> "database"
    settings = work </> "settings"

fresh :: FilePath -> String -> [String]
fresh folder name =
  ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=" <> name, "-keyout", keyOf folder name]

keyOf :: FilePath -> String -> FilePath
keyOf folder name = folder </> name <.> "key"

openssl :: [String] -> IO ()
openssl arguments = do
  (code, _, complaint) <- readProcessWithExitCode "openssl" arguments ""
  unless (code == ExitSuccess) (fail (unwords ("openssl" : arguments) <> ": " <> complaint))
