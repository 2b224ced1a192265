module Tool.Bench.Driver.ForesightSpec (spec) where

import Control.Monad (foldM_, forM_)
import Data.IntMap.Strict qualified as IntMap
import Test.Hspec
import Test.Hspec.QuickCheck (prop)
import Test.QuickCheck
import Tool.Bench.Driver.Foresight

spec :: Spec
spec = describe "Tool.Bench.Driver.Foresight" $ do
  it "gives what is drawn four replies later, and nothing when nobody has sent it" $ do
    foresight <- newForesight 8 0
    forM_ [10 .. 17] $ willDraw foresight (-1)
    mapM (const (drawnSoon foresight (-1))) [1 .. 8 :: Int] `shouldReturn` [14, 15, 16, 17, -1, -1, -1, -1]

  -- No thread sends before it has its reply, so that no more notes are left than
  -- there are threads.
  prop "keeps the notes of each node apart and in order, however often its ring goes round" $
    forAll (choose (1, 20)) $ \threads -> forAll (choose (0, 5)) $ \nodes ->
      forAll (listOf ((,) <$> choose (-1, nodes - 1) <*> choose (0, 1000000))) $ \sends -> ioProperty $ do
        foresight <- newForesight threads nodes
        let waiting held node = IntMap.findWithDefault [] node held
            step (held, onTheWay) (node, number) = do
              (held', onTheWay') <- case onTheWay of
                -- All are waiting: the one that has waited longest gets its reply.
                first : others | length onTheWay == threads -> do
                  let notes = waiting held first
                  found <- drawnSoon foresight first
                  found `shouldBe` (if length notes > 4 then notes !! 4 else -1)
                  pure (IntMap.insert first (drop 1 notes) held, others)
                _ -> pure (held, onTheWay)
              willDraw foresight node number
              pure (IntMap.insertWith (flip (<>)) node [number] held', onTheWay' <> [node])
        foldM_ step (IntMap.empty, []) sends
