-- | The peers, as their @build.sh@ describes them, and their kind: ours, StackExchange.Redis, or
-- the limit.
module Compare.Row
  ( Row (..),
    Absent (..),
    Kind (..),
    rowKind,
    rowCan,
    rowVariables,
    parseRows,
    buildPeers,
    ourName,
    referenceName,
  )
where

import Compare.Cell
import Control.Monad (filterM, forM)
import Data.Aeson (FromJSON (parseJSON), ToJSON (toJSON), eitherDecodeStrict', object, withObject, (.!=), (.:), (.:?), (.=))
import Data.ByteString.Char8 qualified as Char8
import Data.Either (partitionEithers)
import Data.List (isPrefixOf, sort)
import Data.Map.Strict (Map)
import Data.Map.Strict qualified as Map
import Data.Text (Text)
import Data.Text qualified as Text
import System.Directory (doesFileExist, listDirectory)
import System.Exit (ExitCode (..))
import System.FilePath (takeFileName, (</>))
import System.Process (CreateProcess (..), StdStream (..), proc, waitForProcess, withCreateProcess)

-- | A client library in one version, ready to run.
data Row = Row
  { rowName :: Text,
    rowVersion :: Text,
    rowOrigin :: Text,
    rowLanguage :: Text,
    -- | The program and its first arguments.
    rowRun :: [String],
    rowEnvironment :: Map String String,
    -- | The least warm-up that the row needs, in seconds.
    rowWarmup :: Double,
    rowCluster :: Bool,
    rowStyles :: [Style],
    -- | Whether the row only shows what is possible, and is not an alternative to our client.
    rowLimit :: Bool,
    -- | The folder in which it is started.
    rowFolder :: FilePath
  }
  deriving stock (Eq, Show)

-- | A row that is not available, with the reason.
data Absent = Absent
  { absentName :: Text,
    absentWhy :: Text
  }
  deriving stock (Eq, Show)

instance ToJSON Row where
  toJSON row =
    object
      [ "row" .= rowName row,
        "version" .= rowVersion row,
        "origin" .= rowOrigin row,
        "language" .= rowLanguage row,
        "env" .= rowEnvironment row,
        "warmup" .= rowWarmup row,
        "cluster" .= rowCluster row,
        "styles" .= map styleText (rowStyles row),
        "limit" .= rowLimit row
      ]

-- A row that is read from a file has no folder, so it cannot run any more.
instance FromJSON Row where
  parseJSON = withObject "row" $ \row ->
    Row
      <$> row .: "row"
      <*> row .:? "version" .!= ""
      <*> row .:? "origin" .!= ""
      <*> row .:? "language" .!= ""
      <*> row .:? "run" .!= []
      <*> row .:? "env" .!= mempty
      <*> row .:? "warmup" .!= 0
      <*> row .:? "cluster" .!= False
      <*> row .:? "styles" .!= [Wait, Batch]
      <*> row .:? "limit" .!= False
      <*> pure ""

instance ToJSON Absent where
  toJSON absent = object ["row" .= absentName absent, "absent" .= absentWhy absent]

instance FromJSON Absent where
  parseJSON = withObject "row" $ \row -> Absent <$> row .: "row" <*> row .: "absent"

-- | The part that a row plays in the comparison.
data Kind
  = Ours
  | StackExchange
  | Limit
  | Other
  deriving stock (Eq, Show)

-- | The kind of a row, by its name and flag.
rowKind :: Row -> Kind
rowKind row
  | rowName row == ourName = Ours
  | "StackExchange.Redis" `Text.isPrefixOf` rowName row = StackExchange
  | rowLimit row = Limit
  | otherwise = Other

-- | The row of this project's library.
ourName :: Text
ourName = "redis-client"

-- | The row of @redis-benchmark@, which is not a peer.
referenceName :: Text
referenceName = "redis-benchmark"

-- | Whether a row can be measured at a cell.
rowCan :: Cell -> Row -> Bool
rowCan cell row =
  cellStyle cell `elem` rowStyles row && (rowCluster row || not (isCluster (cellPlace cell)))

-- | The environment with which a row is started, from that of this process. Variables that change a
-- runtime are not inherited, so that they cannot change a row unnoticed.
rowVariables :: Row -> [(String, String)] -> [(String, String)]
rowVariables row inherited =
  Map.toList (rowEnvironment row <> Map.filterWithKey (const . harmless) (Map.fromList inherited))
  where
    harmless name =
      name `notElem` ["GHCRTS", "NODE_OPTIONS", "GOGC", "GODEBUG", "GOMAXPROCS", "GOMEMLIMIT"]
        && not (any (`isPrefixOf` name) ["DOTNET_", "COMPlus_"])

-- | Parses the output of a @build.sh@ in this folder; 'Left' quotes a line that is not valid.
parseRows :: FilePath -> Char8.ByteString -> Either String [Either Absent Row]
parseRows folder output = traverse line (filter (not . Char8.null) (map strip (Char8.lines output)))
  where
    strip = Char8.dropWhile (== ' ') . Char8.filter (/= '\r')
    line text = case eitherDecodeStrict' text of
      Right absent -> Right (Left absent)
      Left _ -> case eitherDecodeStrict' text of
        Right row | not (null (rowRun row)) -> Right (Right row {rowFolder = folder})
        Right _ -> Left ("a row that says neither run nor absent: " <> Char8.unpack text)
        Left problem -> Left (problem <> ": " <> Char8.unpack text)

-- | Builds every wanted peer below @compare@, and asks for its rows, one peer after the other. A
-- peer that cannot be built is absent.
buildPeers :: (String -> IO ()) -> (FilePath -> Bool) -> FilePath -> IO ([Absent], [Row])
buildPeers announce wanted compareFolder = do
  names <- sort <$> listDirectory (compareFolder </> "peers")
  folders <- filterM hasBuild . filter wanted $ (compareFolder </> "dotnet" </> "client") : map ((compareFolder </> "peers") </>) names
  found <- forM folders $ \folder -> do
    announce ("building " <> takeFileName folder)
    (status, output) <- build folder
    pure $ case (status, parseRows folder output) of
      (ExitSuccess, Right rows) -> rows
      (ExitSuccess, Left problem) -> [broken folder problem]
      (ExitFailure code, _) -> [broken folder ("build.sh ended with " <> show code)]
  pure (partitionEithers (concat found))
  where
    hasBuild folder = doesFileExist (folder </> "build.sh")
    broken folder why =
      Left Absent {absentName = Text.pack (takeFileName folder), absentWhy = Text.pack why}
    build folder =
      withCreateProcess (proc "./build.sh" []) {cwd = Just folder, std_out = CreatePipe} $ \_ out _ handle -> do
        output <- maybe (pure "") Char8.hGetContents out
        status <- waitForProcess handle
        pure (status, output)
