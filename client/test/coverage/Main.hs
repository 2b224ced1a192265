-- | Says whether the library offers every command that servers know, and writes
-- @docs/commands.md@. Without arguments it is a test suite.
--
-- > coverage write FILE    prints the table and writes the page; fails if one is missing
-- > coverage check FILE    fails if the page is not what would be written
module Main (main) where

import Control.Monad (forM_, unless)
import Coverage
import Data.ByteString qualified as ByteString
import Data.ByteString.Char8 qualified as Char8
import Data.Text qualified as Text
import Data.Text.Encoding qualified as Text
import Page
import Redis.Internal.Protocol.CommandTable
import System.Environment (getArgs)
import System.Exit (die, exitFailure)
import Test.Hspec

main :: IO ()
main =
  getArgs >>= \case
    ["write", file] -> do
      mapM_ putStrLn (summary covered)
      forM_ withoutReason $ \(name, word) -> Char8.putStrLn ("no typed command sends " <> word <> " of " <> name)
      ByteString.writeFile file written
      unless (null (missing covered) && null withoutReason) exitFailure
    ["check", file] -> do
      found <- ByteString.readFile file
      unless (found == written) . die $ file <> " is not what \"make coverage\" writes"
    _ -> hspec spec
  where
    withoutReason = filter (`notElem` map fst withoutOption) untypedOptions
    written = Text.encodeUtf8 (Text.pack (page covered))

spec :: Spec
spec = do
  describe "every command is typed, scoped to a connection, or refused with a reason:" $
    forM_ (byGroup covered) $ \(group, inside) ->
      it (Char8.unpack group <> ", " <> show (length inside)) $ missing inside `shouldBe` []

  it "has, for each option that servers describe, a typed command that can send it, or the reason why not" $
    filter (`notElem` map fst withoutOption) untypedOptions `shouldBe` []

  it "gives no reason for an option that a typed command sends, or that servers lack" $
    filter (`notElem` untypedOptions) (map fst withoutOption) `shouldBe` []

  it "has no command in a list by hand that the servers lack" $
    filter (not . inTable) (map fst (refused <> otherwiseOffered)) `shouldBe` []

  it "has a case with a documented reply for each command that only servers have which were not run" $
    withoutReply `shouldBe` []

  it "refuses none that is typed" $
    [name | one <- covered, isTyped (coveredOffer one), let { name = entryName (coveredEntry one) }, name `elem` map fst refused] `shouldBe` []

  it "says of none that it concerns a connection which does not" $
    [name | name <- map fst otherwiseOffered, not (any changesConnection (lookupCommand (Char8.split '|' name)))] `shouldBe` []

  it "writes a line for each of them" $
    length (filter isRow (lines (page covered))) `shouldBe` length covered
  where
    isTyped = \case
      Typed _ -> True
      TypedBlocking _ -> True
      _ -> False
    -- Lines of the tables of commands have six cells.
    isRow text = take 2 text == "| " && take 10 text /= "| Command " && length (filter (== '|') (unescaped text)) == 7
    unescaped = \case
      '\\' : _ : rest -> unescaped rest
      char : rest -> char : unescaped rest
      [] -> []
