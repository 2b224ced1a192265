-- | The options of @bench campaign@.
module Tool.Options.Campaign
  ( CampaignOptions (..),
    campaignOptions,
    campaignProblem,
  )
where

import Data.Char (isDigit)
import Data.Foldable (asum)
import Data.List (intercalate, nub)
import Data.List.NonEmpty (NonEmpty)
import Data.List.NonEmpty qualified as NonEmpty
import Data.Maybe (isJust)
import Options.Applicative
import System.FilePath (takeFileName)
import Text.Read (readMaybe)
import Tool.Bench.Workload.Keys (keyTemplate)
import Tool.Bench.Workload.Syntax qualified as Syntax
import Tool.Campaign.Design
import Tool.Campaign.Workload (Workload (..), findWorkload, usualWorkloads, workloads)
import Tool.Options.Common
import Tool.Options.Load (allowOptions)
import Tool.Options.Workload (templateProblem)
import Tool.Span (nanosIn, parseSpan)

-- | The axes of a campaign, how it measures, and where it writes.
data CampaignOptions = CampaignOptions
  { -- | If it is empty: the server program on the search path.
    campaignServers :: [Named],
    campaignPersistence :: NonEmpty Persistence,
    -- | If it is empty: the directory for temporary files.
    campaignPlaces :: [Named],
    campaignWorkloads :: NonEmpty String,
    campaignPayloads :: NonEmpty Int,
    campaignClients :: NonEmpty Int,
    campaignNets :: NonEmpty Net,
    campaignFull :: Bool,
    campaignIterations :: Int,
    campaignMeasuring :: Measuring,
    campaignSoaks :: [Soak],
    campaignBudget :: Maybe Double,
    campaignPlanOnly :: Bool,
    campaignResume :: Bool,
    campaignOut :: FilePath
  }
  deriving stock (Eq, Show)

campaignOptions :: Parser CampaignOptions
campaignOptions =
  CampaignOptions
    <$> labelled "spawn" "PROGRAM" programs
    <*> axis "persist" "none|rdb|aof-no|aof-everysec|aof-always,…" keeping kept persistences
    <*> labelled "dir" "DIRECTORY" places
    <*> axis "workloads" "NAME,…" ("What is sent: " <> workloadNames) (workload, id) usualWorkloads
    <*> axis "payload" "BYTES,…" "Sizes of values" bytes [3, 30, 300, 3000]
    <*> axis "clients" "N,…" "Callers, each with one command in flight" callers [50, 1]
    <*> axis "net" "local|rtt=SPAN,…" distance (net, netName) distances
    <*> switch (long "full" <> help "Measure every combination of the axes, not only one or two axes at a time")
    <*> numberOption "iterations" 5 iterations
    <*> measuringOptions
    <*> many (option (eitherReader soak) (described "soak" "WORKLOAD:PERSISTENCE:SPAN" soaks))
    <*> optionalOption (eitherReader parseSpan) "budget" "SPAN" budget
    <*> switch (long "plan" <> help plans)
    <*> switch (long "resume" <> help "Continue the campaign in --out: measure what is missing")
    <*> strOption (described "out" "DIRECTORY" "Directory for results and reports" <> usually show "campaign")
  where
    programs = "Server programs to start (default: redis-server or valkey-server of the search path)"
    keeping = "How servers keep their data"
    kept = (persistence, persistenceName)
    persistences = [PersistAofEverysec, PersistNone, PersistRdb, PersistAofNo, PersistAofAlways]
    places = "Where servers keep their files (default: the directory for temporary files)"
    bytes = (whole "a number of bytes" 1 (64 * 1024 * 1024), show)
    callers = (whole "a number of clients" 1 100000, show)
    distances = [NetLocal, NetRoundTrip 124000, NetRoundTrip 1000000]
    distance = "Round trips to add: by the kernel (netem) where it can, else by a relay of this program"
    soaks = "Add one long run, and look for changes of its level; may be repeated"
    iterations = "Measurements per cell, each with a fresh server, in turns with all others"
    plans = "Print what would be measured and how long it would take, and do nothing"
    budget = "Leave out iterations, then cells, until the estimate fits; the report names them"
    labelled name what text =
      option (list named) (described name ("[LABEL=]" <> what <> ",…") text <> value [])
    axis name meta text (parse, render) standard =
      option (oneOrMore parse) $
        described name meta text
          <> foldMap value (NonEmpty.nonEmpty standard)
          <> showDefaultWith (intercalate "," . map render . NonEmpty.toList)

