-- | Commands as they are shown to people: without their secrets.
module Redis.Internal.Command.ShownSpec (spec) where

import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Data.Char (isAsciiUpper)
import Data.List (isInfixOf)
import Data.List.NonEmpty (NonEmpty ((:|)))
import Redis.Command.Build qualified as Build
import Redis.Commands
import Redis.Config
import Redis.Internal.Command (argumentsLabel, commandLabel)
import Test.Hspec
import Test.Hspec.QuickCheck (prop)
import Test.QuickCheck

spec :: Spec
spec = describe "A command that is shown" $ do
  it "is what one types" $ do
    show (get "key") `shouldBe` "GET key"
    show (set "a key" "va\"lue\n") `shouldBe` "SET \"a key\" \"va\\\"lue\\n\""
    show (raw ["GET", ""]) `shouldBe` "GET \"\""

  it "is cut where it is long, and says how long it is" $
    show (set "key" (Char8.replicate 1000 'x')) `shouldSatisfy` isInfixOf "(1000 bytes)"

  it "has in an error its name and its first key, and nothing else" $ do
    [commandLabel (set "a key" "value"), commandLabel (del ("k" :| [])), commandLabel (raw ["config", "get", "save"])] `shouldBe` ["SET \"a key\"", "DEL k", "CONFIG GET"]
    [commandLabel (mset (("a", "1") :| [("b", "2")])), argumentsLabel ["mset", "a", "1", "b", "2"]] `shouldBe` ["MSET a ...", "MSET a ..."]
    commandLabel (Build.command "X.SET" [Build.arg "value", Build.key "k"] Right) `shouldBe` "X.SET k"
    Char8.length (commandLabel (get (Char8.replicate 1000 'x'))) `shouldSatisfy` (< 100)

  it "keeps what is no secret" $ do
    show (raw ["ACL", "SETUSER", "alice", "on", ">sesame", "+get", "~*"]) `shouldSatisfy` \text -> all (`isInfixOf` text) ["alice", "on", "+get", "~*"]
    show (raw ["CONFIG", "SET", "maxmemory", "100mb", "requirepass", "sesame"]) `shouldSatisfy` isInfixOf "maxmemory 100mb"
    show (raw ["MIGRATE", "host", "6379", "key", "0", "5000", "COPY", "AUTH2", "user", "sesame"]) `shouldSatisfy` isInfixOf "host 6379 key 0 5000 COPY"

  prop "never has a password in it, however the command is written" $
    forAll password $ \secretWord ->
      conjoin
        [ counterexample text . not $ Char8.unpack secretWord `isInfixOf` text
          | words' <- carrying secretWord,
            cased <- [id, Char8.map lower],
            let given = map (\word -> if word == secretWord then word else cased word) words',
            text <- [show (raw given), Char8.unpack (argumentsLabel given), Char8.unpack (commandLabel (raw given))]
        ]

  it "never has the password of a typed command in it" $ do
    let credentials = Credentials {credentialsUser = Just "alice", credentialsPassword = toSecret "sesame"}
    show (auth credentials) `shouldBe` "AUTH <secret> <secret>"
    show (hello HelloOptions {helloProtocol = 3, helloCredentials = Just credentials, helloClientName = Just "me"}) `shouldNotContain` "sesame"

  it "never has the password of a line in it, even if no server takes the line" $
    map (show . Build.inline) ["auth alice \"open sesame\"", "AUTH \"sesame", "AUTH sesame\r\n"]
      `shouldBe` ["auth <secret> <secret>", "AUTH <secret>", "AUTH <secret>"]
  where
    lower char = if isAsciiUpper char then toEnum (fromEnum char + 32) else char

-- | Letters that occur nowhere else in the commands.
password :: Gen ByteString
password = Char8.pack . ("Zq" <>) <$> vectorOf 8 (elements ['0' .. '9'])

carrying :: ByteString -> [[ByteString]]
carrying secretWord =
  [ ["AUTH", secretWord],
    ["AUTH", "alice", secretWord],
    ["HELLO", "3", "AUTH", "alice", secretWord, "SETNAME", "me"],
    ["HELLO", "3", "SETNAME", "auth", "AUTH", "alice", secretWord],
    ["ACL", "SETUSER", "alice", ">" <> secretWord],
    ["ACL", "SETUSER", "alice", "on", "<" <> secretWord],
    ["ACL", "SETUSER", "alice", "#" <> secretWord],
    ["ACL", "SETUSER", "alice", "!" <> secretWord],
    ["ACL", "SETUSER", "alice", "(~* >" <> secretWord <> " +get)"],
    ["CONFIG", "SET", "requirepass", secretWord],
    ["CONFIG", "SET", "maxmemory", "1", "masterauth", secretWord],
    ["CONFIG", "SET", "primaryauth", secretWord],
    ["CONFIG", "SET", "tls-key-file-pass", secretWord],
    ["MIGRATE", "host", "6379", "", "0", "5000", "AUTH", secretWord, "KEYS", "a", "b"],
    ["MIGRATE", "host", "6379", "key", "0", "5000", "AUTH2", "alice", secretWord],
    ["SENTINEL", "SET", "primary", "auth-pass", secretWord],
    ["SENTINEL", "CONFIG", "SET", "sentinel-pass", secretWord]
  ]
