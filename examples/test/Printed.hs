-- | Running an example and reading what it prints.
module Printed (linesOf, serverUrl, clusterUrl, sentinelUrl) where

import Control.Exception (bracket, finally)
import Data.List (intercalate)
import GHC.IO.Handle (hDuplicate, hDuplicateTo)
import Redis.TestKit.Address
import Redis.TestKit.Cluster
import Redis.TestKit.Group
import Redis.TestKit.Server
import System.Environment (withArgs)
import System.IO
import System.IO.Temp (withSystemTempFile)

serverUrl :: Server -> String
serverUrl server = "redis://" <> serverHost server <> ":" <> show (serverPort server)

clusterUrl :: Cluster -> IO String
clusterUrl cluster = do
  addresses <- clusterAddresses cluster
  pure ("redis+cluster://" <> intercalate "," [host <> ":" <> show port | TcpAddress host port <- take 2 addresses])

sentinelUrl :: Group -> IO String
sentinelUrl group = do
  addresses <- map clientAddress <$> groupSentinels group
  pure ("redis+sentinel://" <> intercalate "," [host <> ":" <> show port | TcpAddress host port <- addresses] <> "/mymaster")

-- | The lines that a program prints when it runs with these arguments.
linesOf :: IO () -> [String] -> IO [String]
linesOf program arguments =
  withSystemTempFile "example" $ \path handle -> do
    hSetEncoding handle utf8
    hFlush stdout
    bracket (hDuplicate stdout) hClose $ \terminal -> do
      hDuplicateTo handle stdout
      withArgs arguments program `finally` (hFlush stdout >> hDuplicateTo terminal stdout)
    hClose handle
    printed <- readFile path
    length printed `seq` pure (lines printed)
