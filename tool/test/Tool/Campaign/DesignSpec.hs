module Tool.Campaign.DesignSpec (spec) where

import Data.List (nub, sort)
import Data.List.NonEmpty (NonEmpty (..))
import Every (every)
import Test.Hspec
import Test.Hspec.QuickCheck (prop)
import Test.QuickCheck
import Tool.Campaign.Design

axes :: Axes
axes =
  Axes
    { axesServers = Named "redis-server" "redis-server" :| [Named "other" "/opt/other"],
      axesPersistence = PersistAofEverysec :| [PersistNone, PersistAofAlways],
      axesPlaces = Named "disk" "/tmp" :| [Named "memory" "/dev/shm"],
      axesWorkloads = "set" :| ["get", "ping_inline"],
      axesPayloads = 3 :| [3000],
      axesClients = 50 :| [1],
      axesNets = NetLocal :| [NetRoundTrip 124000]
    }

carriesValue :: String -> Bool
carriesValue = (/= "ping_inline")

costs :: Costs
costs = Costs {costsWarmup = 1, costsDuration = 5, costsOverhead = 1, costsReference = 0, costsDurability = 3}

baselineCell :: Cell
baselineCell = Cell (Named "redis-server" "redis-server") PersistAofEverysec (Named "disk" "/tmp") "set" 3 50 NetLocal

newtype Some = Some [(Reason, Cell)]
  deriving stock (Show)

instance Arbitrary Some where
  arbitrary = elements [Some (star carriesValue axes), Some (take 5 (star carriesValue axes)), Some (fullProduct carriesValue axes)]

