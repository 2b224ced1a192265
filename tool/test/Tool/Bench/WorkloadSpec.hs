module Tool.Bench.WorkloadSpec (spec) where

import Control.Monad (replicateM)
import Data.ByteString (ByteString)
import Data.ByteString qualified as ByteString
import Data.ByteString.Char8 qualified as Char8
import Data.Either (isLeft)
import Data.List.NonEmpty (NonEmpty (..))
import Data.Map.Strict qualified as Map
import Data.Set qualified as Set
import Redis.Command (commandArguments, commandKeys, decoded)
import Redis.TestKit.Command (encodeRequest)
import Redis.Value (Value (..))
import Test.Hspec
import Test.Hspec.QuickCheck (prop)
import Test.QuickCheck
import Tool.Bench.Arrivals (Arrivals (Constant))
import Tool.Bench.Driver (senderCount)
import Tool.Bench.Workload
import Tool.Bench.Workload.Dataset (Shape (..), defaultShape)
import Tool.Bench.Workload.Distribution (Distribution (Disjoint))
import Tool.Bench.Workload.Syntax (parse)
import Tool.Bench.Workload.Template (mix)
import Tool.Options.Bench
import Tool.Options.Load (Plan (..), Sending (..), Sweep (..), defaultPlan)
import Tool.Options.Workload (WorkloadOptions (workloadDistribution), defaultWorkload)

-- | A command as it is sent: name and arguments.
type Sent = [ByteString]

take' :: Int -> Int -> Workload -> IO [Sent]
take' size worker workload = do
  stream <- newStream workload worker
  replicateM size $
    next workload stream >>= \case
      Drawn _ _ command -> pure (argumentsOf (encodeRequest (commandArguments command)))
      DrawnAlone _ _ -> fail "not a single command"

