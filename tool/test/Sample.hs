-- | Example results for the formats, and generators of any results.
module Sample
  ( sample,
    sampleSpec,
    sampleManifest,
    sampleDocument,
    sampleIteration,
    richDocument,
    reversedAgreement,
    anyDocument,
    anyHistogram,
  )
where

import Data.Map.Strict (Map)
import Data.Map.Strict qualified as Map
import Data.Text (Text)
import Data.Text qualified as Text
import Test.QuickCheck hiding (sample)
import Tool.Bench.Document
import Tool.Bench.Histogram (Histogram)
import Tool.Bench.Histogram qualified as Histogram

-- | A good run.
sample :: Run
sample =
  Run
    { runName = "cluster mixed",
      runSpec = sampleSpec,
      runServer = ServerFacts "redis 7.0.15" 5 Nothing Map.empty Nothing [],
      runIterations = [sampleIteration],
      runProblems = [],
      runNotes = [],
      runReference =
        Just
          Reference
            { referenceOpsPerSecond = 1000,
              referenceP50 = 0.5,
              referenceP99 = 0.9,
              referenceCpuPerOp = 206,
              referenceCommands = 5000,
              referenceArguments = ["redis-benchmark"],
              referenceTurns = Just [900, 1000, 1100]
            }
    }

-- | The specification of the run.
sampleSpec :: Spec
sampleSpec =
  Spec
    { specOperation = "mixed",
      specWorkload = "mixed",
      specSeed = 1,
      specKeys = 100000,
      specKeySize = 16,
      specDistribution = "uniform",
      specValueSizes = "512",
      specThreads = 16,
      specBatch = 64,
      specInFlight = 1024,
      specMuxCount = Nothing,
      specPolling = True,
      specCapabilities = 1,
      specLoop = Closed,
      specWarmup = 1,
      specDuration = Just 2,
      specRequests = Nothing,
      specTarget = TargetCluster,
      specTls = False,
      specProtocol = 3,
      specNetwork = "local",
      specPersistence = Nothing,
      specAxes = Map.empty
    }

-- | The run's only window: 800 GETs and 200 SETs in two seconds.
sampleIteration :: Iteration
sampleIteration =
  Iteration
    { iterationStarted = 1700000000000000000,
      iterationSeconds = 2,
      iterationCommon = Nothing,
      iterationCommands =
        Map.fromList
          [ ("get", CommandStats 800 0 Map.empty (Histogram.fromValues (map (* 1000) [1 .. 800])) Nothing),
            ("set", CommandStats 0 0 Map.empty (Histogram.fromValues (map (* 1000) [801 .. 1000])) Nothing)
          ],
      iterationErrors = Map.empty,
      iterationSeries = [],
      iterationNodes = Map.empty,
      iterationSamples = [],
      iterationEvents = [],
      iterationCpu = 412000,
      iterationGcCpu = Nothing,
      iterationMemory = Memory {memoryPeakResident = 3, memoryMaxInUse = 2, memoryMaxLive = 1},
      iterationTrust = noTrust,
      iterationAgreement = Agrees (Map.fromList [("get", 900), ("set", 400)])
    }

-- | Counts that differ by one SET.
reversedAgreement :: Agreement
reversedAgreement = Disagrees (Map.fromList [("get", 1), ("set", 2)]) (Map.fromList [("get", 1), ("set", 3)])

-- | The machine and program that made the run.
sampleManifest :: Manifest
sampleManifest =
  Manifest
    { manifestTool = "0.1.0.0",
      manifestRevision = Just "abc",
      manifestStarted = 1700000000000000000,
      manifestCommand = ["bench"],
      manifestOs = "linux",
      manifestArchitecture = "x86_64",
      manifestKernel = "6.1",
      manifestCpu = Just "a processor",
      manifestProcessors = 2,
      manifestMemory = Nothing,
      manifestVirtual = True,
      manifestClockSource = "tsc",
      manifestCompiler = "ghc-9.0.2",
      manifestCapabilities = 1,
      manifestRtsArguments = [],
      manifestDisk = Nothing,
      manifestFacts = Map.empty
    }

