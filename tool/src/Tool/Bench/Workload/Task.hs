-- | The parts of a workload as given on the command line: tests by name and commands in words, with
-- weights.
module Tool.Bench.Workload.Task
  ( Task (..),
    taskName,
    Mix,
    mix,
    taskList,
    describeMix,
  )
where

import Data.Char (isSpace)
import Data.List (intercalate, nub, (\\))
import Data.List.NonEmpty (NonEmpty (..))
import Data.List.NonEmpty qualified as NonEmpty
import Data.Text (Text)
import Data.Text qualified as Text
import Tool.Bench.Workload.Named (namedTests, testGroups)
import Tool.Bench.Workload.Syntax
import Tool.Bench.Workload.Template

-- | One kind of operation.
data Task
  = -- | A test by its name.
    TaskNamed String
  | -- | A command, as it was written and as it was understood.
    TaskCommand String Template
  deriving stock (Eq, Show)

taskName :: Task -> Text
taskName = \case
  TaskNamed name -> Text.pack name
  TaskCommand written _ -> Text.pack (templateText written)

-- | Tasks and their weights: how often each is drawn, relative to the others.
type Mix = NonEmpty (Int, Task)

-- | Reads @70:get,20:set,10:'INCR counter:__rand_int__'@. A weight of 1 may be left out. A command
-- must be in quotes, or stand last.
mix :: Syntax Mix
mix = do
  found <- separated "," weighted
  case found of
    [] -> complain "a mix of nothing"
    first : others -> pure (first :| others)
  where
    weighted = do
      left <- rest
      weight <- case span (`elem` ['0' .. '9']) left of
        (_ : _, ':' : _) -> do
          number <- natural "a weight" 1000000
          _ <- text ":"
          if number == 0 then complain "a weight is 1 at least" else pure number
        _ -> pure 1
      (,) weight <$> task
    task =
      peek >>= \case
        Just quote | quote `elem` ("'\"" :: String) -> do
          _ <- text [quote]
          written <- takeWhile' (/= quote)
          closed <- text [quote]
          if closed then command written else complain "the quote is never closed; the text ends"
        _ -> takeWhile' (`notElem` (",\"'" :: String)) >>= name
    name written
      | any isSpace written = command written
      | otherwise = TaskNamed <$> known written
    command written = either complain (pure . TaskCommand written) (parse commandTemplate written)

-- | Names of tests, and of groups of tests, with commas between them. Each test is a run of its
-- own, named after the test, so no test may be there twice.
taskList :: Syntax [Task]
taskList = do
  found <- concat <$> separated "," names
  case found \\ nub found of
    again : _ -> complain (Text.unpack (taskName again) <> " is named twice")
    [] -> pure found
  where
    names = do
      written <- takeWhile' (/= ',')
      case lookup written testGroups of
        Just group -> pure (map TaskNamed group)
        Nothing -> (: []) . TaskNamed <$> known written

known :: String -> Syntax String
known written
  | written `elem` map fst namedTests = pure written
  | null written = complain "the name of a test is missing"
  | otherwise =
    complain
      ( "there is no test "
          <> show written
          <> " (there are "
          <> unwords (map fst namedTests)
          <> ");"
      )

-- | The text that 'mix' reads.
describeMix :: Mix -> String
describeMix = \case
  (_, one) :| [] -> written one
  several ->
    intercalate "," [show weight <> ":" <> written one | (weight, one) <- NonEmpty.toList several]
  where
    written = \case
      TaskNamed name -> name
      TaskCommand text' _ -> "'" <> text' <> "'"
