-- | Numbers about a client, for monitoring: gauges, counters and times for each node, also as text
-- for Prometheus. Take a snapshot, and read its fields or render it:
--
-- > snapshot <- clientSnapshot client
-- > respond (responseBuilder status200 [("Content-Type", prometheusContentType)] (prometheusText snapshot))
--
-- Counting is always on, and every reply is counted. The client takes the time once for each block of
-- commands that it sends and once for each read of replies, not for each command.
--
-- Guaranteed: a counter never goes back while its node is known. Not guaranteed: that a snapshot
-- shows one moment; the counters of one node may be a command apart.
module Redis.Metrics
  ( -- * Snapshots
    clientSnapshot,
    ClientSnapshot (..),
    NodeSnapshot (..),
    MuxGauges (..),
    DedicatedGauges (..),
    ErrorCounts (..),
    CacheGauges (..),
    SubscriptionGauges (..),

    -- * Round trips
    RoundTrips,
    roundTripCount,
    roundTripTotal,
    roundTripWithin,

    -- * For Prometheus
    prometheusText,
    prometheusContentType,
  )
where

import Data.ByteString (ByteString)
import Data.ByteString.Builder (Builder, intDec)
import Data.ByteString.Builder qualified as Builder
import Data.Char (isDigit)
import Data.List (dropWhileEnd, intersperse)
import Data.Text qualified as Text
import Data.Text.Encoding qualified as Text
import Redis.Error (renderEndpoint)
import Redis.Internal.Client.Cache (CacheGauges (..), storeGauges)
import Redis.Internal.Client.Core
import Redis.Internal.Client.Subscriptions (SubscriptionGauges (..), subscriptionGauges)
import Redis.Internal.Network.Counters
import Redis.Internal.Network.Dedicated (DedicatedGauges (..))
import Redis.Internal.Network.Multiplexer (MuxGauges (..))
import Redis.Internal.Routing.Cluster (ClusterClient (clusterNodes))
import Redis.Internal.Routing.Nodes

-- | The numbers of a client, node by node.
data ClientSnapshot = ClientSnapshot
  { -- | The one server, or the nodes of the cluster's map and the nodes that a redirect has named
    -- since, in the order of their endpoints. A node that has left is not among them.
    snapshotNodes :: [NodeSnapshot],
    -- | Errors of commands that found no node, or whose node has left.
    snapshotErrors :: ErrorCounts,
    -- | The cache of replies, if the client has one ('Redis.Config.setCaching').
    snapshotCache :: Maybe CacheGauges,
    -- | Subscriptions and their connections. These connections are not among those of the nodes.
    snapshotSubscriptions :: SubscriptionGauges
  }
  deriving stock (Eq, Show)

-- | Takes a snapshot; blocks only for each shared connection's lock. \(O(n)\) in the connections and nodes.
clientSnapshot :: Client -> IO ClientSnapshot
clientSnapshot (Client core) = do
  snapshotNodes <- knownNodes nodes >>= traverse nodeSnapshot
  snapshotErrors <- errorCounts (nodesCounters nodes)
  snapshotCache <- traverse storeGauges (coreCache core)
  snapshotSubscriptions <- subscriptionGauges (coreSubscriptions core)
  pure ClientSnapshot {snapshotNodes, snapshotErrors, snapshotCache, snapshotSubscriptions}
  where
    nodes = clusterNodes (coreCluster core)

-- | The content type of 'prometheusText'.
prometheusContentType :: ByteString
prometheusContentType = "text/plain; version=0.0.4; charset=utf-8"

