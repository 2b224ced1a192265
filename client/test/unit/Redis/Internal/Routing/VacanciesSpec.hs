module Redis.Internal.Routing.VacanciesSpec (spec) where

import Redis.Internal.Protocol.Slot (slotFromInt)
import Redis.Internal.Routing.Vacancies
import Test.Hspec

spec :: Spec
spec = describe "a slot that had nobody" $ do
  let known = pure (Just (1 :: Int))
      unknown = pure (Nothing :: Maybe Int)
      place vacancies = unlessVacant vacancies . slotFromInt

  it "has nobody for the commands behind, although a node is known by then" $ do
    vacancies <- newVacancies
    place vacancies 5 unknown `shouldReturn` Nothing
    place vacancies 5 known `shouldReturn` Nothing

  it "is nothing to other slots" $ do
    vacancies <- newVacancies
    place vacancies 5 unknown `shouldReturn` Nothing
    place vacancies 6 known `shouldReturn` Just 1
    place vacancies 6 unknown `shouldReturn` Nothing

  it "is forgotten with its batch" $ do
    one <- newVacancies
    place one 5 unknown `shouldReturn` Nothing
    next <- newVacancies
    place next 5 known `shouldReturn` Just 1

  it "is not said of commands without a slot" $ do
    vacancies <- newVacancies
    unlessVacant vacancies Nothing unknown `shouldReturn` Nothing
    unlessVacant vacancies Nothing known `shouldReturn` Just 1
