module Main (main) where

import Redis.TestKit.CertificatesSpec qualified as CertificatesSpec
import Redis.TestKit.ClusterSpec qualified as ClusterSpec
import Redis.TestKit.CommandSpec qualified as CommandSpec
import Redis.TestKit.DiskSpec qualified as DiskSpec
import Redis.TestKit.FolderSpec qualified as FolderSpec
import Redis.TestKit.GroupSpec qualified as GroupSpec
import Redis.TestKit.ProxySpec qualified as ProxySpec
import Redis.TestKit.ScriptedSpec qualified as ScriptedSpec
import Redis.TestKit.ServerSpec qualified as ServerSpec
import Redis.TestKit.Wait (testWithin)
import Redis.TestKit.WaitSpec qualified as WaitSpec
import System.Environment (getArgs)
import System.IO (BufferMode (LineBuffering), hSetBuffering, stdout)
import Test.Hspec (around_, describe, hspec)

main :: IO ()
main =
  getArgs >>= \case
    -- The process that "Redis.TestKit.ServerSpec" starts in order to kill it.
    ["--hold-a-server"] -> ServerSpec.holdServer
    _ -> do
      hSetBuffering stdout LineBuffering
      hspec . around_ (testWithin 90) $ do
        describe "Wait" WaitSpec.spec
        describe "Command" CommandSpec.spec
        describe "Certificates" CertificatesSpec.spec
        describe "Folder" FolderSpec.spec
        describe "Server" ServerSpec.spec
        describe "Disk" DiskSpec.spec
        describe "Proxy" ProxySpec.spec
        describe "Scripted" ScriptedSpec.spec
        describe "Cluster" ClusterSpec.spec
        describe "Group" GroupSpec.spec
