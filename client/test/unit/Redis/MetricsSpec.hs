-- | The text for Prometheus, parsed by the rules of its format.
module Redis.MetricsSpec (spec) where

import Data.ByteString.Builder (toLazyByteString)
import Data.ByteString.Lazy.Char8 qualified as Lazy
import Data.Char (isAlpha, isAlphaNum, isAscii)
import Data.List (isPrefixOf, isSuffixOf, nub, sort, stripPrefix)
import Data.Maybe (fromMaybe)
import Redis.Error (Endpoint (..))
import Redis.Internal.Network.Counters
import Redis.Metrics
import Test.Hspec hiding (after)
import Test.Hspec.QuickCheck (modifyMaxSuccess)
import Test.QuickCheck hiding (sample)
import Text.Read (readMaybe)

-- | A line of a page.
data Line
  = Help String String
  | Type String String
  | Sample String [(String, String)] Double
  deriving stock (Eq, Show)

-- | All lines, or the first line that cannot be parsed.
parsePage :: String -> Either String [Line]
parsePage page
  | not (null page) && not ("\n" `isSuffixOf` page) = Left "the last line has no end"
  | otherwise = traverse (\line -> maybe (Left line) Right (parseLine line)) (lines page)

parseLine :: String -> Maybe Line
parseLine line
  | Just rest <- stripPrefix "# HELP " line, (name, ' ' : text) <- break (== ' ') rest, isName name = Just (Help name text)
  | Just rest <- stripPrefix "# TYPE " line, (name, ' ' : kind) <- break (== ' ') rest, isName name, kind `elem` ["gauge", "counter", "histogram"] = Just (Type name kind)
  | "#" `isPrefixOf` line = Nothing
  | otherwise = do
    let (name, rest) = span isNameChar line
    (labels, valueText) <- case rest of
      '{' : inner -> parseLabels inner
      ' ' : value -> Just ([], value)
      _ -> Nothing
    value <- number valueText
    if isName name then Just (Sample name labels value) else Nothing

parseLabels :: String -> Maybe ([(String, String)], String)
parseLabels text = do
  (name, '=' : '"' : rest) <- Just (span isNameChar text)
  (value, after) <- quoted rest
  if not (isName name) || ':' `elem` name
    then Nothing
    else case after of
      ',' : more -> do
        (labels, end) <- parseLabels more
        Just ((name, value) : labels, end)
      '}' : ' ' : end -> Just ([(name, value)], end)
      _ -> Nothing
  where
    quoted = \case
      '"' : rest -> Just ("", rest)
      '\\' : escaped : rest -> do
        char <- lookup escaped [('\\', '\\'), ('"', '"'), ('n', '\n')]
        (value, end) <- quoted rest
        Just (char : value, end)
      '\\' : _ -> Nothing
      char : rest -> do
        (value, end) <- quoted rest
        Just (char : value, end)
      "" -> Nothing

isNameChar :: Char -> Bool
isNameChar char = isAscii char && (isAlphaNum char || char `elem` ("_:" :: String))

isName :: String -> Bool
isName = \case
  first : rest -> isAscii first && (isAlpha first || first `elem` ("_:" :: String)) && all isNameChar rest
  "" -> False

number :: String -> Maybe Double
number = \case
  "+Inf" -> Just (1 / 0)
  text -> readMaybe text

-- | The metric families in order: name, kind and samples. Each begins with HELP and TYPE.
familiesOf :: [Line] -> Either String [(String, String, [Line])]
familiesOf = \case
  [] -> Right []
  Help name _ : Type same kind : rest
    | name == same ->
      let (samples, others) = span isSample rest in ((name, kind, samples) :) <$> familiesOf others
  line : _ -> Left ("no family begins so: " <> show line)
  where
    isSample = \case
      Sample {} -> True
      _ -> False