-- | A document with these runs.
sampleDocument :: [Run] -> Document
sampleDocument found =
  Document {documentManifest = sampleManifest, documentRuns = found, documentNotes = [], documentOrigins = []}

-- | Two runs with two windows of twenty seconds each, and with everything that a report can show.
-- The server pauses during the second window.
richDocument :: Document
richDocument =
  (sampleDocument [rich "cell A" 1 Closed, rich "cell B" 1.4 (OpenConstant 2000)]) {documentNotes = ["A note <about> all of it."]}
  where
    rich name slower loop =
      sample
        { runName = name,
          runSpec = sampleSpec {specLoop = loop},
          runServer = ServerFacts "redis 7.0.15" 2 (Just "0f") (Map.fromList [("appendfsync", "always")]) (Just (Clock 1500000 200000)) [],
          runIterations = [window slower loop 0, window slower loop 1],
          runNotes = ["A note about this run."]
        }
    window slower loop number =
      sampleIteration
        { iterationStarted = 1700000000000000000 + number * 25000000000,
          iterationSeconds = 20,
          iterationCommands = Map.unionsWith (<>) [fmap whole (sliceCommands each) | each <- slices],
          iterationSeries = slices,
          iterationNodes = Map.fromList [("127.0.0.1:7000", NodeStats Map.empty (Histogram.fromValues [100000, 200000])), ("127.0.0.1:7001", NodeStats (Map.fromList [("MOVED", 1)]) (Histogram.fromValues [150000]))],
          iterationSamples =
            [ ServerSample
                { sampleAt = fromIntegral second,
                  sampleNode = node,
                  sampleValues =
                    Map.fromList
                      [ ("used_cpu_sys", fromIntegral second * 0.3),
                        ("used_cpu_user", fromIntegral second * (if node == "127.0.0.1:7000" then 0.5 else 0.2)),
                        ("used_memory", 5e7 + fromIntegral second * 1e6),
                        ("used_memory_rss", 6e7 + fromIntegral second * 1.2e6)
                      ]
                }
              | second <- [0 .. 20 :: Int],
                node <- ["127.0.0.1:7000", "127.0.0.1:7001"]
            ],
          iterationEvents = [Event 8 11 "aof-rewrite" "rewrite of 12 MB", Event 15 15 "fsync-delay" "one write waited"],
          iterationTrust = noTrust {trustCpuShare = Just 0.61, trustLittle = Just 1.002, trustSteady = Just True, trustSchedule = Just (Histogram.fromValues [1000, 2000])}
        }
      where
        slices = [slice second | second <- [0 .. 19 :: Int]]
        slice second =
          Slice
            { sliceAt = fromIntegral second,
              sliceSpan = 1,
              sliceCommands = Map.fromList [("get", stats second 160), ("set", stats second 40)]
            }
        stats second count = SliceStats {sliceService = latencies second count, sliceResponse = if loop == Closed then Nothing else Just (latencies second count <> Histogram.fromValues []), sliceErrors = 0}
        latencies second count =
          Histogram.fromValues
            [ round (slower * (if number == 1 && second == 12 then 30 else 1) * 100000 * (1 + 4 * (fromIntegral place / fromIntegral count) ^ (6 :: Int) :: Double))
              | place <- [1 .. count - second * (if second > 10 then 2 else 0) :: Int]
            ]
        whole one = CommandStats (Histogram.count (sliceService one)) 0 Map.empty (sliceService one) (sliceResponse one)

-- | Any document. Every optional part is present in some of them.
anyDocument :: Gen Document
anyDocument = Document <$> anyManifest <*> few anyRun <*> few word <*> few anyOrigin

