-- | The database from which every measurement starts: for the same seed it has the same texts, byte
-- for byte, on every machine.
module Rest.Seed
  ( seedDatabase,
    seedUsers,

    -- * Random numbers
    splitMix,
    below,
  )
where

import Control.Exception (bracket)
import Control.Monad (forM_, void)
import Data.Bits (shiftR, xor)
import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Data.List qualified as List
import Data.Word (Word64)
import Rest.Sqlite (OpenMode (..), bindInt, bindNull, bindText, close, finalize, open, prepare, reset, runScript, step)
import Rest.Statements (Statements, statement)
import Rest.User (User (..))
import Text.Printf (printf)

-- | Creates a database file, which must not exist, with these users. Throws
-- 'Rest.Sqlite.SqliteError'.
seedDatabase :: Statements -> FilePath -> [User] -> IO ()
seedDatabase statements path users =
  bracket (open Create path) close $ \connection -> do
    runScript connection "PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF;"
    statement statements "schema" >>= runScript connection
    insert <- statement statements "seed-user"
    runScript connection "BEGIN"
    bracket (prepare connection insert) finalize $ \row ->
      forM_ users $ \User {userId, userName, userEmail, userBio, userCreatedAt} -> do
        bindInt row 1 userId
        bindText row 2 userName
        bindText row 3 userEmail
        maybe (bindNull row 4) (bindText row 4) userBio
        bindText row 5 userCreatedAt
        void (step row)
        reset row
    runScript connection "COMMIT; PRAGMA wal_checkpoint(TRUNCATE);"

-- | This many users of a seed. Names, addresses and texts have the form that the original's had: a
-- first and a last name, @userN\@@ one of five domains, 5 to 20 single letters, a minute of January
-- 2025.
seedUsers :: Word64 -> Int -> [User]
seedUsers seed count = List.unfoldr next (seed, 1)
  where
    next (state, number)
      | number > count = Nothing
      | otherwise =
        let (user, state') = seedUser state number
         in Just (user, (state', number + 1))

seedUser :: Word64 -> Int -> (User, Word64)
seedUser state0 number =
  ( User
      { userId = fromIntegral number,
        userName = pick first firstNames <> " " <> pick last' lastNames,
        userEmail = "user" <> Char8.pack (show number) <> "@" <> pick domain domains,
        userBio = Just (Char8.intersperse ' ' (Char8.pack (map letter letters))),
        userCreatedAt =
          Char8.pack (printf "2025-01-%02dT%02d:%02d:00" (number `rem` 28 + 1) (number `rem` 24) (number `rem` 60))
      },
    state5
  )
  where
    (first, state1) = splitMix state0
    (last', state2) = splitMix state1
    (domain, state3) = splitMix state2
    (size, state4) = splitMix state3
    (letters, state5) = draws (5 + fromIntegral (below 16 size) :: Int) state4
    letter word = toEnum (fromEnum 'a' + fromIntegral (below 26 word))
    draws 0 state = ([], state)
    draws n state =
      let (word, state') = splitMix state
          (others, end) = draws (n - 1 :: Int) state'
       in (word : others, end)

pick :: Word64 -> [ByteString] -> ByteString
pick word options = mconcat (take 1 (drop (fromIntegral (below (fromIntegral (length options)) word)) options))

-- | A number below the bound, from the upper half of a word.
below :: Word64 -> Word64 -> Word64
below bound word = ((word `shiftR` 32) * bound) `shiftR` 32

-- | SplitMix64: a word, and the next state.
splitMix :: Word64 -> (Word64, Word64)
splitMix state = (mixed `xor` (mixed `shiftR` 31), next)
  where
    next = state + 0x9e3779b97f4a7c15
    mixed = stir 27 0x94d049bb133111eb (stir 30 0xbf58476d1ce4e5b9 next)
    stir bits factor word = (word `xor` (word `shiftR` bits)) * factor

firstNames, lastNames, domains :: [ByteString]
firstNames =
  Char8.words
    "Ada Alan Anna Barbara Carl Clara David Donald Edith Emil Fatima Felix Grace Hanna Hugo Ines Ivan Jonas Julia Karin Leon Lena Maria Milan Nadia Oskar Paula Robin Sofia Tomas"
lastNames =
  Char8.words
    "Adams Bauer Becker Brown Clark Cruz Davis Diaz Evans Fischer Garcia Green Hall Hughes Jones Keller King Lee Lopez Martin Meyer Miller Moore Nguyen Novak Silva Smith Stone Weber Young"
domains = Char8.words "example.com example.org example.net mail.example.com post.example.org"
