-- | The service's own JSON compared with aeson's.
module JsonSpec (spec) where

import Control.Exception (bracket)
import Data.Aeson (Value (..), object, (.=))
import Data.Aeson qualified as Aeson
import Data.ByteString (ByteString)
import Data.ByteString.Lazy qualified as Lazy
import Data.Maybe (isNothing)
import Data.Text (Text)
import Data.Text qualified as Text
import Data.Text.Encoding (encodeUtf8)
import Rest.Json.Read (readUserInput)
import Rest.Json.Write (Encoder (..), encodePage, encodeRow, newScratch)
import Rest.Sqlite (Connection, OpenMode (..), bindInt, bindNull, bindText, close, finalize, open, prepare, step)
import Rest.User (UserInput (..), userInput)
import Test.Hspec
import Test.Hspec.QuickCheck (modifyMaxSuccess, prop)
import Test.QuickCheck

spec :: Spec
spec = describe "JSON" $ do
  prop "reads what aeson writes" $ \(Letters name) (Letters email) (bio :: Maybe Letters) ->
    let body = Aeson.encode (object ["name" .= name, "x" .= [Null, object ["y" .= name]], "email" .= email, "bio" .= fmap letters bio])
     in readUserInput (Lazy.toStrict body) === userInput (encodeUtf8 name) (encodeUtf8 email) (encodeUtf8 . letters <$> bio)
  modifyMaxSuccess (const 1000) . prop "refuses what aeson refuses" $ \place -> forAll noise $ \letter ->
    let whole = "{\"name\":\"Name\",\"email\":\"a@b.c\",\"x\":[1.5e-3,{\"y\":\"\\u0041\"}]}" :: [Char]
        (start, rest) = splitAt (place `mod` length whole) whole
        body = encodeUtf8 (Text.pack (start <> [letter] <> drop 1 rest))
        refused = isNothing (Aeson.decodeStrict body :: Maybe Value)
     in -- The other cases are not discarded: both parsers refuse most of them.
        counterexample (show body) (not (refused && accepted body))
  aroundAll (bracket (open Create ":memory:") close) $ do
    it "writes what aeson reads" $ \connection -> property $ \(Positive number) (Letters name) (bio :: Maybe Letters) -> ioProperty $ do
      (direct, generic, page) <- written connection number (encodeUtf8 name) (encodeUtf8 . letters <$> bio)
      let expected = object ["id" .= number, "name" .= name, "email" .= ("a@b" :: Text), "bio" .= fmap letters bio, "createdAt" .= ("now" :: Text)]
      pure $
        conjoin
          [ Aeson.decodeStrict direct === Just expected,
            Aeson.decodeStrict generic === Just expected,
            Aeson.decodeStrict page === Just (object ["page" .= (3 :: Int), "limit" .= (2 :: Int), "data" .= replicate 40 expected])
          ]

noise :: Gen Char
noise = oneof [arbitrary, elements "\"\\{}[]:,.-+eEu0 \n"]

accepted :: ByteString -> Bool
accepted body = case readUserInput body of
  Just UserInput {} -> True
  Nothing -> False

-- | A row encoded by both encoders, and a page of forty such rows.
written :: Connection -> Int -> ByteString -> Maybe ByteString -> IO (ByteString, ByteString, ByteString)
written connection number name bio = do
  direct <- with "SELECT ?1, ?2, 'a@b', ?3, 'now'" (\row -> step row >> encodeRow Direct row)
  generic <- with "SELECT ?1, ?2, 'a@b', ?3, 'now'" (\row -> step row >> encodeRow Generic row)
  page <- with "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 40) SELECT ?1, ?2, 'a@b', ?3, 'now' FROM n" (\row -> newScratch >>= \scratch -> encodePage Direct scratch 3 2 row)
  pure (direct, generic, page)
  where
    with sql action = bracket (prepare connection sql) finalize $ \row -> do
      bindInt row 1 (fromIntegral number)
      bindText row 2 name
      maybe (bindNull row 3) (bindText row 3) bio
      action row

-- | Text of all kinds: plain, with characters to escape, and of every size in UTF-8.
newtype Letters = Letters {letters :: Text}
  deriving stock (Eq, Show)

instance Arbitrary Letters where
  arbitrary =
    Letters . Text.pack <$> listOf (oneof [choose ('a', 'z'), elements "@\"\\/\n\t\b\DEL\x1f", choose ('\x1', '\x20'), choose ('\x80', '\xd7ff'), choose ('\x10000', '\x10ffff')])
  shrink (Letters text) = Letters . Text.pack <$> shrink (Text.unpack text)
