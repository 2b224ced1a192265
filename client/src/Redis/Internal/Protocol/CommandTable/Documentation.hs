-- | What servers write about their commands, for people: the replies to
-- @COMMAND DOCS@. No command is run by it, so it is parsed only when it is asked
-- for.
--
-- The generated text has one line per command:
--
-- > HGETDEL hash redis-8.0,valkey-9.1 redis:8.0.0,valkey:9.1.0 O(N) where N is …
--
-- They are name, group, the servers that have it, since which version of each
-- family (@-@ if none of them says), and the complexity, which may be missing.
module Redis.Internal.Protocol.CommandTable.Documentation
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
import Redis.Internal.Protocol.CommandTable.GeneratedDocumentation (documentationText)

-- | Of one command, or one subcommand.
data Documentation = Documentation
  { -- | In capitals, a subcommand's after a bar.
    docName :: ByteString,
    -- | Such as @string@ or @sorted-set@; of a module's, @module@.
    docGroup :: ByteString,
    -- | Those of the servers that the table is made from that have it, such as
    -- @redis-7.0@.
    docServers :: [ByteString],
    -- | The first version that has it, for each family (@redis@, @valkey@) that says
    -- so.
    docSince :: [(ByteString, ByteString)],
    -- | In words. Empty if no server says.
    docComplexity :: ByteString
  }
  deriving stock (Eq, Show)

documentation :: Map ByteString Documentation
documentation =
  Map.fromList [(docName each, each) | each <- mapMaybe parseDocumentation (Char8.lines documentationText)]

-- | What is written about the command of this name, which is in capitals, a
-- subcommand's after a bar. \(O(\log n)\).
lookupDocumentation :: ByteString -> Maybe Documentation
lookupDocumentation name = Map.lookup name documentation

-- | About every command, by name.
allDocumentation :: [Documentation]
allDocumentation = Map.elems documentation

-- | One line of the text; 'Nothing' if it is not written in that way.
parseDocumentation :: ByteString -> Maybe Documentation
parseDocumentation line = case fields 4 line of
  [docName, docGroup, servers, since, docComplexity]
    | any Char8.null [docName, docGroup, servers, since] -> Nothing
    | otherwise -> do
      docSince <- if since == "-" then Just [] else traverse version (Char8.split ',' since)
      pure Documentation {docName, docGroup, docServers = Char8.split ',' servers, docSince, docComplexity}
  _ -> Nothing
  where
    version word = case Char8.split ':' word of
      [family, number] -> Just (family, number)
      _ -> Nothing

-- | So many words, and the rest.
fields :: Int -> ByteString -> [ByteString]
fields count line
  | count == 0 = [line]
  | otherwise = case Char8.break (== ' ') line of
    (word, rest) -> word : fields (count - 1) (Char8.drop 1 rest)
