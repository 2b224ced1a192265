module Tool.Bench.Workload.KeysSpec (spec) where

import Control.Applicative (liftA3)
import Data.ByteString (ByteString)
import Data.ByteString qualified as ByteString
import Data.ByteString.Char8 qualified as Char8
import Data.Char (isHexDigit)
import Data.Foldable (for_)
import Data.List (nub)
import Data.Set qualified as Set
import Test.Hspec
import Test.Hspec.QuickCheck (prop)
import Test.QuickCheck
import Tool.Bench.Workload.Keys
import Tool.Bench.Workload.Syntax (parse)
import Tool.Text (argumentBytes)

names :: String -> Int -> Either String [ByteString]
names template count = (\read' -> let keys = newKeys 7 read' count in map (keyOf keys) [0 .. count - 1]) <$> parse keyTemplate template

spec :: Spec
spec = describe "Tool.Bench.Workload.Keys" $ do
  it "puts the number where the template wants it" $ do
    names "user:{n}:name" 11 `shouldBe` Right ["user:" <> Char8.pack (show number) <> ":name" | number <- [0 .. 10 :: Int]]
    names "{n:4}" 2 `shouldBe` Right ["0000", "0001"]
    names "a{{b}}{n}" 1 `shouldBe` Right ["a{b}0"]

  it "takes the bytes of the command line, whatever the locale made of them" $
    for_ ["\228", "\xDCC3\xDCA4"] $ \written -> do
      argumentBytes written `shouldBe` "\xC3\xA4"
      names (written <> "{tag:" <> written <> "}{n}") 1 `shouldBe` Right ["\xC3\xA4{\xC3\xA4}0"]

  it "takes hash tags by turns, each with its own numbers" $ do
    names "key:{tag:a,b2}:{n:3}" 5 `shouldBe` Right ["key:{a}:000", "key:{b2}:000", "key:{a}:001", "key:{b2}:001", "key:{a}:002"]
    names "{tag:only}{n}" 2 `shouldBe` Right ["{only}0", "{only}1"]
    parse keyTemplate "{tag:a,}{n}" `shouldBe` Left "a tag is empty at column 8 of \"{tag:a,}{n}\""
    parse keyTemplate "{tag:a,b,a}{n}" `shouldBe` Left "a tag is there twice at column 11 of \"{tag:a,b,a}{n}\""
    parse keyTemplate "{tag:a}{n}{tag:b}" `shouldBe` Left "a key has one hash tag at column 18 of \"{tag:a}{n}{tag:b}\""
    fmap tellsApart (parse keyTemplate "{tag:a,b}") `shouldBe` Right False

  it "keeps long names apart that differ in size" $ do
    let long = Char8.replicate 70000 'x'
    names (Char8.unpack long <> "{n}") 11 `shouldBe` Right [long <> Char8.pack (show number) | number <- [0 .. 10 :: Int]]

  it "makes UUIDs that are the same every time, and different from each other" $ do
    let made = names "participant_{uuid:1000}" 1000
    made `shouldBe` names "participant_{uuid:1000}" 1000
    fmap (Set.size . Set.fromList) made `shouldBe` Right 1000
    fmap (all shaped) made `shouldBe` Right True
    fmap templateCount (parse keyTemplate "participant_{uuid:1000}") `shouldBe` Right (Just 1000)

  it "makes as many hexadecimal digits as wanted" $
    fmap (map (\key -> (ByteString.length key, Char8.all isHexDigit key))) (names "{hex:9}" 20) `shouldBe` Right (replicate 20 (9, True))

  it "says what it cannot read, and where" $ do
    parse keyTemplate "key:{m}"
      `shouldBe` Left "expected {n}, {n:DIGITS}, {uuid}, {uuid:COUNT}, {hex:DIGITS} or {tag:TAG,TAG} ({{ is the brace itself) at column 5 of \"key:{m}\""
    parse keyTemplate "key:{n:x}" `shouldBe` Left "expected a number of digits at column 8 of \"key:{n:x}\""
    parse keyTemplate "key}" `shouldBe` Left "a } without its { (}} is the brace itself) at column 4 of \"key}\""
    parse keyTemplate "{uuid:0}" `shouldBe` Left "there must be a key at least at column 8 of \"{uuid:0}\""

  it "knows whether a template tells keys apart" $ do
    fmap tellsApart (parse keyTemplate "always") `shouldBe` Right False
    fmap tellsApart (parse keyTemplate "{hex:3}") `shouldBe` Right False
    fmap tellsApart (parse keyTemplate "x{n}") `shouldBe` Right True

  prop "reads what it writes" $
    forAll templates $ \template -> parse keyTemplate (describeKeyTemplate template) === Right template

  prop "names every key in its own size, alike or not" $
    forAll templates $ \template -> forAll (choose (1, 120)) $ \count ->
      let keys = newKeys 3 template count
          made = map (keyOf keys) [0 .. count - 1]
       in maximum (map ByteString.length made) === longestKey keys
            .&&. (if tellsApart template then Set.size (Set.fromList made) === count else property True)
  where
    shaped key = case map ByteString.length (Char8.split '-' (ByteString.drop 12 key)) of
      [8, 4, 4, 4, 12] -> Char8.take 12 key == "participant_" && Char8.index (Char8.drop 12 key) 14 == '8'
      _ -> False
    templates = KeyTemplate . apart <$> liftA3 (\front tag back -> front <> tag <> back) (listOf part) hashTag (listOf part)
    hashTag = oneof [pure [], (: []) . KeyTags . nub <$> listOf1 (Char8.pack <$> listOf1 (elements "ab:_0"))]
    part =
      oneof
        [ KeyText . Char8.pack <$> listOf1 (elements "ab:{}_0"),
          KeyNumber <$> choose (1, 12),
          KeyUuid <$> oneof [pure Nothing, Just <$> choose (1, 500)],
          KeyHex <$> choose (1, 16)
        ]
    -- Joins neighbouring texts.
    apart = \case
      KeyText one : KeyText other : others -> apart (KeyText (one <> other) : others)
      one : others -> one : apart others
      [] -> []
