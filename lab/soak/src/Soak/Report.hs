-- | The results of a run: on one screen, and as JSON.
module Soak.Report
  ( Summary (..),
    onScreen,
    asJson,
  )
where

import Data.Char (ord)
import Data.List (intercalate, sortOn)
import Data.Map.Strict (Map)
import Data.Map.Strict qualified as Map
import Numeric (showFFloat, showHex)
import Redis (Delivery)
import Soak.Audit
import Soak.Measure

data Summary = Summary
  { summarySeed :: Int,
    -- | Seconds during which faults ran.
    summarySeconds :: Double,
    summaryCallers :: Int,
    summaryLedger :: Ledger,
    summaryFaults :: Map String Int,
    -- | The latest faults, in order.
    summaryJournal :: [String],
    summaryBefore :: Holdings,
    summaryAfter :: Holdings,
    -- | Seconds that the process was kept from running.
    summaryLag :: Double,
    summaryViolations :: [String]
  }

-- | A text of twenty to forty lines.
onScreen :: Summary -> String
onScreen summary =
  unlines $
    [ "",
      "soak: seed " <> show (summarySeed summary) <> ", " <> seconds (summarySeconds summary) <> " s of faults, " <> show (summaryCallers summary) <> " callers",
      "calls       " <> show (callsOf ledger) <> " (" <> rate <> "/s), failed " <> show (ledgerFailures ledger),
      "            " <> listed (ledgerCalls ledger),
      "errors"
    ]
      <> [ "  " <> padded 44 name <> padded 18 (show delivery) <> show times
           | ((name, delivery), times) <- take 16 (sortOn (negate . snd) (Map.toList (ledgerErrors ledger)))
         ]
      <> [ "latest      " <> maybe "none" told (ledgerLatest ledger),
           "lag         " <> seconds (summaryLag summary) <> " s in all",
           "stale reads " <> show (ledgerStale ledger) <> ", each right soon after",
           "faults      " <> listed (summaryFaults summary),
           "connections " <> change heldConnections,
           "descriptors " <> change heldDescriptors <> ", connections left out",
           "live heap   " <> change (\holding -> heldBytes holding `div` 1024) <> " KiB"
         ]
      <> case summaryViolations summary of
        [] -> ["audit       nothing wrong"]
        wrong -> ("audit       " <> show (length wrong) <> " VIOLATIONS") : map ("  " <>) (take 20 wrong)
  where
    ledger = summaryLedger summary
    rate = show (round (fromIntegral (callsOf ledger) / max 1 (summarySeconds summary) :: Double) :: Int)
    told call =
      callKind call <> ", " <> seconds (callTook call - callLimit call) <> " s after its limit of " <> seconds (callLimit call)
        <> (" s, lag " <> seconds (callLag call) <> " s; allowed is " <> seconds grace <> " s and the lag")
    change :: Show a => (Holdings -> a) -> String
    change field = show (field (summaryBefore summary)) <> " before, " <> show (field (summaryAfter summary)) <> " after"
    listed counts = intercalate ", " [name <> " " <> show times | (name, times) <- Map.toList counts]
    padded width string = take (max width (length string + 1)) (string <> repeat ' ')

callsOf :: Ledger -> Int
callsOf = sum . ledgerCalls

seconds :: Double -> String
seconds amount = showFFloat (Just 2) amount ""

-- | One JSON object.
asJson :: Summary -> String
asJson summary =
  object
    [ ("seed", show (summarySeed summary)),
      ("seconds", seconds (summarySeconds summary)),
      ("callers", show (summaryCallers summary)),
      ("calls", counts (ledgerCalls ledger)),
      ("errors", list [object [("class", text name), ("delivery", text (show (delivery :: Delivery))), ("count", show times)] | ((name, delivery), times) <- Map.toList (ledgerErrors ledger)]),
      ("stale_reads", show (ledgerStale ledger)),
      ("latest", maybe "null" call (ledgerLatest ledger)),
      ("lag_seconds", seconds (summaryLag summary)),
      ("faults", counts (summaryFaults summary)),
      ("journal", list (map text (summaryJournal summary))),
      ("before", holding (summaryBefore summary)),
      ("after", holding (summaryAfter summary)),
      ("violations", list (map text (summaryViolations summary)))
    ]
    <> "\n"
  where
    ledger = summaryLedger summary
    object fields = "{" <> intercalate ", " [text name <> ": " <> value | (name, value) <- fields] <> "}"
    list values = "[" <> intercalate ", " values <> "]"
    counts numbers = object [(name, show number) | (name, number) <- Map.toList numbers]
    call Call {callKind, callLimit, callTook, callLag} =
      object [("kind", text callKind), ("limit", seconds callLimit), ("took", seconds callTook), ("lag", seconds callLag)]
    holding Holdings {heldConnections, heldDescriptors, heldBytes} =
      object [("connections", show heldConnections), ("descriptors", show heldDescriptors), ("live_bytes", show heldBytes)]

text :: String -> String
text string = "\"" <> concatMap escape string <> "\""
  where
    escape character
      | character `elem` ['"', '\\'] = ['\\', character]
      | character < ' ' || character > '~' = "\\u" <> drop (length hex) "0000" <> hex
      | otherwise = [character]
      where
        hex = showHex (min 0xffff (ord character)) ""
