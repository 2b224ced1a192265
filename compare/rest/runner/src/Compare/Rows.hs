-- | The services that are compared, with their settings.
module Compare.Rows
  ( Row (..),
    rowsOf,
    goalRows,
    naiveRows,
    isNaive,
    studyRows,
    spreadRows,
    otherVersions,

    -- * Warm-up
    warmSeconds,
    coldSeconds,
  )
where

import Compare.Cell (Layout (..))
import Compare.Service (Program (..))
import Data.Text (Text)
import Data.Text qualified as Text

-- | A service with its settings.
data Row = Row
  { rowName :: Text,
    -- | One line for the report.
    rowAbout :: Text,
    rowProgram :: Layout -> Program,
    -- | Seconds of load before the measurement; at least 'warmSeconds'.
    rowWarmup :: Int
  }

-- | The seconds at the end of the warm-up whose rate is recorded: it shows whether the service was
-- warm.
warmSeconds :: Int
warmSeconds = 2

-- | The seconds of warm-up before 'warmSeconds'.
coldSeconds :: Row -> Int
coldSeconds row = max 1 (rowWarmup row - warmSeconds)

-- | All rows for which there are programs: the Haskell service, and the ones in C# by name. The
-- number is the seconds of warm-up, the same for all rows: so a runtime that compiles while it runs
-- has time to do so, and no service has a larger database than another because it had more time to
-- fill it.
rowsOf :: FilePath -> [(Text, FilePath)] -> Int -> [Row]
rowsOf haskell dotnets warmup =
  [ row "haskell" "warp, redis-client" [] [],
    row "haskell-naive" "the original's design: Scotty, a connection to SQLite per request" [("MODE", "naive")] [],
    row "haskell-scotty" "Scotty instead of warp alone" [("HTTP_LAYER", "scotty")] [],
    row "haskell-aeson" "rows to JSON by records and aeson" [("JSON", "aeson")] [],
    row "haskell-never-poll" "the client sleeps at once when it waits for Redis" [("POLLING", "never")] [],
    row "haskell-rts-default" "the runtime's own settings" [] ["-A1m", "-I0.3"],
    row "haskell-rts-I0" "the runtime's own settings, but for the collection when idle" [] ["-A1m", "-I0"],
    row "haskell-rts-A4m" "" [] ["-A4m"],
    row "haskell-rts-A64m-n4m" "" [] ["-A64m", "-n4m"],
    row "haskell-rts-H512m" "half a gigabyte of heap, suggested" [] ["-H512m"],
    row "haskell-rts-A128m-n8m-H1g" "what the original chose (its -qb applies to several capabilities)" [] ["-H1024m", "-A128m", "-n8m"],
    row "haskell-rts-nonmoving" "the concurrent collector" [] ["--nonmoving-gc"],
    row "haskell-rts-N1" "one capability" [] ["-N1"],
    row "haskell-rts-qg" "one thread collects" [] ["-qg"],
    row "haskell-rts-qb" "threads that collect do not share work" [] ["-qb"],
    row "haskell-rts-A128m-n8m-H1g-qb" "what the original chose, whole" [] ["-H1024m", "-A128m", "-n8m", "-qb"]
  ]
    <> concat
      [ [ dotnetRow name "ASP.NET Core, StackExchange.Redis" [] path,
          dotnetRow (name <> "-naive") "the original's design: a connection to SQLite per request" [("MODE", "naive")] path
        ]
        | (name, path) <- dotnets
      ]
  where
    row name about variables flags =
      Row
        { rowName = name,
          rowAbout = about,
          rowProgram = \layout ->
            Program
              { programName = Text.unpack name,
                programPath = haskell,
                -- With all processors, each capability stays on one of them. This does not work
                -- with only some of them: the runtime would count from the machine's first.
                programArguments = runtime (flags <> ["-qa" | layout == Free]),
                programEnvironment = variables
              },
          rowWarmup = warmup
        }
    dotnetRow name about variables path =
      Row
        { rowName = name,
          rowAbout = about,
          rowProgram =
            const
              Program
                { programName = Text.unpack name,
                  programPath = path,
                  programArguments = [],
                  programEnvironment = variables <> recommended
                },
          rowWarmup = warmup
        }
    runtime flags = if null flags then [] else ["+RTS"] <> flags <> ["-RTS"]
    -- The settings that the framework's authors use when they measure it.
    recommended =
      [ ("DOTNET_GCDynamicAdaptationMode", "0"),
        ("DOTNET_ReadyToRun", "0"),
        ("DOTNET_HillClimbing_Disable", "1"),
        ("DOTNET_TieredPGO", "1")
      ]

-- | The rows that goals are about: this library's service, and its peers.
goalRows, naiveRows, studyRows, spreadRows :: [Row] -> [Row]
goalRows = filter (\row -> rowName row == "haskell" || ("dotnet" `Text.isPrefixOf` rowName row && not (isNaive row)))

-- | The rows with the original's design; of the versions in C# only the first.
naiveRows rows = filter (\row -> isNaive row && rowName row `notElem` map ((<> "-naive") . rowName) (otherVersions rows)) rows

-- | The versions in C# after the first.
otherVersions :: [Row] -> [Row]
otherVersions = drop 1 . filter (\row -> "dotnet" `Text.isPrefixOf` rowName row && not (isNaive row))

-- | The variants of the Haskell service that make sense on one processor.
studyRows = filter (\row -> "haskell" `Text.isPrefixOf` rowName row && not (isNaive row) && not (isSpread row))

-- | The Haskell service and its variants for several processors.
spreadRows = filter (\row -> rowName row == "haskell" || isSpread row)

isSpread :: Row -> Bool
isSpread row = rowName row `elem` ["haskell-rts-N1", "haskell-rts-qg", "haskell-rts-qb", "haskell-rts-A128m-n8m-H1g-qb"]

-- | Whether the row has the original's design.
isNaive :: Row -> Bool
isNaive row = "-naive" `Text.isSuffixOf` rowName row
