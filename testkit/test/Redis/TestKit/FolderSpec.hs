module Redis.TestKit.FolderSpec (spec) where

import Control.Concurrent.Async (forConcurrently_)
import Control.Exception (bracket)
import Control.Monad (replicateM_)
import Redis.TestKit.Folder
import System.Directory (doesFileExist, getTemporaryDirectory, listDirectory, removePathForcibly)
import System.FilePath ((</>))
import System.IO.Temp (createTempDirectory)
import Test.Hspec

spec :: Spec
spec =
  it "keeps each folder of threads that make theirs at the same time, and leaves nothing" $ do
    temporary <- getTemporaryDirectory
    bracket (createTempDirectory temporary "folders") removePathForcibly $ \parent -> do
      forConcurrently_ [1 .. 8 :: Int] $ \_ ->
        replicateM_ 200 . bracket (createFolder parent "redis-testkit") removeFolder $ \folder -> do
          let file = folderPath folder </> "held"
          writeFile file ""
          doesFileExist file `shouldReturn` True
      listDirectory parent `shouldReturn` []