measuringOptions :: Parser Measuring
measuringOptions =
  Measuring
    <$> cores "server-cores" "Processors for servers, such as 0 or 0-3,8 (default: all)"
    <*> cores "client-cores" "Processors for the load (default: all)"
    <*> spanOption "warmup" 1 "Load before a measurement"
    <*> spanOption "duration" 10 "Length of a measurement"
    <*> numberOption "keys" 10000 "Different keys"
    <*> optionalOption str "key-template" "TEMPLATE" keys
    <*> switch (long "reference" <> help "Also measure with redis-benchmark, where it has the same test")
    <*> (nub <$> allowOptions)
    <*> spanOption "durability" 1 durability
  where
    keys = "Form of keys, such as participant_{uuid:10000} (default: the names of redis-benchmark)"
    durability =
      "After a cell with aof-always: write for this time, kill -9 the server, start it, and look for \
      \every acknowledged key; then the same with a simulated disk that loses unsynced data; \
      \0: neither"
    cores name text = option (eitherReader parseCores) (described name "LIST" text <> value [])

-- Reads parts between commas. Each part is read on its own; none may be empty.
list :: (String -> Either String a) -> ReadM [a]
list parse = eitherReader (traverse parse . splitAll ',')

oneOrMore :: (String -> Either String a) -> ReadM (NonEmpty a)
oneOrMore parse = eitherReader $ \text ->
  traverse parse (splitAll ',' text) >>= maybe (Left "nothing is named") Right . NonEmpty.nonEmpty

named :: String -> Either String Named
named text = case break (== '=') text of
  (label, '=' : path)
    | all allowed label && not (null label) && not (null path) -> Right (Named label path)
    | otherwise ->
      Left ("not LABEL=PATH with a label of letters, digits, -, _ and .: " <> show text)
  _
    | null text -> Left "an empty name"
    | otherwise -> Right (Named (map plain (labelOf text)) text)
  where
    plain character = if allowed character then character else '-'
    allowed character = character `elem` ['a' .. 'z'] <> ['A' .. 'Z'] <> ['0' .. '9'] <> "-_."
    labelOf path = case takeFileName path of
      "" -> "root"
      name -> name

persistence :: String -> Either String Persistence
persistence = choice what persistenceName [minBound ..]
  where
    what = "persistence is none, rdb, aof-no, aof-everysec or aof-always"

workload :: String -> Either String String
workload name = name <$ maybe (Left none) Right (findWorkload name)
  where
    none = "there is no workload " <> show name <> ", but " <> workloadNames

workloadNames :: String
workloadNames = unwords (map workloadName workloads)

whole :: String -> Int -> Int -> String -> Either String Int
whole what lowest highest text = case readMaybe text of
  Just number
    | all isDigit text, number >= toInteger lowest, number <= toInteger highest -> Right (fromInteger number)
  _ -> Left . unwords $ ["not", what, "from", show lowest, "to", show highest <> ":", show text]

net :: String -> Either String Net
net = \case
  "local" -> Right NetLocal
  'r' : 't' : 't' : '=' : text -> do
    added <- parseSpan text
    -- The library waits five seconds for a reply.
    if added >= 1e-6 && added <= 4
      then Right (NetRoundTrip (nanosIn added))
      else Left ("a round trip is from 1us to 4s, not " <> text)
  text -> Left ("the net is local or rtt=SPAN, not " <> show text)

soak :: String -> Either String Soak
soak text = case splitAll ':' text of
  [name, keeping, long'] -> Soak <$> workload name <*> persistence keeping <*> parseSpan long'
  _ -> Left ("a soak is WORKLOAD:PERSISTENCE:SPAN, not " <> show text)

parseCores :: String -> Either String [Int]
parseCores text = maybe (Left none) (Right . concat) (traverse part (splitAll ',' text))
  where
    none = "not a list of processors such as 0 or 0-3,8: " <> show text
    part piece = case break (== '-') piece of
      (first, '-' : final) -> do
        from <- number first
        to <- number final
        if from <= to then Just [from .. to] else Nothing
      (only, _) -> (: []) <$> number only
    number digits
      | not (null digits) && all isDigit digits && length digits <= 4 = readMaybe digits
      | otherwise = Nothing

-- | The problem of a combination of options, in one line.
campaignProblem :: CampaignOptions -> Maybe String
campaignProblem options =
  asum
    [ refused (measuringDuration measuring < 0.1) "--duration must be 100ms or more",
      between "--iterations" 1 1000 (campaignIterations options),
      between "--keys" 1 10000000 (measuringKeys measuring),
      twice "--spawn names two programs " "PROGRAM" (map namedLabel (campaignServers options)),
      twice "--dir names two directories " "DIRECTORY" (map namedLabel (campaignPlaces options)),
      any ((< 10) . soakSeconds) (campaignSoaks options)
        `refused` "a soak of less than 10s cannot show a change",
      refused (null (campaignOut options)) "--out must name a directory",
      (measuringReference measuring && isJust (measuringKeyForm measuring) && "get" `elem` campaignWorkloads options)
        `refused` "--reference would find no keys of --key-template: not with the workload get",
      measuringKeyForm measuring >>= formProblem
    ]
  where
    measuring = campaignMeasuring options
    twice problem what = fmap (\name -> problem <> show name <> ": use LABEL=" <> what) . namedTwice
    formProblem =
      either (Just . ("--key-template: " <>)) (templateProblem (measuringKeys measuring))
        . Syntax.parse keyTemplate
