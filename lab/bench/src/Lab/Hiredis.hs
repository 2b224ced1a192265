-- | Runs the comparison's programs that use hiredis (@compare/peers/hiredis@) beside ours: what is
-- possible in C. How they are built, started and read is described in
-- @compare/PROTOCOL.md@.
module Lab.Hiredis
  ( HiredisPrograms (..),
    buildHiredis,
    fillForHiredis,
    runHiredis,

    -- * Parts
    hiredisArguments,
    readRow,
    readHiredis,
    hiredisLetters,
    hiredisValue,
  )
where

import Control.Exception (IOException, try)
import Data.Aeson (Value, eitherDecodeStrict', withObject, (.:), (.:?))
import Data.Aeson.Types (Parser, parseEither)
import Data.Bits (shiftR, (.&.))
import Data.ByteString (ByteString)
import Data.ByteString qualified as ByteString
import Data.ByteString.Char8 qualified as Char8
import Data.Map.Strict (Map)
import Data.Map.Strict qualified as Map
import Data.Text (Text)
import Data.Text qualified as Text
import Data.Text.Encoding qualified as Text
import Data.Word (Word64)
import Lab.Gate.Table (HiredisForm (..), HiredisLoad (..), Sample (..))
import Redis.Commands qualified as Commands
import System.Directory (makeAbsolute)
import System.Exit (ExitCode (..))
import System.FilePath ((</>))
import System.Process (CreateProcess (cwd), proc, readCreateProcessWithExitCode)
import Tool.Bench.Itself (pinnedTo)
import Tool.Bench.Preload (runNumbered)
import Tool.Bench.Workload.Random (gamma, mix)
import Tool.Connect (Target, quiet, targetIsCluster, targetPlace, withTarget)
import Tool.Failure (unavailable)
import Tool.Options.Bench (LoadOptions (..), Operation (..), defaultLoad, operationName)

-- | The programs that were built: for each form the program and its leading arguments, to be
-- started in the folder.
data HiredisPrograms = HiredisPrograms
  { hiredisFolder :: FilePath,
    hiredisCommands :: Map HiredisForm [String],
    -- | The version of hiredis.
    hiredisVersion :: Text,
    -- | What is absent, in lines.
    hiredisAbsent :: [Text]
  }
  deriving stock (Eq, Show)

-- | Builds the programs with the folder's @build.sh@, which is quick the second time. Ends the
-- program if even the form 'Loop' is missing.
buildHiredis :: FilePath -> IO HiredisPrograms
buildHiredis given = do
  folder <- makeAbsolute given
  outcome <- try @IOException (readCreateProcessWithExitCode (proc (folder </> "build.sh") []) "")
  output <- case outcome of
    Right (ExitSuccess, output, _) -> pure output
    Right (_, _, problem) -> unavailable (given <> ": build.sh failed: " <> unwords (take 20 (words problem)))
    Left _ -> unavailable (given <> ": there is no build.sh that can be run")
  built <- either (\problem -> unavailable (given <> ": build.sh says what cannot be read: " <> problem)) pure (traverse (readRow . Text.encodeUtf8 . Text.pack) (lines output))
  let programs =
        HiredisPrograms
          { hiredisFolder = folder,
            hiredisCommands = Map.fromList [(form, run) | (form, Right (_, run)) <- built],
            hiredisVersion = Text.intercalate ", " (take 1 [version | (_, Right (version, _)) <- built]),
            hiredisAbsent = [why | (_, Left why) <- built]
          }
  if Map.member Loop (hiredisCommands programs)
    then pure programs
    else unavailable (Text.unpack (Text.intercalate "; " ("the gate needs hiredis" : hiredisAbsent programs)))

-- | Reads a line of @build.sh@: the form, with its version and its command, or the reason why it is
-- absent.
readRow :: ByteString -> Either String (HiredisForm, Either Text (Text, [String]))
readRow line = eitherDecodeStrict' line >>= parseEither row
  where
    row :: Value -> Parser (HiredisForm, Either Text (Text, [String]))
    row = withObject "row" $ \found -> do
      name <- found .: "row"
      form <- case name :: Text of
        "hiredis" -> pure Loop
        "hiredis async" -> pure Async
        _ -> fail ("an unknown row: " <> Text.unpack name)
      found .:? "absent" >>= \case
        Just why -> pure (form, Left why)
        Nothing -> (\version run -> (form, Right (version, run))) <$> found .: "version" <*> found .: "run"

-- Keys of these programs have one digit more than ours, so that both sets fit on one server, each
-- with the values that its program expects.
keySize :: Int
keySize = loadKeySize defaultLoad + 1

-- | Writes the keys that these programs read. Throws the first error.
fillForHiredis :: Target -> IO ()
fillForHiredis target = withTarget quiet target $ \client ->
  runNumbered client (loadKeys defaultLoad) $ \number ->
    Commands.set (key number) (hiredisValue letters number)
  where
    letters = hiredisLetters (loadValueSize defaultLoad)
    key :: Int -> ByteString
    key number = "key:" <> Char8.replicate (keySize - 4 - length (show number)) '0' <> Char8.pack (show number)

-- | The letters that values of this size are slices of.
hiredisLetters :: Int -> ByteString
hiredisLetters size = fst (ByteString.unfoldrN (4096 + size) (\place -> Just (letter place, place + 1)) (0 :: Word64))
  where
    letter place = fromIntegral (97 + (((mix (1 + place * gamma) `shiftR` 32) * 26) `shiftR` 32))

-- | The value of the key with this number.
hiredisValue :: ByteString -> Int -> ByteString
hiredisValue letters number = ByteString.take (ByteString.length letters - 4096) (ByteString.drop (fromIntegral (mix (fromIntegral number) .&. 4095)) letters)

-- | Runs a program for this number of seconds on these cores. Blocks. Ends the program if it cannot
-- be run.
runHiredis :: HiredisPrograms -> HiredisForm -> [Int] -> [String] -> IO Sample
runHiredis programs form cores arguments = do
  command <- maybe (unavailable ("there is no hiredis program: " <> show form)) pure (Map.lookup form (hiredisCommands programs))
  case command of
    [] -> unavailable ("hiredis has no program: " <> show form)
    first : leading -> do
      let (program, words') = pinnedTo cores (hiredisFolder programs </> first) (leading <> arguments)
      outcome <- try @IOException (readCreateProcessWithExitCode (proc program words') {cwd = Just (hiredisFolder programs)} "")
      case outcome of
        Right (ExitSuccess, output, _) -> either (\problem -> unavailable ("hiredis: " <> problem)) pure (readHiredis (Text.encodeUtf8 (Text.pack output)))
        Right (_, _, problem) -> unavailable (unwords (take 20 (words problem)))
        Left problem -> unavailable ("hiredis cannot be run: " <> show problem)

-- | The arguments for a load of this number of seconds.
hiredisArguments :: Target -> Double -> HiredisLoad -> [String]
hiredisArguments target seconds load =
  ["--host", host, "--port", show port]
    <> ["--cluster" | targetIsCluster target]
    <> ["--operation", operationName operation, "--in-flight", show inFlight, "--style", style, "--batch", "64"]
    <> ["--keys", show (loadKeys defaultLoad), "--key-size", show keySize, "--value-size", show (loadValueSize defaultLoad)]
    <> ["--warmup", show (min 0.5 seconds), "--duration", show seconds, "--seed", "1", "--connections", "1", "--json", "-"]
  where
    (host, port) = targetPlace target
    (operation, inFlight, style) = case load of
      HiredisBatches one -> (one, 1024 :: Int, "batch")
      HiredisWaiting callers -> (OperationGet, callers, "wait")
      HiredisClusterBatches -> (OperationGet, 1024, "batch")
      HiredisClusterWaiting -> (OperationGet, 256, "wait")

-- | Reads the output of a program.
readHiredis :: ByteString -> Either String Sample
readHiredis text = eitherDecodeStrict' text >>= parseEither found
  where
    found :: Value -> Parser Sample
    found = withObject "result" $ \whole -> do
      ops <- whole .: "total_ops"
      cpu <- whole .: "cpu_ns"
      rate <- whole .: "ops_per_sec"
      wrong <- traverse (\name -> (,) name <$> whole .: name) ["wrong", "misses", "errors"]
      pure
        Sample
          { sampleOps = rate,
            sampleCpu = cpu / max 1 ops,
            sampleLate = Nothing,
            sampleShare = Nothing,
            sampleProblems =
              ["hiredis counted " <> Text.pack (show count) <> " " <> Text.pack (show name) | (name, count) <- wrong, count /= (0 :: Int)]
                <> ["hiredis did nothing" | ops <= (0 :: Double)]
          }
