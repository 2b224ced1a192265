-- | What servers write about their commands, for people: the replies to
-- @COMMAND DOCS@. The library needs none of it; the page of all commands does.
--
-- The generated text has one line per command:
--
-- > HGETDEL hash redis-8.0,valkey-9.1 redis:8.0.0,valkey:9.1.0 FIELDS O(N) where N is …
--
-- The fields are: name, group, the servers that have the command, the first version of each family
-- that has it (@-@ if no server says), the words that its arguments have (@-@ for none), and the
-- complexity, which may be missing.
module Redis.Documentation
  ( Documentation (..),
    lookupDocumentation,
    allDocumentation,
    parseDocumentation,
  )
where

import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Data.Map.Strict (Map)
import Data.Map.Strict qualified as Map
import Data.Maybe (mapMaybe)
import Redis.DocumentationText (documentationText)

-- | The documentation of one command, or one subcommand.
data Documentation = Documentation
  { -- | The name in capitals; a subcommand's name follows a bar.
    docName :: ByteString,
    -- | The group, such as @string@ or @sorted-set@; for a command of a module, @module@.
    docGroup :: ByteString,
    -- | The servers that have the command, of those that the table is made from, such as
    -- @redis-7.0@.
    docServers :: [ByteString],
    -- | The first version that has the command, for each family (@redis@, @valkey@) that says so.
    docSince :: [(ByteString, ByteString)],
    -- | The words of its arguments, such as @COUNT@, of all servers together, in capitals.
    docOptions :: [ByteString],
    -- | The complexity in words. Empty if no server says.
    docComplexity :: ByteString
  }
  deriving stock (Eq, Show)

documentation :: Map ByteString Documentation
documentation =
  Map.fromList [(docName each, each) | each <- mapMaybe parseDocumentation (Char8.lines documentationText)]

-- | The documentation of the command with this name. The name is in capitals; a subcommand's name
-- follows a bar. \(O(\log n)\).
lookupDocumentation :: ByteString -> Maybe Documentation
lookupDocumentation name = Map.lookup name documentation

-- | The documentation of every command, in the order of the names.
allDocumentation :: [Documentation]
allDocumentation = Map.elems documentation

-- | Parses one line of the text; 'Nothing' if it is not of that form.
parseDocumentation :: ByteString -> Maybe Documentation
parseDocumentation line = case fields 5 line of
  [docName, docGroup, servers, since, options, docComplexity]
    | any Char8.null [docName, docGroup, servers, since, options] -> Nothing
    | otherwise -> do
      docSince <- if since == "-" then Just [] else traverse version (Char8.split ',' since)
      pure
        Documentation
          { docName,
            docGroup,
            docServers = Char8.split ',' servers,
            docSince,
            docOptions = if options == "-" then [] else Char8.split ',' options,
            docComplexity
          }
  _ -> Nothing
  where
    version word = case Char8.split ':' word of
      [family, number] -> Just (family, number)
      _ -> Nothing

-- | So many words of a line, and its rest.
fields :: Int -> ByteString -> [ByteString]
fields count line
  | count == 0 = [line]
  | otherwise = case Char8.break (== ' ') line of
    (word, rest) -> word : fields (count - 1) (Char8.drop 1 rest)
