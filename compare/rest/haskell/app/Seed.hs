-- | Creates the database of the comparison: 10 000 users of seed 42.
module Seed (main) where

import Rest.Seed (seedDatabase, seedUsers)
import Rest.Statements (loadStatements)
import System.Environment (getArgs)
import System.Exit (die)

main :: IO ()
main =
  getArgs >>= \case
    [sql, path] -> do
      statements <- loadStatements sql
      seedDatabase statements path (seedUsers 42 10000)
    _ -> die "usage: rest-seed STATEMENTS.sql DATABASE"
