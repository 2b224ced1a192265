-- | The words of a command that is sent as one line, as servers split it.
--
-- A client must know them exactly: the words decide what the command does to its connection, and
-- where its keys are.
module Redis.Internal.Protocol.Line
  ( lineWords,
  )
where

import Control.Monad (guard)
import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Data.Char (chr, digitToInt, isHexDigit)
import Data.Maybe (fromMaybe)

-- | The words of a line: blanks separate them, but not within quotes. 'Nothing' if a quote is left
-- open, or if something other than a blank follows a closed one: servers refuse such a line, and
-- close the connection. \(O(n)\).
lineWords :: ByteString -> Maybe [ByteString]
lineWords line
  | Char8.null begin = Just []
  | otherwise = do
    (word, rest) <- firstWord [] begin
    (word :) <$> lineWords rest
  where
    begin = Char8.dropWhile isBlank line

-- | The word with which a text begins, and the rest of the text. Takes the pieces of the word that
-- were read before, the last one first; so do the functions below.
firstWord :: [ByteString] -> ByteString -> Maybe (ByteString, ByteString)
firstWord pieces text = case Char8.uncons rest of
  Just ('"', quoted) -> inDoubleQuotes (piece : pieces) quoted
  Just ('\'', quoted) -> inSingleQuotes (piece : pieces) quoted
  _ -> Just (joined (piece : pieces), rest)
  where
    (piece, rest) = Char8.break (`elem` ("\t\n\r \"'" :: String)) text

inDoubleQuotes :: [ByteString] -> ByteString -> Maybe (ByteString, ByteString)
inDoubleQuotes pieces text = case Char8.uncons rest of
  Just ('"', behind) -> closed (piece : pieces) behind
  Just (_, escape) -> do
    (char, behind) <- escaped escape
    inDoubleQuotes (Char8.singleton char : piece : pieces) behind
  Nothing -> Nothing
  where
    (piece, rest) = Char8.break (`elem` ("\"\\" :: String)) text

-- | Only a quote can be escaped within these.
inSingleQuotes :: [ByteString] -> ByteString -> Maybe (ByteString, ByteString)
inSingleQuotes pieces text = case Char8.uncons rest of
  Just ('\'', behind) -> closed (piece : pieces) behind
  Just (_, behind)
    | Just ('\'', others) <- Char8.uncons behind -> inSingleQuotes ("'" : piece : pieces) others
    | otherwise -> inSingleQuotes ("\\" : piece : pieces) behind
  Nothing -> Nothing
  where
    (piece, rest) = Char8.break (`elem` ("'\\" :: String)) text

-- | The word that a quote closes.
closed :: [ByteString] -> ByteString -> Maybe (ByteString, ByteString)
closed pieces rest
  | maybe True (isBlank . fst) (Char8.uncons rest) = Just (joined pieces, rest)
  | otherwise = Nothing

-- | The character that the text after a backslash stands for, and the rest of the text.
escaped :: ByteString -> Maybe (Char, ByteString)
escaped text = do
  (letter, rest) <- Char8.uncons text
  let (digits, behind) = Char8.splitAt 2 rest
  pure $ case (letter, traverse hexDigit (Char8.unpack digits)) of
    ('x', Just [high, low]) -> (chr (16 * high + low), behind)
    _ -> (fromMaybe letter (lookup letter (zip "abnrt" "\a\b\n\r\t")), rest)
  where
    hexDigit char = digitToInt char <$ guard (isHexDigit char)

-- | A space, a tabulator, or a break of any kind.
isBlank :: Char -> Bool
isBlank char = char == ' ' || char >= '\t' && char <= '\r'

joined :: [ByteString] -> ByteString
joined = Char8.concat . reverse
