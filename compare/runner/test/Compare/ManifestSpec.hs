module Compare.ManifestSpec (spec) where

import Compare.Manifest
import Control.Exception (bracket, bracket_)
import Data.Text qualified as Text
import System.Directory (getTemporaryDirectory, removeFile)
import System.Environment (lookupEnv, setEnv, unsetEnv)
import System.IO (hClose, hPutStr, openTempFile)
import Test.Hspec

spec :: Spec
spec = describe "the manifest" $
  it "has the hash of the server that the environment names" $
    withFile' "abc" $ \path ->
      withVariable "REDIS_TESTKIT_SERVER" path $
        serverHash `shouldReturn` Just (Text.pack "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")
  where
    withFile' content = bracket (temporary content) removeFile
    temporary content = do
      folder <- getTemporaryDirectory
      (path, handle) <- openTempFile folder "server"
      hPutStr handle content
      path <$ hClose handle
    withVariable name value action = do
      old <- lookupEnv name
      bracket_ (setEnv name value) (maybe (unsetEnv name) (setEnv name) old) action