-- | The faults of a page.
complaints :: String -> [String]
complaints page = case parsePage page >>= familiesOf of
  Left why -> [why]
  Right families ->
    [name <> " comes twice" | length (nub (map nameOf families)) /= length families, (name, _, _) <- take 1 families]
      <> [name <> ": a counter ends with _total" | (name, "counter", _) <- families, not ("_total" `isSuffixOf` name)]
      <> [name <> ": only a counter does" | (name, kind, _) <- families, kind /= "counter", "_total" `isSuffixOf` name]
      <> [name <> ": no samples" | (name, _, []) <- families]
      <> [name <> ": the same sample twice" | (name, _, samples) <- families, keys <- [map keyOf samples], nub keys /= keys]
      <> [name <> ": a sample of another name" | (name, kind, samples) <- families, kind /= "histogram", any ((/= name) . fst . keyOf) samples]
      <> concat [histogramComplaints name samples | (name, "histogram", samples) <- families]
  where
    nameOf (name, _, _) = name

keyOf :: Line -> (String, [(String, String)])
keyOf = \case
  Sample name labels _ -> (name, sort labels)
  _ -> ("", [])

histogramComplaints :: String -> [Line] -> [String]
histogramComplaints name samples =
  [name <> ": " <> why | labels <- nub (map plain samples), why <- each [sample | sample <- samples, plain sample == labels]]
  where
    plain = filter ((/= "le") . fst) . snd . keyOf
    each group =
      ["not in the order of le" | bounds /= sort bounds || nub bounds /= bounds]
        <> ["not cumulative" | counts /= sort counts]
        <> ["no bucket without end" | take 1 (reverse bounds) /= [1 / 0]]
        <> ["the last bucket is not the count" | take 1 (reverse counts) /= named "_count"]
        <> ["not one sum" | length (named "_sum") /= 1]
      where
        buckets = [(fromMaybe (-1) (lookup "le" labels >>= number), value) | Sample bucket labels value <- group, bucket == name <> "_bucket"]
        bounds = map fst buckets
        counts = map snd buckets
        named suffix = [value | Sample other _ value <- group, other == name <> suffix]

pageOf :: ClientSnapshot -> String
pageOf = Lazy.unpack . toLazyByteString . prometheusText

newtype Any = Any {anySnapshot :: ClientSnapshot}
  deriving stock (Show)

instance Arbitrary Any where
  arbitrary = do
    endpoints <- fmap (take 3 . nub) . listOf $ oneof [TcpEndpoint "10.0.0.1" <$> arbitrary, UnixEndpoint <$> listOf1 (elements "/a b\"\\\n{},=")]
    Any <$> (ClientSnapshot <$> traverse anyNode endpoints <*> anyErrors <*> oneof [pure Nothing, Just <$> anyCache] <*> anySubscriptions)
    where
      few = getNonNegative <$> arbitrary
      anyCache = CacheGauges <$> few <*> few <*> few <*> few <*> few <*> few <*> few <*> few <*> few <*> few
      anySubscriptions = SubscriptionGauges <$> few <*> few <*> few
      anyErrors = ErrorCounts <$> few <*> few <*> few
      anyTrips = roundTripsOf <$> few <*> resize bucketCount (listOf few)
      anyMuxes = resize 3 (listOf (MuxGauges <$> few <*> few <*> few))
      anyNode endpoint =
        NodeSnapshot endpoint <$> anyMuxes <*> anyMuxes <*> anyMuxes
          <*> (DedicatedGauges <$> few <*> few <*> few <*> few)
          <*> anyTrips
          <*> anyTrips
          <*> anyTrips
          <*> anyTrips
          <*> few
          <*> few
          <*> few
          <*> few
          <*> few
          <*> few
          <*> anyErrors
          <*> few
          <*> few

