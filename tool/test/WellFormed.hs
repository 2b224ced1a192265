-- | Whether tags are closed in the reverse order of their opening.
module WellFormed
  ( malformed,
    textOf,
  )
where

import Data.List (isPrefixOf)

-- | The fault in a piece of XML, or of the HTML that this program writes.
malformed :: String -> Maybe String
malformed = go []
  where
    go open = \case
      "" -> case open of
        [] -> Nothing
        name : _ -> Just ("never closed: " <> name)
      rest | "<!DOCTYPE" `isPrefixOf` rest -> go open (drop 1 (dropWhile (/= '>') rest))
      '<' : '/' : rest ->
        let (name, after) = break (== '>') rest
         in case open of
              innermost : others
                | innermost == name -> go others (drop 1 after)
              _ -> Just ("closed without having been opened: " <> name <> " in " <> show (take 3 open))
      '<' : rest ->
        let (tag, after) = break (== '>') rest
            name = takeWhile (/= ' ') tag
         in if '<' `elem` tag || odd (length (filter (== '"') tag))
              then Just ("a broken tag: " <> take 60 tag)
              else go (if name `elem` ["meta", "br", "hr"] then open else name : open) (drop 1 after)
      '&' : rest
        | any (`isPrefixOf` rest) ["lt;", "gt;", "amp;", "quot;", "#39;"] -> go open rest
        | otherwise -> Just ("a bare ampersand before " <> take 10 rest)
      _ : rest -> go open rest

-- | The text between the tags.
textOf :: String -> String
textOf = \case
  "" -> ""
  '<' : rest -> ' ' : textOf (drop 1 (dropWhile (/= '>') rest))
  char : rest -> char : textOf rest
