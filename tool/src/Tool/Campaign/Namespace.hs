-- | A network namespace, joined to the machine's own by a pair of virtual interfaces that the
-- kernel delays (netem): each end gets half of the round trip, and the loopback is never touched.
-- Needs the rights to administer networks.
module Tool.Campaign.Namespace
  ( Namespace,
    namespaceHost,
    namespaceWrapper,
    withNamespace,
    withNamespaceBy,
    netemProblem,
  )
where

import Control.Exception (IOException, bracket, try)
import Control.Monad (unless, void)
import Data.Bits (shiftR, (.&.))
import Data.List (intercalate, isInfixOf)
import Redis.TestKit.Folder (withFolder)
import System.Exit (ExitCode (..))
import System.FilePath ((</>))
import System.Posix.Files (setFileMode)
import System.Posix.Process (getProcessID)
import System.Process (readProcessWithExitCode)
import Tool.Failure (unavailable)

-- | A namespace that exists for the length of an action.
data Namespace = Namespace
  { -- | The address at which a server inside listens.
    namespaceHost :: String,
    -- | A program that runs the given program inside: the same process, in another network.
    namespaceWrapper :: FilePath
  }

-- | Why the kernel cannot delay here, in one line. 'Nothing': it can. Changes nothing that others
-- see. Blocks for some milliseconds.
netemProblem :: IO (Maybe String)
netemProblem =
  either Just (const Nothing) <$> run "unshare" (words "--net tc qdisc add dev lo root netem delay 1ms")

-- | Makes a namespace for the length of an action, in which the given program runs by way of
-- 'namespaceWrapper'. Delays each direction by this number of nanoseconds, or not at all. Throws
-- 'Tool.Failure.Failure' if the system does not allow it.
withNamespace :: Maybe Int -> FilePath -> (Namespace -> IO a) -> IO a
withNamespace = withNamespaceBy id

-- | The same, given where the programs of these names are (@ip@ and @tc@).
withNamespaceBy :: (String -> FilePath) -> Maybe Int -> FilePath -> (Namespace -> IO a) -> IO a
withNamespaceBy programAt delay program action = do
  process <- fromIntegral <$> getProcessID
  -- The namespace takes its interface with it, and that one takes the other.
  bracket (claimed (map (`mod` 32768) [process .. process + 63])) (void . deleted) $ \number -> do
    mapM_ required (building number)
    withFolder "redis-client-namespace" $ \folder -> do
      let wrapper = folder </> "enter"
      writeFile wrapper . unlines $
        [ "#!/bin/sh",
          "exec " <> quoted (programAt "ip") <> " netns exec " <> nameOf number <> " " <> quoted program <> " \"$@\""
        ]
      setFileMode wrapper 0o700
      action Namespace {namespaceHost = there number, namespaceWrapper = wrapper}
  where
    -- The address range that is reserved for benchmarks (RFC 2544) has 32768 ranges of four. The
    -- first that is free is taken, from that of the process id on. It is taken while there is a
    -- namespace of its name.
    claimed :: [Int] -> IO Int
    claimed = \case
      [] -> unavailable "network namespace: no range of addresses is free"
      number : others ->
        command ["ip", "netns", "add", nameOf number] >>= \case
          Right () -> pure number
          Left problem
            | "File exists" `isInfixOf` problem -> claimed others
            | otherwise -> unavailable ("network namespace: " <> problem)
    deleted number = command ["ip", "netns", "del", nameOf number]
    nameOf number = "redis-client-" <> show number
    here, there :: Int -> String
    here number = address number 1
    there number = address number 2
    address :: Int -> Int -> String
    address number place =
      intercalate "." $
        "198" :
        map show [18 + bits 14 1, bits 6 255, bits 0 63 * 4 + place]
      where
        bits from mask = (number `shiftR` from) .&. mask
    building number =
      [ ["ip", "link", "add", near, "type", "veth", "peer", "name", far, "netns", name],
        ["ip", "addr", "add", here number <> "/30", "dev", near],
        ["ip", "link", "set", near, "up"],
        ["ip", "-n", name, "addr", "add", there number <> "/30", "dev", far],
        ["ip", "-n", name, "link", "set", far, "up"],
        ["ip", "-n", name, "link", "set", "lo", "up"]
      ]
        <> delayed ["tc", "qdisc", "add", "dev", near]
        <> delayed ["ip", "netns", "exec", name, programAt "tc", "qdisc", "add", "dev", far]
      where
        name = nameOf number
        near = "rcn" <> show number
        far = "rcf" <> show number
    delayed ends =
      [ ends <> ["root", "netem", "delay", show (nanos `div` 1000) <> "us", "limit", "100000"]
        | Just nanos <- [delay]
      ]
    required words' = command words' >>= either (unavailable . ("network namespace: " <>)) pure
    command = \case
      [] -> pure (Right ())
      name : arguments -> run (programAt name) arguments
    quoted text = "'" <> concatMap escaped text <> "'"
    escaped character = if character == '\'' then "'\\''" else [character]

run :: FilePath -> [String] -> IO (Either String ())
run name arguments = do
  outcome <- try (readProcessWithExitCode name arguments "")
  pure $ case outcome of
    Left (_ :: IOException) -> Left (name <> " cannot be run")
    Right (ExitSuccess, _, _) -> Right ()
    Right (ExitFailure _, _, said) -> do
      let line = takeWhile (/= '\n') said
      unless (null line) (Left (name <> ": " <> line))
      Left (name <> " failed")
