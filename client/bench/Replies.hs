-- | Large replies and typed commands, for @lab/replies@, which compares them with C.
--
-- > replies FOLDER       reads lines, answers each with one
-- > replies --iters 1    everything once, unmeasured
--
-- A line is @parse KIND FILE RUNS@ or @type KIND FILE RUNS@ for a reply in a file of the folder, or
-- it is @typed COMMAND RUNS@ or @raw COMMAND RUNS@. The answer has the nanoseconds of processor
-- time and the allocated bytes, both of all runs, and a count that shows that the right thing was
-- done.
module Main (main) where

import Bench.Large
import Bench.Timed
import Bench.Typed
import Control.Monad (forM_, unless)
import Data.ByteString (ByteString)
import Data.ByteString qualified as ByteString
import Data.List (find)
import System.Environment (getArgs)
import System.Exit (die)
import System.FilePath ((</>))
import System.IO (BufferMode (LineBuffering), hSetBuffering, stdout)
import System.IO.Error (isEOFError, tryIOError)
import Text.Read (readMaybe)

main :: IO ()
main =
  getArgs >>= \case
    ["--iters", _] -> everythingOnce
    [folder] -> hSetBuffering stdout LineBuffering *> answering folder
    _ -> die "replies: FOLDER, or --iters 1"

everythingOnce :: IO ()
everythingOnce = do
  forM_ larges $ \one -> forM_ (largeSamples one) $ \sample -> do
    elements <- typing one sample
    unless (elements > 0) (die ("replies: " <> largeName one <> " has no elements"))
  buffer <- newBuffer
  every <- calls
  forM_ every $ \one -> do
    sizes <- traverse (\way -> way buffer one) [callTyped, callRaw]
    unless (all (> 0) sizes) (die ("replies: " <> callName one <> " has no request"))
  putStrLn (show (length larges) <> " replies and " <> show (length every) <> " commands")

-- | Reads lines and answers them until the input ends.
answering :: FilePath -> IO ()
answering folder = do
  buffer <- newBuffer
  every <- calls
  let go =
        tryIOError getLine >>= \case
          Left failure -> unless (isEOFError failure) (ioError failure)
          Right line -> do
            figures <- answer line (words line)
            putStrLn (unwords [show (figureNanoseconds figures), show (figureAllocated figures), show (figureCounted figures)])
            go
      answer line = \case
        [way, kind, file, count]
          | Just runs <- readMaybe count,
            Just one <- find ((== kind) . largeName) larges -> do
            bytes <- ByteString.readFile (folder </> file)
            timed runs =<< reading line way one bytes
        [way, name, count]
          | Just runs <- readMaybe count,
            Just one <- find ((== name) . callName) every -> case way of
            "typed" -> timed runs (callTyped buffer one)
            "raw" -> timed runs (callRaw buffer one)
            _ -> notUnderstood line
        _ -> notUnderstood line
  go

reading :: String -> String -> Large -> ByteString -> IO (IO Int)
reading line way one bytes = case way of
  "parse" -> pure (parsing bytes)
  "type" -> pure (typing one bytes)
  _ -> notUnderstood line

notUnderstood :: String -> IO a
notUnderstood line = die ("replies: not understood: " <> line)
