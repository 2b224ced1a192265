-- | The SQL statements that both services share, by name.
--
-- A block begins with a line @-- name: NAME@ and ends where the next one begins; other comment
-- lines are skipped.
module Rest.Statements
  ( Statements,
    parseStatements,
    loadStatements,
    statement,
  )
where

import Control.Exception (throwIO)
import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Data.List qualified as List
import Data.Map.Strict (Map)
import Data.Map.Strict qualified as Map

-- | SQL text by name.
newtype Statements = Statements (Map ByteString ByteString)

-- | Splits the text of a file. \(O(n)\).
parseStatements :: ByteString -> Statements
parseStatements text = Statements (snd (List.foldl' add ("", Map.empty) (Char8.lines text)))
  where
    add (name, blocks) line
      | Just new <- Char8.stripPrefix "-- name: " line = (new, blocks)
      | "--" `Char8.isPrefixOf` line = (name, blocks)
      | otherwise = (name, Map.insertWith (flip (<>)) name (line <> "\n") blocks)

-- | Reads the file. Throws 'IOError' if it cannot be read.
loadStatements :: FilePath -> IO Statements
loadStatements path = parseStatements <$> Char8.readFile path

-- | The SQL with this name. Throws 'IOError' if the file has none.
statement :: Statements -> ByteString -> IO ByteString
statement (Statements blocks) name =
  maybe (throwIO (userError ("no SQL is named " <> Char8.unpack name))) pure (Map.lookup name blocks)
