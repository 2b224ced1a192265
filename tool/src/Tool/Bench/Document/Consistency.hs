-- | Checks whether the numbers of a document agree with each other: a rate with its counts and
-- seconds, a histogram with its percentiles, a window with its slices. If they differ, the file
-- was changed by hand or is damaged. This is no signature.
module Tool.Bench.Document.Consistency
  ( checked,
    contradictions,
  )
where

import Data.Aeson (Result (..), Value (..), encode, fromJSON)
import Data.Aeson.Key qualified as Key
import Data.Aeson.KeyMap qualified as KeyMap
import Data.ByteString.Lazy qualified as Lazy
import Data.Foldable (toList)
import Data.List qualified as List
import Data.Map.Strict (Map)
import Data.Map.Strict qualified as Map
import Data.Text (Text)
import Data.Text qualified as Text
import Data.Text.Encoding qualified as Text
import Tool.Bench.Document
import Tool.Bench.Document.Json (documentValue)
import Tool.Bench.Document.Totals
import Tool.Bench.Histogram qualified as Histogram
import Tool.Text (fixed, shown)

-- | The document that was read from this JSON, checked. Runs with numbers that do not agree get one
-- more problem, which names the contradictions in one line. \(O(n)\) in the size of the JSON.
checked :: Value -> Document -> Document
checked written document =
  document {documentRuns = zipWith judge [0 ..] (documentRuns document)}
  where
    follows = documentValue document
    -- A difference in the parts that all runs share makes each run doubtful.
    shared =
      concat
        [ differences [Key.toText name] one other
          | name <- ["manifest", "origins"],
            (one, other) <- at name
        ]
    judge number run = case shared <> differing number <> contradictions run of
      [] -> run
      found -> run {runProblems = runProblems run <> ["its numbers do not agree: " <> few found]}
    differing :: Int -> [Text]
    differing number =
      concat
        [ differences [] one other
          | (Array ones, Array others) <- at "runs",
            (one, other) <- take 1 (drop number (zip (toList ones) (toList others)))
        ]
    -- What both have in this field.
    at name =
      [ (one, other)
        | (Object fields, Object fields') <- [(written, follows)],
          Just one <- [KeyMap.lookup name fields],
          Just other <- [KeyMap.lookup name fields']
      ]

few :: [Text] -> Text
few found = Text.intercalate "; " (take 3 found <> ["and " <> shown more <> " more" | more > 0])
  where
    more = length (drop 3 found)

-- The differences between the JSON as it was written and the JSON that the program would write now:
-- they can only be in what follows from the rest. Fields that only one of them has come from
-- another version. Compressed histograms are not compared: there are several ways to compress the
-- same one.
differences :: [Text] -> Value -> Value -> [Text]
differences path written follows = case (written, follows) of
  (Object one, Object other) ->
    concat
      [ differences (Key.toText name : path) value expected
        | (name, (value, expected)) <-
            List.sortOn fst (KeyMap.toList (KeyMap.intersectionWith (,) one other)),
          name /= "hdr_b64"
      ]
  (Array one, Array other)
    | length one == length other ->
      concat (zipWith3 (differences . (: path) . shown) [0 :: Int ..] (toList one) (toList other))
  (Number _, Number _)
    | Success one <- fromJSON written, Success other <- fromJSON follows, close one other -> []
  _
    | written == follows -> []
    | otherwise ->
      [ Text.intercalate "." (reverse path)
          <> (" is " <> written' written <> ", but " <> written' follows <> " follows from the rest")
      ]
  where
    written' value = case value of
      Object _ -> "something else"
      Array _ -> "another list"
      _ -> Text.decodeUtf8 (Lazy.toStrict (encode value))

-- Equal but for rounding.
close :: Double -> Double -> Bool
close one other = abs (one - other) <= 1e-6 * max 1e-3 (max (abs one) (abs other))

-- | Numbers of a run that cannot all be true and from which no other field follows. Each is part of
-- a line.
contradictions :: Run -> [Text]
contradictions run =
  concat (zipWith window [1 :: Int ..] (runIterations run))
    <> [ "problems is empty, although commands failed or the server counted others"
         | null (runProblems run),
           runErrorCount run > 0 || not (null [() | Disagrees _ _ <- [runAgreement run]])
       ]
  where
    among = inWindow (specInFlight (runSpec run))
    window number one
      | length (runIterations run) > 1 =
        map (("window " <> shown number <> ": ") <>) (among one)
      | otherwise = among one

-- Takes the number of commands that can be on their way at a time. While a window begins or ends,
-- the latency of a command that is just being counted may be on one side of the border and its hit
-- on the other. So these counts may differ by as many commands.
inWindow :: Int -> Iteration -> [Text]
inWindow onTheirWay one =
  concat
    [ [ name <> " has " <> count (commandHits stats + commandMisses stats)
          <> (" hits and misses of " <> count (held stats) <> " commands")
        | (name, stats) <- commands,
          commandHits stats < 0
            || commandMisses stats < 0
            || commandHits stats + commandMisses stats > held stats + onTheirWay
      ],
      [ name <> " has " <> count (held stats)
          <> (" commands in the window and " <> count slices <> " in its slices")
        | measured,
          (name, stats) <- commands,
          let slices = Map.findWithDefault 0 name sliced,
          slices /= held stats
      ],
      [ "the slices last " <> seconds spans <> ", the window " <> seconds (iterationSeconds one)
        | measured,
          not (close spans (iterationSeconds one))
      ],
      [ count inside <> " commands failed with " <> name
          <> (" in the window and " <> count whole <> " in all")
        | (name, inside) <- Map.toList (Map.unionsWith (+) (map (commandErrors . snd) commands)),
          let whole = Map.findWithDefault 0 name (iterationErrors one),
          inside > whole
      ]
    ]
  where
    commands = Map.toList (iterationCommands one)
    held = Histogram.count . commandService
    -- A merged window may lack the slices of one of its parts.
    measured = not (null (iterationSeries one)) && null (toList (iterationCommon one))
    sliced :: Map Text Int
    sliced =
      Map.unionsWith
        (+)
        (map (Map.map (Histogram.count . sliceService) . sliceCommands) (iterationSeries one))
    spans = sum (map sliceSpan (iterationSeries one))
    count = shown :: Int -> Text
    seconds = Text.pack . (<> " s") . fixed 3 :: Double -> Text