spec :: Spec
spec = describe "the text for Prometheus" . modifyMaxSuccess (const 25) $ do
  it "is a page that Prometheus reads, of any snapshot" . property $ \(Any snapshot) ->
    complaints (pageOf snapshot) === []

  it "has each node under its name, whatever that is" . property $ \(Any snapshot) ->
    let Right parsed = parsePage (pageOf snapshot)
        opened = [(labels, value) | Sample "redis_client_connections_opened_total" labels value <- parsed]
     in opened === [([("node", nameOf node)], fromIntegral (countOpened node)) | node <- snapshotNodes snapshot]

  it "is UTF-8, whatever characters the path of a socket has" $ do
    let page = pageOf (ClientSnapshot [blank {gaugeEndpoint = UnixEndpoint "/run/\233\xdce9"}] (ErrorCounts 0 0 0) Nothing (SubscriptionGauges 0 0 0))
    lines page `shouldContain` ["redis_client_connections_opened_total{node=\"/run/\xc3\xa9\xef\xbf\xbd\"} 0"]

  it "has the times of a node in its histogram" . property $ \(Any snapshot) ->
    let Right parsed = parsePage (pageOf snapshot)
        counts = [value | Sample "redis_client_round_trip_seconds_count" labels value <- parsed, lookup "connections" labels == Just "shared"]
     in counts === [fromIntegral (roundTripCount (roundTrips node)) | node <- snapshotNodes snapshot]

  it "says what is counted, in seconds and to the last digit" $ do
    let trips = mconcat [roundTripsOf nanos [if bucket == bucketOf nanos then 1 else 0 | bucket <- [0 .. bucketCount - 1]] | nanos <- [500, 20000, 1500000, 90000000000]]
        node = blank {roundTrips = trips}
        text = lines (pageOf (ClientSnapshot [node] (ErrorCounts 0 0 1) Nothing (SubscriptionGauges 2 1 7)))
    text `shouldContain` ["# TYPE redis_client_round_trip_seconds histogram", "redis_client_round_trip_seconds_bucket{connections=\"shared\",node=\"h:1\",le=\"0.000016384\"} 1", "redis_client_round_trip_seconds_bucket{connections=\"shared\",node=\"h:1\",le=\"0.000032768\"} 2"]
    text `shouldContain` ["redis_client_round_trip_seconds_bucket{connections=\"shared\",node=\"h:1\",le=\"68.719476736\"} 3", "redis_client_round_trip_seconds_bucket{connections=\"shared\",node=\"h:1\",le=\"+Inf\"} 4", "redis_client_round_trip_seconds_sum{connections=\"shared\",node=\"h:1\"} 90.0015205", "redis_client_round_trip_seconds_count{connections=\"shared\",node=\"h:1\"} 4"]
    text `shouldContain` ["redis_client_subscription_events_waiting 7"]
    text `shouldContain` ["redis_client_errors_total{delivery=\"maybe_executed\",node=\"\"} 1"]

  it "finds the faults that it looks for" $ do
    complaints "# HELP a b\n# TYPE a counter\na 1\n" `shouldBe` ["a: a counter ends with _total"]
    complaints "# HELP a b\n# TYPE a gauge\na{x=\"1\"} 1\na{x=\"1\"} 2\n" `shouldBe` ["a: the same sample twice"]
    complaints "# HELP a b\n# TYPE a gauge\na{x=\"1\n\"} 1\n" `shouldSatisfy` (not . null)
    complaints "# HELP h b\n# TYPE h histogram\nh_bucket{le=\"1\"} 2\nh_bucket{le=\"+Inf\"} 1\nh_sum 1\nh_count 1\n" `shouldBe` ["h: not cumulative"]
  where
    nameOf node = case gaugeEndpoint node of
      TcpEndpoint _ port -> "10.0.0.1:" <> show port
      UnixEndpoint path -> path

blank :: NodeSnapshot
blank = NodeSnapshot (TcpEndpoint "h" 1) [] [] [] (DedicatedGauges 0 0 0 0) mempty mempty mempty mempty 0 0 0 0 0 0 (ErrorCounts 0 0 0) 0 0
