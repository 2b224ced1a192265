-- | The tour's expected output for each group, and a check that the tour covers the headers of the
-- command modules.
module Toured
  ( toured,
    withoutCluster,
    withCluster5,
    oldHashFields,
    newHashFields,
    headersAreToured,
  )
where

import Data.Char (isSpace)
import Data.List (isInfixOf, isPrefixOf, isSuffixOf)
import System.Directory (doesDirectoryExist, listDirectory)
import Test.Hspec

-- | The expected output on a single server and in a cluster.
toured :: [(String, [String])]
toured =
  [ ( "strings",
      [ "Nothing",
        "Just \"hello\"",
        "12",
        "\"world\"",
        "True",
        "False",
        "1",
        "10",
        "[Just \"10\",Just \"me\",Nothing]",
        "Just \"hello, world\""
      ]
    ),
    ( "keys",
      [ "Just StringKey",
        "Just IntEncoding",
        "True",
        "False",
        "True",
        "NeverExpires",
        "True",
        "[\"example:{keys}\",\"example:{keys}:copy\",\"example:{keys}:new\"]",
        "2"
      ]
    ),
    ( "lists",
      [ "3",
        "Just \"first\"",
        "Just \"second\"",
        "1",
        "Just (\"example:{lists}\",\"third\")",
        "Nothing",
        "4",
        "Inserted 5",
        "[\"30\",\"4\",\"99\",\"100\",\"4\"]",
        "[1,4]",
        "[\"100\",\"99\"]"
      ]
    ),
    ( "hashes",
      [ "2",
        "1",
        "Just \"Ada\"",
        "[Just \"1815\",Nothing]",
        "[(\"name\",\"Ada\"),(\"born\",\"1815\"),(\"visits\",\"1\")]",
        "42",
        "False",
        "False",
        "([(\"visits\",\"42\")],Nothing)",
        "3",
        "[]"
      ]
    ),
    ( "sets",
      [ "2",
        "2",
        "True",
        "[False,True]",
        "[\"ada\",\"grace\"]",
        "[\"grace\"]",
        "[\"ada\",\"barbara\",\"grace\"]",
        "1",
        "1",
        "[\"ada\",\"grace\"]",
        "[\"ada\",\"ada\",\"ada\"]",
        "Just \"ada\""
      ]
    ),
    ( "sortedsets",
      [ "3",
        "1",
        "1",
        "52.5",
        "Just 60.0",
        "Just 2",
        "[(\"ada\",60.0),(\"grace\",58.0)]",
        "[\"grace\",\"ada\"]",
        "1",
        "[(\"grace\",65.5)]",
        "Just (\"ada\",60.0)"
      ]
    ),
    ( "streams",
      [ "True",
        "2",
        "[[(\"kind\",\"login\"),(\"user\",\"ada\")],[(\"kind\",\"logout\"),(\"user\",\"ada\")]]",
        "[(\"example:streams\",1)]",
        "1",
        "[(\"one\",1)]",
        "[[(\"kind\",\"logout\"),(\"user\",\"ada\")]]",
        "(2,1)"
      ]
    ),
    ( "geo",
      [ "2",
        "Just 166.2742",
        "[Just \"sqc8b49rny0\",Nothing]",
        "[\"Catania\",\"Palermo\"]",
        "[\"Catania\"]",
        "[(\"Catania\",Just 56.4413),(\"Palermo\",Just 190.4424)]",
        "[Just (15087,37503),Nothing]",
        "1"
      ]
    ),
    ( "bitmaps",
      [ "False",
        "True",
        "2",
        "1",
        "Just 7",
        "126",
        "1",
        "[Just 9,Just 15,Just 14]",
        "[14]"
      ]
    ),
    ( "hyperloglogs",
      [ "True",
        "False",
        "2",
        "3",
        "3",
        "True",
        "True"
      ]
    ),
    ( "scripts",
      [ "5",
        "Just \"5\"",
        "9",
        "10",
        "Array [Integer 1,Array [BulkString \"two\",NullOf PlainNull]]",
        "EVAL example:scripts: server error: OUT of order (it may have run)",
        "\"example_tour\"",
        "15"
      ]
    ),
    ( "publish",
      [ "0",
        "0",
        "[]",
        "[(\"example:publish\",0)]"
      ]
    ),
    ( "server",
      [ "Just \"master\"",
        "[0]",
        "True",
        "[Just 2,Just (-3)]",
        "False",
        "[[\"SET\",\"example:server\",\"value\"]]",
        "True",
        "[\"info\"]",
        "Just True",
        "True",
        "True"
      ]
    ),
    ( "access",
      [ "\"hello\"",
        "Just \"default\"",
        "[]",
        "Just \"example:access\"",
        "1",
        "Just \"~example:*\"",
        "[True,False]",
        "\"default\""
      ]
    )
  ]

withoutCluster :: (String, [String])
withoutCluster = ("cluster", ["CLUSTER SLOTS: server error: ERR This instance has cluster support disabled"])

-- | The expected output in a cluster of five nodes.
withCluster5 :: (String, [String])
withCluster5 = ("cluster", ["5", "(5,16384)", "13542", "True", "True", "1", "[\"example:cluster\"]"])

oldHashFields :: [String]
oldHashFields = ["HEXPIRE example:hashfields: server error: ERR unknown command 'HEXPIRE'"]

newHashFields :: [String]
newHashFields =
  [ "[HexpireSet,HexpireNoField]",
    "[FieldStays,NoSuchField]",
    "[HexpireUnchanged]",
    "[HpersistRemoved,HpersistUnchanged]",
    "[Just \"5678\"]",
    "[Just \"5678\"]"
  ]

-- | Every line of code in the header of a command module is a part of a line of the tour, or of a
-- program that is only compiled.
headersAreToured :: Expectation
headersAreToured = do
  -- "cabal run" starts in the folder of the repository, "cabal test" in that of the package.
  atTop <- doesDirectoryExist "examples/Tour"
  let top = if atTop then "" else "../"
  modules <- haskellFiles (top <> "client/src/Redis/Commands")
  tours <- haskellFiles (top <> "examples/Tour")
  run <- concat <$> traverse (fmap lines . readFile) ((top <> "examples/test/Untoured.hs") : tours)
  headers <- traverse (fmap (takeWhile (not . ("module " `isPrefixOf`)) . lines) . readFile) modules
  let shown = [code | line <- concat headers, Just code <- [codeOf line]]
  length shown `shouldSatisfy` (> length modules)
  filter (\code -> not (any (code `isInfixOf`) run)) shown `shouldBe` []

haskellFiles :: FilePath -> IO [FilePath]
haskellFiles folder = map ((folder <> "/") <>) . filter (".hs" `isSuffixOf`) <$> listDirectory folder

-- | The code of a line of a header, without the comment about its result.
codeOf :: String -> Maybe String
codeOf line
  | "-- > " `isPrefixOf` line = Just (withoutComment (dropWhile isSpace (drop 5 line)))
  | otherwise = Nothing

withoutComment :: String -> String
withoutComment code
  | null code || " -- " `isPrefixOf` code = ""
  | otherwise = take 1 code <> withoutComment (drop 1 code)
