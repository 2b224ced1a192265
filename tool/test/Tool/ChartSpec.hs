module Tool.ChartSpec (spec) where

import Data.ByteString.Lazy.Char8 qualified as Lazy
import Data.List (isInfixOf, sort)
import Data.Text (Text)
import Data.Text qualified as Text
import Test.Hspec
import Test.Hspec.QuickCheck (prop)
import Test.QuickCheck hiding (scale)
import Tool.Chart
import Tool.Markup (element, render, text, (.=))
import WellFormed

drawn :: Chart -> String
drawn chart = Lazy.unpack (render (element "style" [] [styleSheet] <> figure chart))

anyNumber :: Gen Double
anyNumber = frequency [(8, choose (-10, 1e7)), (2, choose (0, 1)), (1, elements [0, 1 / 0, -1 / 0, 0 / 0, 1e300, -1e300, 1e-300])]

anyAxis :: Gen Axis
anyAxis =
  Axis <$> anyName <*> elements [Linear, Logarithmic, Nines] <*> elements [Plain, Thousands, Nanoseconds, Seconds, Bytes, Share]
    <*> oneof [pure Nothing, Just <$> choose (0, 10)]
    <*> oneof [pure Nothing, Just <$> choose (0, 1000)]

anyName :: Gen Text
anyName = elements ["", "get", "a < b & c", "\"quoted\" 'name'", "\228\8364", "<script>alert(1)</script>", "a\0b"]

anyChart :: Gen Chart
anyChart =
  Chart <$> anyName <*> anyName
    <*> oneof
      [ LinePlot <$> (Lines <$> anyAxis <*> anyAxis <*> upTo 3 anyLine <*> upTo 3 anyBand),
        BarPlot <$> (Bars <$> anyAxis <*> upTo 3 anyName <*> upTo 4 (Group <$> anyName <*> upTo 3 (oneof [pure Nothing, Just <$> anyBar]))),
        HeatPlot <$> (Heats <$> anyAxis <*> anyAxis <*> upTo 20 (Heat <$> pair <*> pair <*> anyNumber) <*> upTo 2 anyBand)
      ]
  where
    anyLine = Line <$> anyName <*> elements [Solid, Dashed] <*> upTo 50 pair <*> upTo 5 ((,,) <$> anyNumber <*> anyNumber <*> anyNumber) <*> oneof [pure Nothing, Just <$> choose (0, 20)]
    anyBand = Band <$> anyNumber <*> anyNumber <*> anyName <*> anyName
    anyBar = Bar <$> anyNumber <*> oneof [pure Nothing, Just <$> pair] <*> anyName
    pair = (,) <$> anyNumber <*> anyNumber
    upTo most one = choose (0, most) >>= (`vectorOf` one)

spec :: Spec
spec = describe "Tool.Chart" $ do
  prop "draws whatever there is to draw, well-formed and without places that are not numbers" $
    forAll anyChart $ \chart -> do
      let svg = drawn chart
      conjoin
        [ malformed svg === Nothing,
          counterexample svg (not (any (`isInfixOf` svg) ["NaN", "Infinity", "\"-\"", "<script"]))
        ]

  prop "has few ticks, in order, inside the axis" $
    forAll anyAxis $ \about ->
      forAll (listOf anyNumber) $ \values -> do
        let scale = scaleOf 6 about values
            places = map tickPlace (scaleTicks scale)
        counterexample (show (scaleEnds scale, scaleTicks scale)) $
          places == sort places && all (\place -> place > -0.01 && place < 1.01) places && length (filter ((/= "") . tickText) (scaleTicks scale)) <= 12

  it "puts the ends of an axis where the data is" $ do
    let scale = scaleOf 5 (axis "time" Linear Seconds) [3, 47]
    scaleEnds scale `shouldBe` (0, 50)
    map tickText (scaleTicks scale) `shouldBe` ["0 s", "10 s", "20 s", "30 s", "40 s", "50 s"]

  it "gives every nine the same room" $ do
    let scale = scaleOf 8 (axis "percentile" Nines Plain) [1, 1000]
    map tickText (scaleTicks scale) `shouldBe` ["0 %", "50 %", "90 %", "99 %", "99.9 %"]
    map (\quantile -> round (300 * scalePlace scale (1 / (1 - quantile))) :: Int) [0, 0.9, 0.99, 0.999] `shouldBe` [0, 100, 200, 300]

  it "writes numbers with the unit that fits" $ do
    map (format Nanoseconds) [0, 870, 12345, 4.56e6, 1.2e9, 3600e9] `shouldBe` ["0", "870 ns", "12.34 \181s", "4.56 ms", "1.2 s", "3600 s"]
    map (format Thousands) [0, 999, 1000, 1234567] `shouldBe` ["0", "999", "1 k", "1.235 M"]
    map (format Share) [0, 0.5, 0.9995] `shouldBe` ["0 %", "50 %", "99.95 %"]
    format Bytes 1500000 `shouldBe` "1.5 MB"

  it "shows the number, the whisker and the note of a bar" $ do
    let chart = Chart "Speed" "" (BarPlot (Bars (axis "commands per second" Linear Thousands) ["one", "other"] [Group "GET" [Just (Bar 1000 (Just (900, 1100)) "!"), Nothing]]))
        shown = textOf (drawn chart)
    [part | part <- ["Speed", "commands per second", "one", "other", "GET", "1 k !", "900 to 1.1 k"], not (part `isInfixOf` shown)] `shouldBe` []

  it "gives sixteen series a colour each" $ do
    let many = [Text.pack ("row " <> show number) | number <- [1 .. 16 :: Int]]
        bars = drawn (Chart "t" "" (BarPlot (Bars (axis "n" Linear Plain) many [Group "g" [Just (Bar 1 Nothing "") | _ <- many]])))
        coloured number = ("class=\"s" <> show number <> " fill\"") `isInfixOf` bars
        defined number = (".s" <> show number <> "{--c:var(--k" <> show number <> ")}") `isInfixOf` bars
    filter (not . coloured) [0 .. 15 :: Int] `shouldBe` []
    filter (not . defined) [0 .. 15 :: Int] `shouldBe` []
  it "escapes text wherever it stands" $
    Text.pack (Lazy.unpack (render (element "p" ["title" .= "\"<&'\SOH"] [text "<b>&\"'"])))
      `shouldSatisfy` Text.isPrefixOf "<p title=\"&quot;&lt;&amp;&#39;"
