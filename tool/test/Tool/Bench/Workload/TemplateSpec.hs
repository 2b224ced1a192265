module Tool.Bench.Workload.TemplateSpec (spec) where

import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Data.Either (fromLeft, isLeft)
import Data.List (isInfixOf)
import Data.List.NonEmpty (NonEmpty (..))
import Test.Hspec
import Test.Hspec.QuickCheck (prop)
import Test.QuickCheck
import Tool.Bench.Workload.Distribution (Distribution (..))
import Tool.Bench.Workload.Syntax (parse)
import Tool.Bench.Workload.Template

reads' :: String -> Either String [TemplateWord]
reads' written = (\(Template found) -> found) <$> parse commandTemplate written

plain :: ByteString -> TemplateWord
plain word = OneWord [Literal word]

spec :: Spec
spec = do
  describe "Tool.Bench.Workload.Template" $ do
    it "understands redis-benchmark and valkey-benchmark" $ do
      reads' "HSET h:__rand_int__ f __data__" `shouldBe` Right [plain "HSET", OneWord [Literal "h:", RandomInt], plain "f", OneWord [Data]]
      reads' "MSET {tag}:__rand_1st__ a {tag}:__rand_9th__ __rand_1st__"
        `shouldBe` Right
          [ plain "MSET",
            OneWord [HashTag, Literal ":", RandomNth 1],
            plain "a",
            OneWord [HashTag, Literal ":", RandomNth 9],
            OneWord [RandomNth 1]
          ]

    it "understands memtier_benchmark" $
      reads' "SET __key__ __data__ EX 30" `shouldBe` Right [plain "SET", OneWord [DrawnKey], OneWord [Data], plain "EX", plain "30"]

    it "understands resp-benchmark" $
      reads' "ZADD {key sequence 1000} {rand 70} {value 8}  {range 100 10} {key uniform 5}{key zipfian 6}"
        `shouldBe` Right
          [ plain "ZADD",
            OneWord [NamedKey Sequential 1000],
            OneWord [RandomBelow 70],
            OneWord [RandomValue 8],
            TwoNumbers 100 10,
            OneWord [NamedKey Uniform 5, NamedKey (Zipf 1.03) 6]
          ]

    it "keeps quoted words together, with the escapes of each kind of quote" $ do
      reads' "EVAL \"return 'a b'\" 0" `shouldBe` Right [plain "EVAL", plain "return 'a b'", plain "0"]
      reads' "SET k \"\\x41\\n\\\"\\\\\" '' '\\n\\''" `shouldBe` Right [plain "SET", plain "k", plain "A\n\"\\", plain "", plain "\\n'"]
      reads' "SET k \"\\a\\b\\t\"" `shouldBe` Right [plain "SET", plain "k", plain "\a\b\t"]
      reads' "SET \xDCC3\xDCA4 \228" `shouldBe` Right [plain "SET", plain "\xC3\xA4", plain "\xC3\xA4"]
      reads' "SET 'a __rand_int__' x" `shouldBe` Right [plain "SET", OneWord [Literal "a ", RandomInt], plain "x"]

    it "leaves alone what only looks like a placeholder" $ do
      reads' "EVAL 'return {1, {2}, ARGV[1]}' 0" `shouldBe` Right [plain "EVAL", plain "return {1, {2}, ARGV[1]}", plain "0"]
      reads' "SET {{user}}:1 a__b" `shouldBe` Right [plain "SET", plain "{user}:1", plain "a__b"]
      reads' "SET {1} _" `shouldBe` Right [plain "SET", plain "{1}", plain "_"]

    it "says in one line what it cannot read, and where" $ do
      refused "SET {vlaue 3} x" ["{value N}", "column 6"]
      refused "SET {user}:1 x" ["{{ is the brace itself", "column 6"]
      refused "SET __rand__ x" ["there is no placeholder __rand__", "column 7"]
      refused "SET __rand_10th__ x" ["there is no placeholder", "column 7"]
      refused "SET {value } x" ["expected a number of bytes", "column 12"]
      refused "SET {value 99999999} x" ["at most"]
      refused "GET {key zipfian 1000000000}" ["16777216 at most", "column 28"]
      refused "GET 'abc" ["quote is never closed", "column 9"]
      refused "GET 'a'b" ["expected a blank after the quote", "column 8"]
      refused "GET {range 9 2}x" ["expected a blank", "column 16"]
      refused "GET {range 10 10}" ["a width can be 9 at most"]
      refused "GET 'x {range 1 2}'" ["{range N W}"]
      refused "  " ["a command is missing"]
      refused "__key__ 1" ["plain word"]
      refused "SET \"\\xg1\" 2" ["two hexadecimal digits", "column 8"]

    prop "reads any text or says in one line why not" $ \(written :: String) ->
      either ((=== 1) . length . lines) (const (property True)) (reads' written)

    prop "gives back any words in double quotes" $
      forAll (listOf1 (Char8.pack <$> listOf1 printable)) $ \found ->
        let quote word = "\"" <> concatMap escape (Char8.unpack word) <> "\""
            escape char
              | char `elem` ("\\\"" :: String) = ['\\', char]
              | char `elem` ("{}_" :: String) = "\\x" <> hexOf char
              | char > '~' = []
              | otherwise = [char]
            ascii = Char8.filter (<= '~')
         in reads' (unwords (map quote found)) === Right (map (plain . ascii) found)

  describe "Tool.Bench.Workload.Task" $ do
    it "reads a mix of tests and commands, with weights and without" $ do
      command <- either fail pure (parse commandTemplate "INCR c:__rand_int__")
      parse mix "70:get,20:set,10:'INCR c:__rand_int__'"
        `shouldBe` Right ((70, TaskNamed "get") :| [(20, TaskNamed "set"), (10, TaskCommand "INCR c:__rand_int__" command)])
      parse mix "get,3:set" `shouldBe` Right ((1, TaskNamed "get") :| [(3, TaskNamed "set")])
      fmap describeMix (parse mix "70:get,30:set") `shouldBe` Right "70:get,30:set"
      fmap describeMix (parse mix "get") `shouldBe` Right "get"

    it "reads names of tests and of groups" $ do
      parse taskList "ping,get" `shouldBe` Right [TaskNamed "ping_inline", TaskNamed "ping_mbulk", TaskNamed "get"]
      fmap length (parse taskList "all") `shouldBe` Right 20

    it "says what it cannot read, and where" $ do
      fromLeft "" (parse mix "70:gte") `shouldSatisfy` ("there is no test \"gte\"" `isInfixOf`)
      fromLeft "" (parse mix "0:get") `shouldSatisfy` ("a weight is 1 at least at column 3" `isInfixOf`)
      fromLeft "" (parse mix "1:'GET {vlaue}'") `shouldSatisfy` ("column 6 of \"GET {vlaue}\"" `isInfixOf`)
      parse mix "" `shouldSatisfy` isLeft
      parse taskList "get,,set" `shouldSatisfy` isLeft
      parse taskList "get,set,get" `shouldBe` Left "get is named twice at column 12 of \"get,set,get\""
      fromLeft "" (parse taskList "ping,ping_inline") `shouldSatisfy` ("ping_inline is named twice" `isInfixOf`)
  where
    refused written parts = case reads' written of
      Right found -> expectationFailure (show found)
      Left problem -> do
        lines problem `shouldBe` [problem]
        parts `shouldSatisfy` all (`isInfixOf` problem)
    printable = choose (' ', '~')
    hexOf char = let code = fromEnum char in [digit (code `div` 16), digit (code `mod` 16)]
    digit n = if n < 10 then toEnum (48 + n) else toEnum (87 + n)
