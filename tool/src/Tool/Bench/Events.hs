-- | Events on the servers, found in the samples that are taken each second. They are as exact as
-- the samples are close.
module Tool.Bench.Events
  ( eventsOf,
    stalls,
  )
where

import Data.Function (on)
import Data.List (groupBy, sortOn)
import Data.Map.Strict qualified as Map
import Data.Maybe (mapMaybe)
import Data.Text (Text)
import Data.Text qualified as Text
import Tool.Bench.Document
import Tool.Bench.Document.Totals (sliceRate)
import Tool.Bench.Histogram qualified as Histogram
import Tool.Statistics (median)
import Tool.Text (duration, fixed)

-- | The events of all nodes, in order of time.
eventsOf :: [ServerSample] -> [Event]
eventsOf samples = sortOn eventAt (concatMap ofNode (Map.elems byNode))
  where
    byNode = Map.fromListWith (flip (<>)) [(sampleNode sample, [sample]) | sample <- samples]

ofNode :: [ServerSample] -> [Event]
ofNode samples =
  concat
    [ lasting "aof-rewrite" "the append-only file was rewritten" "aof_rewrite_in_progress",
      lasting "bgsave" "a snapshot was saved" "rdb_bgsave_in_progress",
      lasting "loading" "the data set was loaded" "loading",
      growing "fsync-delay" "fsyncs that came late" "aof_delayed_fsync",
      growing "eviction" "keys were evicted" "evicted_keys",
      growing "rejected" "connections were rejected" "rejected_connections",
      [ event "failover" before after "it changed its role"
        | (before, after) <- steps,
          changed "role_master" before after
      ],
      [ event "restart" before after "it was restarted"
        | (before, after) <- steps,
          at "uptime_in_seconds" after < at "uptime_in_seconds" before
      ]
    ]
  where
    steps = zip samples (drop 1 samples)
    at name = Map.findWithDefault 0 name . sampleValues
    changed name before after = at name before /= at name after
    lasting kind text name =
      mapMaybe (spell kind text name) (groupBy ((==) `on` ((> 0) . at name)) samples)
    spell kind text name spelled = case spelled of
      first : _
        | at name first > 0,
          final : _ <- reverse spelled ->
          Just (event kind first final text)
      _ -> Nothing
    growing kind text name =
      [ event kind before after (text <> ": " <> Text.pack (fixed 0 more))
        | (before, after) <- steps,
          let more = at name after - at name before,
          at name after > at name before
      ]
    event kind before after text =
      Event
        { eventAt = sampleAt before,
          eventUntil = sampleAt after,
          eventKind = kind,
          eventText = sampleNode before <> ": " <> text
        }

-- | A stall for each slice in which hardly any command was answered: fewer than a tenth of the
-- median of all slices.
stalls :: [Slice] -> [Event]
stalls slices =
  [ Event
      { eventAt = sliceAt slice,
        eventUntil = sliceAt slice + sliceSpan slice,
        eventKind = "stall",
        eventText = stalled (slowest slice)
      }
    | slice <- slices,
      sliceRate slice < 0.1 * usual
  ]
  where
    usual = median (map sliceRate slices)
    slowest slice = foldr (max . Histogram.maximumValue . sliceService) 0 (sliceCommands slice)
    stalled :: Int -> Text
    stalled 0 = "no command was answered"
    stalled longest =
      "hardly any command was answered, the slowest after " <> Text.pack (duration longest)