-- | A snapshot in Prometheus' text format, as a page of metrics or a part of one. All names begin
-- with @redis_client_@. Samples have the label @node@, which is empty for errors that concern no
-- node; samples of the cache and of subscriptions have no such label. \(O(n)\) in the nodes.
prometheusText :: ClientSnapshot -> Builder
prometheusText ClientSnapshot {snapshotNodes, snapshotErrors, snapshotCache, snapshotSubscriptions} =
  mconcat $
    [ perKind "connections_open" "Open connections that all callers share." length,
      perKind "commands_in_flight" "Commands submitted and not yet answered." (total gaugeInFlight),
      perKind "queued_bytes" "Encoded bytes that wait to be sent." (total gaugeQueuedBytes),
      perKind "callers_waiting" "Callers that wait for room before they submit." (total gaugeWaiting),
      gauge "dedicated_connections" "Connections that one caller has for itself, by what they do." $ \node ->
        [ (("state", "lent") : named node, gaugeLent (gaugeDedicated node)),
          (("state", "idle") : named node, gaugeIdle (gaugeDedicated node)),
          (("state", "opening") : named node, gaugeOpening (gaugeDedicated node))
        ],
      gauge "leases_waiting" "Callers that wait for a connection of their own." $ \node ->
        [(named node, gaugeLeasesWaiting (gaugeDedicated node))],
      metric "histogram" "round_trip_seconds" "From handing a command to the socket to having read its reply." $
        concat [histogramSamples (("connections", kind) : named node) trips | node <- snapshotNodes, (kind, trips) <- tripsOf node],
      counter "connections_opened_total" "Connections that were opened." (plain countOpened),
      counter "connections_lost_total" "Connections that ended without the client wanting it." (plain countLost),
      counter "connect_failures_total" "Attempts to open a connection that failed." (plain countConnectsFailed),
      counter "redirects_total" "MOVED and ASK replies of the node." $ \node ->
        [(("kind", "moved") : named node, countMoved node), (("kind", "ask") : named node, countAsk node)],
      counter "commands_resent_total" "Commands sent after another attempt had failed." (plain countResent),
      counter "commands_cut_total" "Commands in flight when their connection ended, by whether they had been sent." $ \node ->
        [(("sent", "no") : named node, countCutUnsent node), (("sent", "yes") : named node, countCutSent node)],
      metric "counter" "errors_total" "Errors that callers got, by what they may conclude." $
        concatMap (\(node, errors) -> map sample (byDelivery node errors)) ([(named node, countErrors node) | node <- snapshotNodes] <> [([("node", "")], snapshotErrors)])
    ]
      <> subscriptionFamilies snapshotSubscriptions
      <> maybe [] cacheFamilies snapshotCache
  where
    named node = [("node", renderEndpoint (gaugeEndpoint node))]
    total field = sum . map field
    plain field node = [(named node, field node)]
    sample (with, value) = Sample {sampleSuffix = mempty, sampleLabels = with, sampleValue = intDec value}

    families kind name help samples = metric kind name help (concatMap (map sample . samples) snapshotNodes)
    gauge = families "gauge"
    counter = families "counter"

    perKind name help field = gauge name help $ \node ->
      [(("connections", kind) : named node, field gauges) | (kind, gauges) <- kindsOf node]

    -- Without the kinds of connections that were never used.
    kindsOf node =
      ("shared", gaugeConnections node) :
        [ (kind, gauges)
          | (kind, gauges, trips) <- [("replica", gaugeReplicaConnections node, roundTripsReplica node), ("control", gaugeControlConnections node, roundTripsControl node)],
            not (null gauges) || roundTripCount trips > 0
        ]
    tripsOf node =
      ("shared", roundTrips node) :
        [ (kind, trips)
          | (kind, trips) <- [("replica", roundTripsReplica node), ("control", roundTripsControl node), ("dedicated", roundTripsDedicated node)],
            roundTripCount trips > 0
        ]

    byDelivery with ErrorCounts {errorsNotSent, errorsRefused, errorsMaybeExecuted} =
      [ (("delivery", "not_sent") : with, errorsNotSent),
        (("delivery", "refused_before_run") : with, errorsRefused),
        (("delivery", "maybe_executed") : with, errorsMaybeExecuted)
      ]