anyManifest :: Gen Manifest
anyManifest =
  Manifest <$> word <*> maybeOf word <*> arbitrary <*> few word <*> word <*> word <*> word <*> maybeOf word
    <*> arbitrary
    <*> arbitrary
    <*> arbitrary
    <*> word
    <*> word
    <*> arbitrary
    <*> few word
    <*> maybeOf (Disk <$> word <*> anyHistogram)
    <*> named word

anyOrigin :: Gen Origin
anyOrigin = Origin <$> word <*> anyManifest <*> maybeOf anyClock

anyClock :: Gen Clock
anyClock = Clock <$> arbitrary <*> arbitrary

anyRun :: Gen Run
anyRun = Run <$> word <*> anySpec <*> anyServer <*> few anyIteration <*> few word <*> few word <*> maybeOf anyReference

anySpec :: Gen Spec
anySpec =
  Spec <$> word <*> word <*> arbitrary <*> arbitrary <*> arbitrary <*> word <*> word <*> arbitrary <*> arbitrary <*> arbitrary
    <*> arbitrary
    <*> arbitrary
    <*> arbitrary
    <*> oneof [pure Closed, OpenConstant <$> arbitrary, OpenPoisson <$> arbitrary, OpenRamp <$> arbitrary <*> arbitrary]
    <*> arbitrary
    <*> arbitrary
    <*> arbitrary
    <*> elements [minBound .. maxBound]
    <*> arbitrary
    <*> arbitrary
    <*> word
    <*> maybeOf word
    <*> named word

anyServer :: Gen ServerFacts
anyServer = ServerFacts <$> word <*> arbitrary <*> maybeOf word <*> named word <*> maybeOf anyClock <*> few word

anyReference :: Gen Reference
anyReference = Reference <$> arbitrary <*> arbitrary <*> arbitrary <*> arbitrary <*> arbitrary <*> few word <*> maybeOf (few arbitrary)

anyIteration :: Gen Iteration
anyIteration =
  Iteration <$> arbitrary <*> arbitrary <*> maybeOf (Common <$> arbitrary <*> arbitrary) <*> named anyCommand <*> named arbitrary <*> few anySlice <*> named anyNode <*> few anySample
    <*> few anyEvent
    <*> arbitrary
    <*> arbitrary
    <*> (Memory <$> arbitrary <*> arbitrary <*> arbitrary)
    <*> anyTrust
    <*> oneof [Agrees <$> named arbitrary, Disagrees <$> named arbitrary <*> named arbitrary, NotComparable <$> word]
  where
    anyCommand = CommandStats <$> arbitrary <*> arbitrary <*> named arbitrary <*> anyHistogram <*> maybeOf anyHistogram
    anySlice = Slice <$> arbitrary <*> arbitrary <*> named (SliceStats <$> anyHistogram <*> maybeOf anyHistogram <*> arbitrary)
    anyNode = NodeStats <$> named arbitrary <*> anyHistogram
    anySample = ServerSample <$> arbitrary <*> word <*> named arbitrary
    anyEvent = Event <$> arbitrary <*> arbitrary <*> word <*> word
    anyTrust =
      Trust <$> arbitrary <*> arbitrary <*> arbitrary <*> arbitrary <*> arbitrary <*> maybeOf anyHistogram <*> few word

-- | Any latencies, from one nanosecond to centuries.
anyHistogram :: Gen Histogram
anyHistogram = Histogram.fromValues <$> listOf (oneof [choose (0, 3000), choose (0, 4000000000), choose (0, maxBound `div` 4)])

word :: Gen Text
word = Text.pack <$> resize 8 (listOf (elements "abcXYZ09 -_\"\\<&\228\8364"))

few :: Gen a -> Gen [a]
few one = choose (0, 2) >>= (`vectorOf` one)

maybeOf :: Gen a -> Gen (Maybe a)
maybeOf one = oneof [pure Nothing, Just <$> one]

named :: Gen a -> Gen (Map Text a)
named one = Map.fromList <$> few ((,) <$> word <*> one)
