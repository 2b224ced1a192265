-- | A small semantic search: a thousand sentences in a vector set, found by what they are about.
--
-- The meaning of a sentence is a vector, its embedding. Usually a model makes it; here it is the sum
-- of a vector for each word, so that sentences with the same words have similar vectors.
module Vectors (main) where

import Data.Bits (shiftR, xor)
import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Data.Char (ord)
import Data.Foldable (traverse_)
import Data.List (sortOn)
import Data.Word (Word64)
import Redis
import Redis.Commands qualified as Redis
import Settings (configFromArguments)

main :: IO ()
main = do
  config <- configFromArguments "redis://127.0.0.1:6379"
  withClient config $ \client -> do
    known <- run client (Redis.commandInfo ("vadd" :| []))
    if known == [Nothing] then putStrLn "the server has no vector sets" else demonstration client

demonstration :: Client -> IO ()
demonstration client = do
  _ <- run client (Redis.del ("example:vectors" :| []))
  index client
  run client (Redis.vcard "example:vectors") >>= print

  -- What is about a cat and a sofa, whatever else is in the sentence.
  found <- run client (about "cat sofa")
  print (all (\(sentence, _) -> all (`elem` Char8.words sentence) ["cat", "sofa"]) found)

  -- The server finds what a comparison with each sentence finds.
  exact <- run client (Redis.vsimWithscoresWith exactly "example:vectors" (query "cat sofa"))
  let expected = bruteForce 10 "cat sofa"
  print (length exact == length expected && and (zipWith (\(_, one) (_, other) -> abs (one - other) < 0.01) exact expected))
  print (length (filter (`elem` map fst expected) (map fst found)) >= 9)

  -- Among the birds, the most similar to a sentence about a cat.
  birds <- run client (Redis.vsimWith Redis.vsimDefaults {Redis.vsimCount = Just 3, Redis.vsimFilter = Just ".bird == 1", Redis.vsimFilterEf = Just 1000} "example:vectors" (Redis.VsimElement "the cat sleeps on the sofa"))
  print (length birds, all isBird birds)
  _ <- run client (Redis.del ("example:vectors" :| []))
  pure ()
  where
    exactly = Redis.vsimDefaults {Redis.vsimTruth = True}

-- INDEXED begins

-- | Adds all sentences. Those about birds have an attribute.
index :: Client -> IO ()
index client = runPipeline client (traverse_ (pipelined . add) sentences)
  where
    add sentence = Redis.vaddWith (options sentence) "example:vectors" sentence (Redis.embeddingOf (meaning sentence))
    options sentence
      | isBird sentence = Redis.vaddDefaults {Redis.vaddSetattr = Just "{\"bird\": 1}"}
      | otherwise = Redis.vaddDefaults

-- INDEXED ends

-- SEARCHED begins

-- | The ten sentences that are most similar to these words, the best first. A larger EF than the
-- usual one misses less.
about :: ByteString -> Command [(ByteString, Double)]
about = Redis.vsimWithscoresWith Redis.vsimDefaults {Redis.vsimEf = Just 500} "example:vectors" . query

query :: ByteString -> Redis.VsimQuery
query = Redis.VsimVector . Redis.embeddingOf . meaning

-- SEARCHED ends

isBird :: ByteString -> Bool
isBird = any (`elem` ["parrot", "crow"]) . Char8.words

sentences :: [ByteString]
sentences =
  [ Char8.unwords ["the", animal, verb, "on", "the", place]
    | animal <- ["cat", "dog", "cow", "horse", "mouse", "parrot", "crow", "fox", "snake", "frog"],
      verb <- ["sleeps", "eats", "waits", "sings", "hides", "plays", "jumps", "walks", "dreams", "looks"],
      place <- ["sofa", "roof", "meadow", "bridge", "table", "beach", "stairs", "chair", "hill", "street"]
  ]

-- BRUTE begins

-- | The same search without a server: a comparison with each sentence.
bruteForce :: Int -> ByteString -> [(ByteString, Double)]
bruteForce count words' =
  take count (sortOn (negate . snd) [(sentence, similarity (meaning words') (meaning sentence)) | sentence <- sentences])

-- | The server's score: 1 for the same direction, 0 for the opposite one.
similarity :: [Float] -> [Float] -> Double
similarity one other = realToFrac ((1 + dot one other / sqrt (dot one one * dot other other)) / 2)
  where
    dot left right = sum (zipWith (*) left right)

-- BRUTE ends

-- | The sum of the vectors of the words that mean something.
meaning :: ByteString -> [Float]
meaning = foldr (zipWith (+) . vectorOf) (replicate 64 0) . filter (`notElem` ["the", "on"]) . Char8.words

-- | Numbers between -1 and 1 that look random, and are the same for the same word.
vectorOf :: ByteString -> [Float]
vectorOf word = map number (take 64 (drop 1 (iterate next seed)))
  where
    seed = Char8.foldl' (\hash char -> (hash `xor` fromIntegral (ord char)) * 1099511628211) 14695981039346656037 word
    next state = state * 6364136223846793005 + 1442695040888963407
    number state = fromIntegral ((state :: Word64) `shiftR` 40) / 8388608 - 1
