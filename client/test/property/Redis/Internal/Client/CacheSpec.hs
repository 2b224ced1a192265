-- | "Redis.Internal.Client.Cache": searched exhaustively in a small world, and compared with a
-- plain list in a large one.
module Redis.Internal.Client.CacheSpec (spec) where

import Control.Monad (forM_)
import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Data.List (foldl', sort)
import Data.Maybe (isNothing, mapMaybe)
import Data.Set (Set)
import Data.Set qualified as Set
import Redis.Error (Endpoint (..))
import Redis.Internal.Client.Cache hiding (Asked)
import Redis.Internal.Client.CacheModel
import Redis.Internal.Protocol.Encode (request)
import Redis.Value
import Test.Hspec
import Test.Hspec.QuickCheck (modifyMaxSuccess, prop)
import Test.QuickCheck

spec :: Spec
spec = describe "what is kept" $ do
  forM_ scenarios $ \(scenario, states) ->
    it ("is current or will be told to be over, in any order of events, for " <> show scenario) $
      -- The search finds all states. If the number differs, the model has changed.
      search Nothing (start scenario) `shouldBe` (Nothing, states)

  forM_ [minBound .. maxBound] $ \rule ->
    it ("needs the rule " <> show rule) $
      mapMaybe (fst . search (Just rule) . start . fst) scenarios `shouldSatisfy` not . null

  it "is the reply as it came, however it is kept" $
    forAll anyReply $ \reply -> expanded (compacted reply) === reply

  it "takes more memory the more there is" $
    forAll ((,) <$> anyReply <*> anyReply) $ \(one, other) ->
      compactBytes (compacted (Array [one, other])) > compactBytes (compacted one)

  modifyMaxSuccess (const 500) . prop "is what a plain list would hold, and never more than there is room for, after any steps" $
    \(steps :: [Step]) -> do
      let (cache, plain) = foldl' both (newCache room, []) steps
          held = [(from, entryVersion, either (const Nothing) (Just . snd) state) | (from, entryVersion, state) <- stateEntries (cacheState cache)]
      sort held `shouldBe` sort [(endpointOf (at given), entryVersion, size) | (given, entryVersion, size) <- plain]
      cacheBytes cache `shouldBe` sum [size | (_, _, Just size) <- plain]
      cacheEntries cache `shouldBe` length [size | (_, _, Just size) <- plain]
      cacheBytes cache `shouldSatisfy` (<= room)
      -- Each entry gives its room back, once.
      let emptied = until (null . oldest) (\held' -> maybe held' (`evict` held') (oldest held')) cache
      (cacheBytes emptied, cacheEntries emptied) `shouldBe` (0, 0)
      countEvicted (cacheCounts emptied) - countEvicted (cacheCounts cache) `shouldBe` cacheEntries cache
  where
    scenarios =
      [ (quiet {scenarioReads = [2, 1], scenarioWrites = 2}, 743),
        (quiet {scenarioReads = [2, 1], scenarioConnections = 2, scenarioWrites = 1, scenarioEvictions = 1}, 3393),
        (quiet {scenarioReads = [2, 1], scenarioWrites = 1, scenarioFlushes = 1}, 4961),
        (quiet {scenarioReads = [2, 1], scenarioConnections = 2, scenarioWrites = 1, scenarioCuts = 1}, 12813),
        (quiet {scenarioReads = [3], scenarioWrites = 1, scenarioMoves = 2}, 4466),
        (quiet {scenarioReads = [2, 1, 1], scenarioConnections = 2, scenarioWrites = 2}, 16552),
        (quiet {scenarioReads = [2, 1], scenarioConnections = 2, scenarioFlushes = 1}, 9041),
        (quiet {scenarioReads = [2, 1], scenarioMoves = 1, scenarioLeaves = 1}, 7581)
      ]
    quiet = Scenario {scenarioReads = [], scenarioConnections = 1, scenarioWrites = 0, scenarioFlushes = 0, scenarioCuts = 0, scenarioMoves = 0, scenarioEvictions = 0, scenarioLeaves = 0}

-- | Replies of every kind that the cache keeps, with short and long strings.
anyReply :: Gen Value
anyReply = scale (`div` 2) (sized go)
  where
    go size
      | size <= 1 = oneof [BulkString <$> text, SimpleString <$> text, Integer <$> arbitrary, pure Null, Double . fromIntegral <$> (arbitrary :: Gen Int), Boolean <$> arbitrary, BigNumber <$> arbitrary, VerbatimString "txt" <$> text]
      | otherwise = oneof [go 0, Array <$> listOf (go (size `div` 4)), Set <$> listOf (go (size `div` 4)), Map <$> listOf ((,) <$> go 0 <*> go (size `div` 4))]
    text = (`Char8.replicate` 'x') <$> frequency [(5, choose (0, 20)), (1, choose (3270, 3290))]

-- | A command: its node, its key, and which of two commands on that key it is.
data Asked = Asked {at :: Int, onKey :: Int, which :: Int}
  deriving stock (Eq, Show)

instance Arbitrary Asked where
  arbitrary = Asked <$> choose (0, 1) <*> choose (0, 3) <*> choose (0, 1)

data Step
  = Places Asked
  | -- | Fills the placeholder of a command with a reply of this many bytes.
    Fills Asked Int
  | -- | Fills a placeholder that was removed before.
    FillsLate Asked Int
  | Abandons Asked
  | Supersedes Asked
  | Changes Int [Int]
  | Flushes Int
  | MakesRoom Bool
  deriving stock (Show)

instance Arbitrary Step where
  arbitrary =
    frequency
      [ (6, Places <$> arbitrary),
        (6, Fills <$> arbitrary <*> size),
        (1, FillsLate <$> arbitrary <*> size),
        (1, Abandons <$> arbitrary),
        (1, Supersedes <$> arbitrary),
        (2, Changes <$> choose (0, 1) <*> resize 2 (listOf (choose (0, 3)))),
        (1, Flushes <$> choose (0, 1)),
        (2, MakesRoom <$> arbitrary)
      ]
    where
      -- In tens, so that the room is often used up to its last byte.
      size = (10 *) <$> choose (1, 4)

-- | So little that replies are often refused.
room :: Int
room = 60

-- | Takes the same step with the machine and with a list of commands, each with its ticket and,
-- once it is filled, its bytes. Two of three commands share a hash.
both :: (Cache Int (), [(Asked, EntryVersion, Maybe Int)]) -> Step -> (Cache Int (), [(Asked, EntryVersion, Maybe Int)])
both (cache, plain) = \case
  Places asked -> case place (sourceOf asked) (const True) () cache of
    (cache', Leads entryVersion) -> (cache', (asked, entryVersion, Nothing) : plain)
    (cache', _) -> (cache', plain)
  Fills asked size -> case [entryVersion | (one, entryVersion, Nothing) <- plain, one == asked] of
    entryVersion : _ ->
      ( fst (filled asked entryVersion size),
        if sum [other | (_, _, Just other) <- plain] + size <= room
          then [if one == asked then (one, ticket', Just size) else (one, ticket', size') | (one, ticket', size') <- plain]
          else plain
      )
    _ -> (cache, plain)
  FillsLate asked size -> case filled asked (-1) size of
    (cache', _) -> (cache', without (== asked))
  Abandons asked -> case [entryVersion | (one, entryVersion, _) <- plain, one == asked] of
    entryVersion : _ -> (abandon (sourceOf asked) entryVersion cache, without (== asked))
    [] -> (abandon (sourceOf asked) (-1) cache, plain)
  Supersedes asked -> (supersede (sourceOf asked) cache, without (== asked))
  Changes from keys -> (invalidate (endpointOf from) (map keyOf keys) cache, without (\asked -> at asked == from && onKey asked `elem` keys))
  Flushes from -> (flush (endpointOf from) cache, without ((== from) . at))
  MakesRoom sparing -> case oldest cache of
    Nothing -> (cache, plain)
    Just one
      | sparing -> (spare one cache, plain)
      | otherwise -> (evict one cache, [entry | entry@(_, entryVersion, _) <- plain, entryVersion /= oldestVersion one])
  where
    without gone = [entry | entry@(asked, _, _) <- plain, not (gone asked)]
    filled asked entryVersion size = fill (sourceOf asked) entryVersion size size cache

endpointOf :: Int -> Endpoint
endpointOf = UnixEndpoint . show

keyOf :: Int -> ByteString
keyOf = Char8.pack . show

sourceOf :: Asked -> Source
sourceOf asked =
  Source
    { sourceNode = endpointOf (at asked),
      sourceHash = min 1 (onKey asked),
      sourceRequest = request [if which asked == 0 then "GET" else "STRLEN", keyOf (onKey asked)],
      sourceKey = keyOf (onKey asked)
    }

-- | The first problem, if there is one, and the number of states.
search :: Maybe Rule -> World -> (Maybe String, Int)
search without first = go (Set.singleton (worldKey first)) [first]
  where
    go :: Set WorldKey -> [World] -> (Maybe String, Int)
    go seen = \case
      [] -> (Nothing, Set.size seen)
      world : rest
        | Just what <- problem world -> (Just what, Set.size seen)
        | otherwise -> case actions without world of
          []
            | Just what <- atEnd world -> (Just what, Set.size seen)
            | otherwise -> go seen rest
          next -> let (seen', new) = foldr add (seen, []) next in go seen' (new <> rest)
    add world (seen, new)
      | worldKey world `Set.member` seen && isNothing (problem world) = (seen, new)
      | otherwise = (Set.insert (worldKey world) seen, world : new)