cacheFamilies :: CacheGauges -> [Builder]
cacheFamilies gauges =
  [ one "counter" "cache_hits_total" "Reads answered without asking the server." cacheHits,
    one "counter" "cache_misses_total" "Reads asked of the server, to be kept." cacheMisses,
    one "counter" "cache_waits_total" "Reads that waited for a reply that another caller had asked for." cacheWaits,
    one "counter" "cache_uncached_total" "Reads past the cache, because their replies cannot be kept." cacheUncached,
    one "counter" "cache_invalidated_total" "Kept replies that went because their key had changed." cacheInvalidated,
    one "counter" "cache_flushes_total" "Times that all kept replies of a node were dropped." cacheFlushes,
    one "counter" "cache_evicted_total" "Kept replies that were dropped for room." cacheEvicted,
    one "counter" "cache_late_total" "Replies not kept, because a change was told before they came." cacheLate,
    one "gauge" "cache_replies" "Replies that are kept." cacheKept,
    one "gauge" "cache_bytes" "Bytes of the kept replies, as they count towards the limit." cacheKeptBytes
  ]
  where
    one kind name help field = ofClient kind name help (field gauges)

subscriptionFamilies :: SubscriptionGauges -> [Builder]
subscriptionFamilies SubscriptionGauges {gaugeSubscriptions, gaugeListening, gaugeEventsWaiting} =
  [ ofClient "gauge" "subscriptions" "Subscriptions that have not ended." gaugeSubscriptions,
    ofClient "gauge" "subscription_connections_open" "Open connections of subscriptions." gaugeListening,
    ofClient "gauge" "subscription_events_waiting" "Messages and gaps that have come and were not taken yet." gaugeEventsWaiting
  ]

-- | A metric that is one number for the whole client.
ofClient :: Builder -> Builder -> Builder -> Int -> Builder
ofClient kind name help value = metric kind name help [Sample {sampleSuffix = mempty, sampleLabels = [], sampleValue = intDec value}]

-- | One line: the suffix of the metric's name, the labels, and the value.
data Sample = Sample
  { sampleSuffix :: Builder,
    sampleLabels :: [(Builder, String)],
    sampleValue :: Builder
  }

-- | Renders all samples of one name, unless there are none. The help is one line without a backslash.
metric :: Builder -> Builder -> Builder -> [Sample] -> Builder
metric kind name help samples
  | null samples = mempty
  | otherwise = "# HELP " <> full <> " " <> help <> "\n# TYPE " <> full <> " " <> kind <> "\n" <> foldMap line samples
  where
    full = "redis_client_" <> name
    line Sample {sampleSuffix, sampleLabels, sampleValue} = full <> sampleSuffix <> labels sampleLabels <> " " <> sampleValue <> "\n"

labels :: [(Builder, String)] -> Builder
labels = \case
  [] -> mempty
  pairs -> "{" <> mconcat (intersperse "," [name <> "=\"" <> utf8 (concatMap escaped value) <> "\"" | (name, value) <- pairs]) <> "}"
  where
    -- 'Text.pack' replaces what UTF-8 cannot say, for which Prometheus would refuse the whole page.
    utf8 = Text.encodeUtf8Builder . Text.pack
    escaped char = case char of
      '\\' -> "\\\\"
      '"' -> "\\\""
      '\n' -> "\\n"
      _ -> [char]

-- | The samples of a histogram, in seconds, with a bucket for each doubling from 16 µs on.
histogramSamples :: [(Builder, String)] -> RoundTrips -> [Sample]
histogramSamples with trips =
  [ Sample {sampleSuffix = "_bucket", sampleLabels = with <> [("le", secondsText end)], sampleValue = Builder.intDec within}
    | (bucket, (Just end, within)) <- zip [0 :: Int ..] counts,
      bucket `rem` 8 == 0,
      end >= 16384
  ]
    <> [ Sample {sampleSuffix = "_bucket", sampleLabels = with <> [("le", "+Inf")], sampleValue = total},
         Sample {sampleSuffix = "_sum", sampleLabels = with, sampleValue = Builder.string7 (secondsText (totalNanos trips))},
         Sample {sampleSuffix = "_count", sampleLabels = with, sampleValue = total}
       ]
  where
    counts = cumulative trips
    total = Builder.intDec (roundTripCount trips)

-- | Nanoseconds as seconds, to the last digit.
secondsText :: Int -> String
secondsText nanos = case trimmed of
  "" -> show whole
  _ -> show whole <> "." <> trimmed
  where
    (whole, part) = nanos `quotRem` 1000000000
    trimmed = dropWhileEnd (== '0') (drop 1 (filter isDigit (show (1000000000 + abs part))))