-- | The arguments of an encoded command.
argumentsOf :: ByteString -> [ByteString]
argumentsOf = go . Char8.drop 1 . snd . Char8.breakSubstring "\r\n$"
  where
    go rest
      | Just (size, tail') <- Char8.readInt =<< Char8.stripPrefix "\n$" (Char8.dropWhile (== '\r') rest) =
        let (argument, others) = ByteString.splitAt size (ByteString.drop 2 tail')
         in argument : go others
      | otherwise = []

keyOf :: Sent -> ByteString
keyOf = mconcat . take 1 . drop 1

isSet :: Sent -> Bool
isSet = (== ["SET"]) . take 1

spec :: Spec
spec = describe "Tool.Bench.Workload" $ do
  it "draws the same commands again from the same seed" $ do
    let load = defaultLoad {loadSeed = 42}
    one <- take' 1000 3 (newWorkload OperationMixed load)
    other <- take' 1000 3 (newWorkload OperationMixed load)
    one `shouldBe` other

  it "draws other commands for another worker, and from another seed" $ do
    let workload = newWorkload OperationMixed defaultLoad
    one <- take' 100 0 workload
    neighbour <- take' 100 1 workload
    reseeded <- take' 100 0 (newWorkload OperationMixed defaultLoad {loadSeed = 2})
    one `shouldNotBe` neighbour
    one `shouldNotBe` reseeded

  it "names keys as redis-benchmark does when their size is the same" $ do
    let workload = newWorkload OperationGet defaultLoad
    workloadKey workload 0 `shouldBe` "key:000000000000"
    workloadKey workload 99999 `shouldBe` "key:000000099999"

  prop "makes different keys of exactly the wanted size" $
    forAll (choose (1, 3000)) $ \keys -> forAll (choose (0, 40)) $ \spare ->
      let size = length (show (keys - 1)) + spare
          workload = newWorkload OperationGet defaultLoad {loadKeys = keys, loadKeySize = size}
          names = map (workloadKey workload) [0 .. keys - 1]
       in workloadKeys workload === keys
            .&&. Set.size (Set.fromList names) === keys
            .&&. all ((== size) . ByteString.length) names

  prop "makes values of exactly the wanted size" $
    forAll (choose (0, 5000)) $ \size -> forAll (choose (0, maxBound)) $ \number ->
      ByteString.length (workloadValue (newWorkload OperationSet defaultLoad {loadKeys = 1, loadValueSize = size}) number)
        === size

  it "sets each key to its own value" $ do
    let workload = newWorkload OperationSet defaultLoad {loadKeys = 50}
        held = Map.fromList [(workloadKey workload number, workloadValue workload number) | number <- [0 .. 49]]
    sent <- take' 1000 0 workload
    [key | [_, key, value] <- sent, Map.lookup key held /= Just value] `shouldBe` []
    length sent `shouldBe` 1000

  it "knows a hit, a miss and the value of another key by the reply" $ do
    let workload = newWorkload OperationGet defaultLoad {loadKeys = 2}
    stream <- newStream workload 0
    next workload stream >>= \case
      Drawn kind number command -> do
        kind `shouldBe` 0
        let key = keyOf (argumentsOf (encodeRequest (commandArguments command)))
            (own, other) = if key == workloadKey workload 0 then (0, 1) else (1, 0)
            outcome reply = verdict workload number <$> decoded command reply
        outcome (BulkString (workloadValue workload own)) `shouldBe` Right Hit
        outcome (BulkString (workloadValue workload other)) `shouldBe` Right (Wrong (workloadValue workload other))
        outcome Null `shouldBe` Right Miss
        outcome (Integer 1) `shouldSatisfy` isLeft
      DrawnAlone _ _ -> expectationFailure "not a single command"

  it "names its kinds, and what the server counts of them" $ do
    let workload = newWorkload OperationMixed defaultLoad
    kinds workload `shouldBe` ["set", "get"]
    map (expectedStats workload) [0 .. 2] `shouldBe` [[("set", 1)], [("get", 1)], []]

  it "sends only GETs, only SETs, or one SET in five" $ do
    let shareOfSets operation = do
          drawn <- take' 50000 0 (newWorkload operation defaultLoad)
          pure (fromIntegral (length (filter isSet drawn)) / 50000 :: Double)
    shareOfSets OperationGet `shouldReturn` 0
    shareOfSets OperationSet `shouldReturn` 1
    -- The standard deviation of this share is 0.0018.
    mixed <- shareOfSets OperationMixed
    mixed `shouldSatisfy` (\share -> abs (share - 0.2) < 0.009)

  it "divides the keys among the threads that send, which are fewer in an open loop" $ do
    let sending how = defaultLoad {loadThreads = 16, loadKeys = 100, loadPlan = defaultPlan {planSending = how}}
        load = sending (AtTimes (Constant 1000))
        threads = senderCount load 2
    map ((`senderCount` 2) . sending) [WhenAnswered, AtTimes (Constant 1000), Sweeping (SweepSteps 4)] `shouldBe` [16, 2, 2]
    case chosenWorkloads False threads defaultWorkload {workloadDistribution = Disjoint} load of
      Right (workload :| []) -> do
        drawn <- traverse (\thread -> take' 50 thread workload) [0 .. threads - 1]
        Set.size (Set.fromList (map keyOf (concat drawn))) `shouldBe` 100
      _ -> expectationFailure "not one workload"

  it "takes no number for a key, whatever the key is called" $ do
    tasks <- either fail pure (parse mix "'LRANGE 0 {range 100 10}'")
    workload <- either fail pure (makeWorkload Nothing defaultShape {shapeKeys = 10} tasks)
    stream <- newStream workload 0
    next workload stream >>= \case
      Drawn _ _ command -> commandKeys command `shouldBe` ["0"]
      DrawnAlone _ _ -> expectationFailure "not a single command"

  it "expects misses of preloaded keys only where keys expire or a command of the user's own may delete them" $ do
    let wanted written = parse mix written >>= fmap (Map.member "misses" . missesWanted) . makeWorkload Nothing defaultShape {shapeKeys = 1}
    map wanted ["1:get,1:'INCR c'", "1:get,1:'SET c 1'", "1:get,1:'HGET h f'", "1:get,1:lpop"] `shouldBe` replicate 4 (Right False)
    map wanted ["1:get,1:'DEL __key__'", "1:get,1:'SET __key__ 1 EX 9'", "1:get,1:'FLUSHALL'", "1:get,1:setex"] `shouldBe` replicate 4 (Right True)

  it "tells what the user's own command finds from what it does not" $ do
    let outcome written reply = do
          tasks <- either fail pure (parse mix written)
          workload <- either fail pure (makeWorkload Nothing defaultShape {shapeKeys = 1} tasks)
          newStream workload 0 >>= next workload >>= \case
            Drawn _ _ command -> pure (decoded command reply)
            DrawnAlone _ _ -> fail "not a single command"
        nothing = [("MGET a b", Array [Null, Null]), ("HMGET h f", Array [Null]), ("EXISTS k", Integer 0), ("LLEN l", Integer 0), ("GETRANGE k 0 9", BulkString ""), ("TTL k", Integer (-2)), ("TYPE k", SimpleString "none")]
        something = [("MGET a b", Array [Null, BulkString ""]), ("EXISTS k", Integer 1), ("ZRANK z m", Integer 0), ("GET k", BulkString ""), ("TTL k", Integer (-1)), ("TYPE k", SimpleString "list")]
    traverse (uncurry outcome) nothing `shouldReturn` map (const (Right Miss)) nothing
    traverse (uncurry outcome) something `shouldReturn` map (const (Right Hit)) something

  it "compares no counts of commands that this program sends, too, or that go to several nodes" $ do
    let comparable clustered written = parse mix written >>= fmap countsComparable . makeWorkload Nothing defaultShape {shapeKeys = 1, shapeClustered = clustered}
    map (comparable False) ["'DBSIZE'", "'INFO server'", "'TIME'", "'GET k'"] `shouldBe` map Right [False, False, True, True]
    map (comparable True) ["'FLUSHALL'", "'GET k'"] `shouldBe` map Right [False, True]

  it "draws all keys equally often, whatever the command" $ do
    let load = defaultLoad {loadKeys = 100}
    drawn <- take' 100000 0 (newWorkload OperationMixed load)
    let chiSquare wanted =
          let chosen = filter wanted drawn
              expected = fromIntegral (length chosen) / 100 :: Double
              held = Map.fromListWith (+) [(keyOf one, 1) | one <- chosen]
           in (Map.size held, sum [(seen - expected) ^ (2 :: Int) / expected | seen <- Map.elems held])
    -- 99 degrees of freedom: above 180 once in a million.
    chiSquare isSet `shouldSatisfy` (\(held, statistic) -> held == 100 && statistic < 180)
    chiSquare (not . isSet) `shouldSatisfy` (\(held, statistic) -> held == 100 && statistic < 180)