spec :: Spec
spec = do
  describe "Tool.Campaign.Design" $ do
    it "begins the star with the baseline: the first of everything" $
      take 1 (star carriesValue axes) `shouldBe` [(ReasonBaseline, baselineCell)]

    it "varies every axis alone" $ do
      let alone axis = [cell | (ReasonAxis name, cell) <- star carriesValue axes, name == axis]
      alone "persistence" `shouldBe` [baselineCell {cellPersistence = each} | each <- [PersistNone, PersistAofAlways]]
      alone "payload" `shouldBe` [baselineCell {cellPayload = 3000}]
      alone "clients" `shouldBe` [baselineCell {cellClients = 1}]
      alone "net" `shouldBe` [baselineCell {cellNet = NetRoundTrip 124000}]
      alone "place" `shouldBe` [baselineCell {cellPlace = Named "memory" "/dev/shm"}]
      alone "server" `shouldBe` [baselineCell {cellServer = Named "other" "/opt/other"}]
      alone "workload" `shouldBe` [baselineCell {cellWorkload = each} | each <- ["get", "ping_inline"]]

    it "has the pairs: what always costs for one caller, far away, of large values" $ do
      let cells = map snd (star carriesValue axes)
          always = baselineCell {cellPersistence = PersistAofAlways}
      cells `shouldContain` [always {cellClients = 1}]
      cells `shouldContain` [always {cellClients = 1, cellNet = NetRoundTrip 124000}]
      cells `shouldContain` [always {cellPayload = 3000}]
      cells `shouldContain` [always {cellPlace = Named "memory" "/dev/shm"}]

    it "has no cell twice, and each of them in the full product" $ do
      let some = map snd (star carriesValue axes)
          all' = map snd (fullProduct carriesValue axes)
      length (nub some) `shouldBe` length some
      length (nub all') `shouldBe` length all'
      filter (`notElem` all') some `shouldBe` []
      length some < length all' `shouldBe` True

    it "does not vary the payload of a workload that has none" $
      [cellPayload cell | (_, cell) <- fullProduct carriesValue axes, cellWorkload cell == "ping_inline"]
        `shouldSatisfy` every (== 3)

    it "gives every cell a name of its own that can be a directory" $ do
      let names = map (cellName . snd) (fullProduct carriesValue axes)
      length (nub names) `shouldBe` length names
      cellName (baselineCell {cellNet = NetRoundTrip 124000})
        `shouldBe` "set.aof-everysec.disk.3B.50c.rtt-124us.redis-server"

  describe "Tool.Campaign.Design, the plan" $ do
    prop "measures every cell as often as it says, and none twice in a row but where it turns" $ \(Some cells) ->
      forAll (choose (1, 6)) $ \iterations ->
        case plan costs Nothing iterations [] cells of
          Left problem -> counterexample problem False
          Right it' ->
            sort (map stepName (steps it'))
              === sort [cellName cell <> "/" <> show number | (_, cell) <- cells, number <- [1 .. iterations]]

    it "goes forth and back" $ do
      let cells = take 3 (star carriesValue axes)
          order = map stepName . steps <$> plan costs Nothing 2 [] cells
      order
        `shouldBe` Right
          ( [cellName cell <> "/1" | (_, cell) <- cells]
              <> reverse [cellName cell <> "/2" | (_, cell) <- cells]
          )

    prop "keeps the budget, and says all that it leaves out" $ \(Some cells) ->
      forAll (choose (5, 4000)) $ \budget ->
        case plan costs (Just budget) 5 [] cells of
          Left _ -> property (budget < 20)
          Right it' ->
            counterexample (show (planCuts it')) $
              planSeconds it' <= budget
                && length (planCuts it')
                  == (length cells - length (planCells it')) + (if planIterations it' < 5 then 1 else 0)

    it "gives up iterations before cells, and keeps three of them" $ do
      let cells = star carriesValue axes
          full = either (const 0) planSeconds (plan costs Nothing 5 [] cells)
          with share = plan costs (Just (share * full)) 5 [] cells
          seen = either (const (0, 0)) (\it' -> (planIterations it', length (planCells it')))
      seen (with 1) `shouldBe` (5, length cells)
      seen (with 0.85) `shouldBe` (4, length cells)
      seen (with 0.61) `shouldBe` (3, length cells)
      fst (seen (with 0.4)) `shouldBe` 3
      snd (seen (with 0.4)) `shouldSatisfy` (< length cells)

    it "measures the only cell less than three times if no more fits" $
      (planIterations <$> plan costs (Just 15) 5 [] (take 1 (star carriesValue axes))) `shouldBe` Right 2

    it "says when not even the smallest plan fits" $
      plan costs (Just 2) 5 [] (star carriesValue axes) `shouldSatisfy` either ("budget" `elem'`) (const False)

    it "counts the questions that tell how far away a server is" $ do
      let seconds net = stepSeconds costs (StepCell baselineCell {cellNet = net} 1)
      seconds (NetRoundTrip 1000000000) - seconds NetLocal `shouldBe` 100

    it "counts the reference and the checks of durability of cells, and none of soaks" $ do
      let always = baselineCell {cellPersistence = PersistAofAlways}
          dear = costs {costsReference = 6}
      stepSeconds dear (StepCell always 1) `shouldBe` 16
      stepSeconds dear (StepCell baselineCell 1) `shouldBe` 13
      stepSeconds dear (StepSoak always 1800) `shouldBe` 1802

    it "gives soaks of different lengths different names" $ do
      let name = stepName . StepSoak baselineCell
      name 130 `shouldNotBe` name 145

    it "counts the soaks, and never cuts them" $ do
      let soak = (Soak "set" PersistAofAlways 1800, baselineCell {cellPersistence = PersistAofAlways})
      case plan costs (Just 1900) 5 [soak] (star carriesValue axes) of
        Left problem -> expectationFailure problem
        Right it' -> do
          planSeconds it' `shouldSatisfy` (\seconds -> seconds > 1800 && seconds <= 1900)
          planSoaks it' `shouldBe` [soak]
          renderPlan it' `shouldSatisfy` any ("30m" `elem'`)
  where
    elem' part text = part `elem` concatMap words' (lines text)
    words' = words . map (\character -> if character `elem` (",:" :: String) then ' ' else character)
