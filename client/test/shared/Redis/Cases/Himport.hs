-- | "Redis.Commands.Himport", whose replies are those of the documentation. Each needs the connection
-- on which the fieldset was prepared.
module Redis.Cases.Himport (himportCases) where

import Data.List.NonEmpty (NonEmpty ((:|)))
import Redis.CommandCase
import Redis.Commands.Himport
import Redis.Value (Value (..))

himportCases :: [Case]
himportCases =
  map
    lent
    [ documented [SimpleString "OK"] $
        onEmpty "himportPrepare" (himportPrepare "u" ("name" :| ["email", "age"])) ["HIMPORT", "PREPARE", "u", "name", "email", "age"] (Gives ()),
      documented [SimpleString "OK"] $
        onEmpty "himportSet" (himportSet "k" "u" ("alice" :| ["a@example.com", "30"])) ["HIMPORT", "SET", "k", "u", "alice", "a@example.com", "30"] (Gives ()),
      documented [Integer 0] $ onEmpty "himportDiscard" (himportDiscard "u") ["HIMPORT", "DISCARD", "u"] (Gives False),
      documented [Integer 0] $ onEmpty "himportDiscardall" himportDiscardall ["HIMPORT", "DISCARDALL"] (Gives 0)
    ]
