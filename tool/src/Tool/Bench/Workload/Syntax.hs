-- | A small parser for the value of one option. Its errors are one line and name the column.
module Tool.Bench.Workload.Syntax
  ( Syntax,
    parse,
    peek,
    rest,
    ended,
    text,
    oneOf,
    takeWhile',
    expect,
    complain,
    separated,
    natural,
    positive,
    decimal,
    byteSize,
  )
where

import Control.Monad (ap, liftM, unless, when)
import Data.Char (digitToInt, isDigit)
import Data.List (stripPrefix)
import Data.List qualified as List
import Data.Maybe (listToMaybe)
import Text.Read (readMaybe)

-- | A parser of text that knows its column.
newtype Syntax a = Syntax (Int -> String -> Either (Int, String) (a, Int, String))

instance Functor Syntax where
  fmap = liftM

instance Applicative Syntax where
  pure result = Syntax (\column input -> Right (result, column, input))
  (<*>) = ap

instance Monad Syntax where
  Syntax run >>= next = Syntax $ \column input -> do
    (result, at, left) <- run column input
    let Syntax following = next result
    following at left

-- | Reads a whole text. 'Left' is one line: the problem, the column, and the text.
parse :: Syntax a -> String -> Either String a
parse syntax input = case run 1 input of
  Right (result, _, _) -> Right result
  Left (column, problem) -> Left (problem <> " at column " <> show column <> " of " <> show input)
  where
    Syntax run = do
      result <- syntax
      over <- ended
      left <- rest
      if over then pure result else complain ("cannot read " <> show (take 20 left))

-- | The next character, without consuming it.
peek :: Syntax (Maybe Char)
peek = listToMaybe <$> rest

-- | The rest of the text, without consuming it.
rest :: Syntax String
rest = Syntax (\column input -> Right (input, column, input))

ended :: Syntax Bool
ended = null <$> rest

-- | Fails at this column.
complain :: String -> Syntax a
complain problem = Syntax (\column _ -> Left (column, problem))

-- | Takes characters as long as they fit.
takeWhile' :: (Char -> Bool) -> Syntax String
takeWhile' wanted = Syntax $ \column input ->
  let (taken, left) = span wanted input in Right (taken, column + length taken, left)

-- | Takes this text if it comes next. Returns whether it did.
text :: String -> Syntax Bool
text wanted = Syntax $ \column input -> Right $ case stripPrefix wanted input of
  Just left -> (True, column + length wanted, left)
  Nothing -> (False, column, input)

-- | Takes this text, or fails.
expect :: String -> Syntax ()
expect wanted = text wanted >>= \found -> unless found (complain ("expected " <> wanted))

-- | The result that belongs to the first of these texts that comes next.
oneOf :: String -> [(String, a)] -> Syntax a
oneOf what = \case
  [] -> complain ("expected " <> what)
  (wanted, result) : others ->
    text wanted >>= \found -> if found then pure result else oneOf what others

-- | One or more items, with this text between them.
separated :: String -> Syntax a -> Syntax [a]
separated mark item = do
  first <- item
  more <- text mark
  if more then (first :) <$> separated mark item else pure [first]

-- | Decimal digits, up to a largest number. The text is what the error says is expected.
natural :: String -> Int -> Syntax Int
natural what most = do
  digits <- takeWhile' isDigit
  when (null digits) $ complain ("expected " <> what)
  let number = List.foldl' (\total digit -> total * 10 + toInteger (digitToInt digit)) 0 digits
  when (number > toInteger most) $
    complain (what <> " can be " <> show most <> " at most, not " <> digits)
  pure (fromInteger number)

-- | Like 'natural', but not 0. The last text is the error for that.
positive :: String -> Int -> String -> Syntax Int
positive what most refusal = do
  number <- natural what most
  number <$ when (number == 0) (complain refusal)

-- | Decimal digits, optionally with a fraction.
decimal :: String -> Syntax Double
decimal what = do
  whole <- takeWhile' isDigit
  when (null whole || length whole > 9) $ complain ("expected " <> what)
  fraction <- text "."
  digits <- if fraction then takeWhile' isDigit else pure "0"
  maybe (complain "expected digits after the point") pure (readMaybe (whole <> "." <> digits))

-- | A number of bytes: @512@, @1k@, @4m@.
byteSize :: Int -> Syntax Int
byteSize most = do
  number <- natural "a number of bytes" most
  factor <-
    oneOf "a unit" [("k", 1024), ("K", 1024), ("m", 1024 * 1024), ("M", 1024 * 1024), ("", 1)]
  when (toInteger number * toInteger factor > toInteger most) $
    complain ("a number of bytes can be " <> show most <> " at most")
  pure (number * factor)
