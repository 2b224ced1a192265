-- | The processes that this one has started, and those that they have started (Linux).
module Redis.TestKit.Descendants
  ( descendants,
  )
where

import Control.Exception (IOException, try)
import Data.ByteString.Char8 (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Data.Char (isDigit)
import Data.Maybe (catMaybes)
import System.Directory (listDirectory)
import System.FilePath ((</>))
import System.Posix.Process (getProcessID)

data Entry = Entry
  { entryId :: ByteString,
    entryParent :: ByteString,
    entryState :: ByteString,
    -- | The kernel's function that it waits in.
    entryWaitsIn :: ByteString,
    entryCommand :: ByteString
  }

-- | One line for each: its number, its state as in @ps@, what it waits for in the kernel, and its
-- command line. A process is indented below its parent. \(O(n m)\) for \(m\) of the machine's
-- \(n\) processes. Empty where there is no @\/proc@.
descendants :: IO [String]
descendants = do
  self <- Char8.pack . show <$> getProcessID
  names <- either none (filter (all isDigit)) <$> try (listDirectory "/proc")
  entries <- catMaybes <$> traverse readEntry names
  let below indent parent =
        concat
          [ (indent <> line entry) : below ("  " <> indent) (entryId entry)
            | entry <- entries,
              entryParent entry == parent
          ]
  pure (below "" self)
  where
    none :: IOException -> [String]
    none _ = []
    line entry = Char8.unpack (Char8.unwords [entryId entry, entryState entry, entryWaitsIn entry, entryCommand entry])

-- Nothing if the process has ended meanwhile.
readEntry :: String -> IO (Maybe Entry)
readEntry name = do
  found <- try @IOException $ (,,) <$> part "stat" <*> part "wchan" <*> part "cmdline"
  pure $ case found of
    -- The program's name, in parentheses, may have blanks.
    Right (status, waitsIn, command)
      | state : parent : _ <- Char8.words (snd (Char8.breakEnd (== ')') status)) ->
        Just (Entry (Char8.pack name) parent state waitsIn (Char8.map (\character -> if character == '\0' then ' ' else character) command))
    _ -> Nothing
  where
    part = Char8.readFile . (\file -> "/proc" </> name </> file)
