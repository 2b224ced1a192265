-- | Users, and the input that a client may give for one.
module Rest.User
  ( User (..),
    UserInput (..),
    userInput,
    readUser,
  )
where

import Data.ByteString (ByteString)
import Data.ByteString qualified as ByteString
import Data.ByteString.Char8 qualified as Char8
import Data.Int (Int64)
import Rest.Sqlite (Statement, columnInt, columnIsNull, columnText)

-- | A row of the table. Texts are UTF-8.
data User = User
  { userId :: Int64,
    userName :: ByteString,
    userEmail :: ByteString,
    userBio :: Maybe ByteString,
    userCreatedAt :: ByteString
  }
  deriving stock (Eq, Show)

-- | The input of POST and PUT. Texts are UTF-8 and within their bounds.
data UserInput = UserInput
  { inputName :: ByteString,
    inputEmail :: ByteString,
    inputBio :: Maybe ByteString
  }
  deriving stock (Eq, Show)

-- | Checks a name, an e-mail address and an optional text about the person against the bounds of
-- the contract. \(O(n)\).
userInput :: ByteString -> ByteString -> Maybe ByteString -> Maybe UserInput
userInput name email bio
  | within 1 200 name,
    within 3 320 email,
    Char8.elem '@' email,
    maybe True (within 0 4000) bio =
    Just UserInput {inputName = name, inputEmail = email, inputBio = bio}
  | otherwise = Nothing
  where
    within least most text =
      ByteString.length text >= least && ByteString.length text <= most && not (ByteString.elem 0 text)

-- | The user in a statement's current row.
readUser :: Statement -> IO User
readUser row = do
  userId <- columnInt row 0
  userName <- columnText row 1
  userEmail <- columnText row 2
  noBio <- columnIsNull row 3
  userBio <- if noBio then pure Nothing else Just <$> columnText row 3
  userCreatedAt <- columnText row 4
  pure User {userId, userName, userEmail, userBio, userCreatedAt}
