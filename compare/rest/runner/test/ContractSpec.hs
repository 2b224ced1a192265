-- | Requests and responses, byte for byte.
module ContractSpec (spec) where

import Compare.HttpClient
import Compare.Service (Running (..))
import Control.Monad (forM_, unless)
import Data.ByteString (ByteString)
import Data.ByteString qualified as ByteString
import Data.ByteString.Char8 qualified as Char8
import Data.Char (isDigit)
import Data.List (sort)
import Redis.TestKit.Command (Reply (..))
import Redis.TestKit.Wait (eventually)
import Support
import Test.Hspec

spec :: Case -> Spec
spec service = aroundAll (withWorld service) . describe (caseName service) $ do
  reading
  caching (caseKind service)
  lists (caseKind service)
  refusals (caseKind service)
  writing (caseKind service)
  bodies
  connections

user :: Int -> ByteString -> ByteString -> ByteString -> ByteString -> ByteString
user number name email bio since =
  "{\"id\":" <> Char8.pack (show number) <> ",\"name\":" <> name <> ",\"email\":" <> email <> ",\"bio\":" <> bio <> ",\"createdAt\":" <> since <> "}"

first, second :: ByteString
first = user 1 "\"Maria Clark\"" "\"user1@example.org\"" "\"a w f u i q f m n n\"" "\"2025-01-02T01:01:00\""
second = user 2 "\"Karin Davis\"" "\"user2@example.com\"" "\"c r y b p q b h t u y s\"" "\"2025-01-03T02:02:00\""

-- | The response has exactly this status, reason, headers and body, except for the date.
shouldAnswer :: HasCallStack => IO Response -> (Int, ByteString, [(ByteString, ByteString)], ByteString) -> Expectation
shouldAnswer action (status, reason, headers, body) = do
  response <- action
  (responseStatus response, responseReason response, responseBody response) `shouldBe` (status, reason, body)
  sort (filter ((/= "date") . fst) (responseHeaders response))
    `shouldBe` sort (("content-type", "application/json") : ("content-length", Char8.pack (show (ByteString.length body))) : headers)

ok :: ByteString -> (Int, ByteString, [(ByteString, ByteString)], ByteString)
ok body = (200, "OK", [], body)

failing :: Int -> ByteString -> ByteString -> (Int, ByteString, [(ByteString, ByteString)], ByteString)
failing status reason text = (status, reason, [], "{\"error\":\"" <> text <> "\"}")

invalidUser, missing :: (Int, ByteString, [(ByteString, ByteString)], ByteString)
invalidUser = failing 400 "Bad Request" "Invalid user"
missing = failing 404 "Not Found" "User not found"

reading :: SpecWith World
reading = do
  it "answers a user, and says when" $ \world -> do
    get world "/users/1" `shouldAnswer` ok first
    response <- get world "/users/1"
    fmap ByteString.length (header "date" response) `shouldBe` Just 29
  it "answers the same from the cache" $ \world -> do
    get world "/users/2" `shouldAnswer` ok second
    get world "/users/2" `shouldAnswer` ok second
  it "takes leading zeros and a slash at the end" $ \world -> do
    get world "/users/0001" `shouldAnswer` ok first
    get world "/users/1/" `shouldAnswer` ok first
    get world "/users/%31" `shouldAnswer` ok first
  it "says that a user is not there, and does not cache that" $ \world -> do
    get world "/users/99999" `shouldAnswer` missing
    get world "/users/0" `shouldAnswer` missing
    cached world 99999 `shouldReturn` Nothing

caching :: Kind -> SpecWith World
caching kind = do
  it "answers what the cache holds, byte for byte" $ \world -> do
    let bytes = "{ \"not\": [\"what\", \"a service\"], \"would\":\"\\u0077rite\" }"
    _ <- redisTells world ["SET", "user:77", bytes]
    get world "/users/77" `shouldAnswer` ok bytes
  it "stores a user for 60 s, and takes its word away" $ \world -> do
    _ <- get world "/users/3"
    eventually 5 "the user is in the cache" ((/= Nothing) <$> cached world 3)
    redisTells world ["TTL", "user:3"] >>= \case
      Number seconds -> seconds `shouldSatisfy` (`elem` [59, 60])
      other -> expectationFailure (show other)
    body <- responseBody <$> get world "/users/3"
    cached world 3 `shouldReturn` Just body
    redisTells world ["EXISTS", "{user:3}:fill"] `shouldReturn` Number 0
  -- The naive design has no fill words, so there is none to delete.
  unless (kind == NaiveOnly) $
    it "takes the right to store away from who reads while another writes" $ \world -> do
      _ <- redisTells world ["SET", "{user:4}:fill", "a reader's word"]
      response <- put world "/users/4" (userText "Four" "four@test.example")
      responseStatus response `shouldBe` 200
      redisTells world ["EXISTS", "user:4", "{user:4}:fill"] `shouldReturn` Number 0

lists :: Kind -> SpecWith World
lists kind = do
  it "lists users by page and limit" $ \world ->
    get world "/users?page=1&limit=2" `shouldAnswer` ok ("{\"page\":1,\"limit\":2,\"data\":[" <> first <> "," <> second <> "]}")
  it "takes page 1 and 20 users where nothing is said" $ \world -> do
    plain <- get world "/users"
    get world "/users?limit=20&page=1" `shouldAnswer` ok (responseBody plain)
    get world "/users?other=1&page=1" `shouldAnswer` ok (responseBody plain)
    -- Scotty routes this as a user without an id.
    unless (kind == NaiveOnly) $ get world "/users/?limit=20" `shouldAnswer` ok (responseBody plain)
    ByteString.take 23 (responseBody plain) `shouldBe` "{\"page\":1,\"limit\":20,\"d"
  it "lists at most 100 users" $ \world -> do
    hundred <- get world "/users?limit=100"
    get world "/users?limit=101" `shouldAnswer` ok (responseBody hundred)
    get world "/users?limit=999999999" `shouldAnswer` ok (responseBody hundred)
    Char8.count '{' (responseBody hundred) `shouldBe` 101
  it "lists nobody behind the last page" $ \world ->
    get world "/users?page=999999999&limit=100" `shouldAnswer` ok "{\"page\":999999999,\"limit\":100,\"data\":[]}"

refusals :: Kind -> SpecWith World
refusals kind = do
  forM_ ["page=0", "page=-1", "page=", "page=x", "page=1.0", "page=1e1", "page=%201", "page=1234567890", "limit=0", "limit=-5", "limit=", "limit=ten", "page=1&page=1", "limit=5&limit=5", "page=1&limit=0", "page=1;limit=5", "page"] $ \query ->
    it ("refuses a list of " <> Char8.unpack query) $ \world ->
      get world ("/users?" <> query) `shouldAnswer` failing 400 "Bad Request" "Invalid page or limit"
  forM_ ["abc", "-1", "+1", "1.0", "1234567890123456789", "0x1", "%20", "1a"] $ \text ->
    it ("refuses the id " <> Char8.unpack text) $ \world -> do
      get world ("/users/" <> text) `shouldAnswer` failing 400 "Bad Request" "Invalid id"
      delete world ("/users/" <> text) `shouldAnswer` failing 400 "Bad Request" "Invalid id"
      put world ("/users/" <> text) "{" `shouldAnswer` failing 400 "Bad Request" "Invalid id"
  forM_ ["/", "/user", "/usersx", "/users/1/posts", "/health"] $ \path ->
    it ("knows no path " <> Char8.unpack path) $ \world -> do
      get world path `shouldAnswer` failing 404 "Not Found" "Not found"
      post world path "{}" `shouldAnswer` failing 404 "Not Found" "Not found"
  -- The routes of ASP.NET Core, which the naive service in C# has, do not.
  unless (kind == NaiveOnly) . it "tells upper from lower case in a path" $ \world -> do
    get world "/Users/1" `shouldAnswer` failing 404 "Not Found" "Not found"
    get world "/USERS" `shouldAnswer` failing 404 "Not Found" "Not found"
  -- The naive services leave the path to their frameworks.
  unless (kind == NaiveOnly) . it "takes no written-out slash for one that separates" $ \world -> do
    get world "/users/1%2F2" `shouldAnswer` failing 400 "Bad Request" "Invalid id"
    get world "/users/%2f" `shouldAnswer` failing 400 "Bad Request" "Invalid id"
    get world "/users%2F1" `shouldAnswer` failing 404 "Not Found" "Not found"
  it "names the methods of a path to who uses another" $ \world -> do
    ask world "DELETE" "/users" Nothing `shouldAnswer` (405, "Method Not Allowed", [("allow", "GET, POST")], "{\"error\":\"Method not allowed\"}")
    ask world "POST" "/users/1" (Just "{}") `shouldAnswer` (405, "Method Not Allowed", [("allow", "GET, PUT, DELETE")], "{\"error\":\"Method not allowed\"}")
    ask world "PATCH" "/users/abc" (Just "{}") `shouldAnswer` (405, "Method Not Allowed", [("allow", "GET, PUT, DELETE")], "{\"error\":\"Method not allowed\"}")

-- | The response to a POST, which must be 201 and give the location of the user: returns the user's
-- id, and the body without the time of creation, whose form is checked.
created :: HasCallStack => World -> ByteString -> IO (ByteString, ByteString)
created world body = do
  response <- post world "/users" body
  (responseStatus response, responseReason response) `shouldBe` (201, "Created")
  let location = maybe "" (ByteString.drop 7) (header "location" response)
      (start, end) = ByteString.breakSubstring "\"createdAt\":\"" (responseBody response)
      time = Char8.map (\letter -> if isDigit letter then '0' else letter) (ByteString.drop 13 end)
  map fst (filter ((/= "date") . fst) (responseHeaders response)) `shouldMatchList` ["content-type", "content-length", "location"]
  location `shouldSatisfy` \text -> not (ByteString.null text) && Char8.all isDigit text
  time `shouldBe` "0000-00-00T00:00:00\"}"
  get world ("/users/" <> location) `shouldAnswer` ok (responseBody response)
  let (_, text) = ByteString.breakSubstring "\"name\"" start
  pure (location, text)

writing :: Kind -> SpecWith World
writing kind = do
  it "adds a user, who may have no bio" $ \world -> do
    (_, text) <- created world "{\"name\":\"New\",\"email\":\"new@test.example\"}"
    text `shouldBe` "\"name\":\"New\",\"email\":\"new@test.example\",\"bio\":null,"
    (_, other) <- created world "{\"bio\":null,\"email\":\"new2@test.example\",\"name\":\"New\"}"
    other `shouldBe` "\"name\":\"New\",\"email\":\"new2@test.example\",\"bio\":null,"
  it "keeps every letter that a name may have" $ \world -> do
    (_, text) <- created world "{\"name\":\"\\u00e9\195\169\\ud83d\\ude00\240\159\152\128\\u2028<>&'+\\/ \127\",\"email\":\"letters@test.example\",\"bio\":\"\"}"
    text `shouldBe` "\"name\":\"\195\169\195\169\240\159\152\128\240\159\152\128\226\128\168<>&'+/ \127\",\"email\":\"letters@test.example\",\"bio\":\"\","
  -- The naive design leaves that to its library.
  unless (kind == NaiveOnly) $
    it "escapes what JSON cannot hold, in one way" $ \world -> do
      (_, text) <- created world "{\"name\":\"\\\"\\\\\\b\\f\\n\\r\\t\\u0001\\u001f\\u001B\",\"email\":\"escapes@test.example\"}"
      text `shouldBe` "\"name\":\"\\\"\\\\\\b\\f\\n\\r\\t\\u0001\\u001F\\u001B\",\"email\":\"escapes@test.example\",\"bio\":null,"
  it "refuses an address that another has" $ \world -> do
    post world "/users" (userText "Twin" "user2@example.com") `shouldAnswer` failing 409 "Conflict" "Email already exists"
    _ <- post world "/users" (userText "Twin" "twin@test.example")
    post world "/users" (userText "Twin" "twin@test.example") `shouldAnswer` failing 409 "Conflict" "Email already exists"
    put world "/users/11" (userText "Twin" "twin@test.example") `shouldAnswer` failing 409 "Conflict" "Email already exists"
  it "changes a user, and the cache does not keep the old one" $ \world -> do
    _ <- get world "/users/20"
    eventually 5 "the user is in the cache" ((/= Nothing) <$> cached world 20)
    let changed = user 20 "\"Twenty\"" "\"twenty@test.example\"" "\"b\"" "\"2025-01-21T20:20:00\""
    put world "/users/20" "{\"name\":\"Twenty\",\"email\":\"twenty@test.example\",\"bio\":\"b\"}" `shouldAnswer` ok changed
    cached world 20 `shouldReturn` Nothing
    get world "/users/20" `shouldAnswer` ok changed
    put world "/users/20" "{\"name\":\"Twenty\",\"email\":\"twenty@test.example\"}" `shouldAnswer` ok (user 20 "\"Twenty\"" "\"twenty@test.example\"" "null" "\"2025-01-21T20:20:00\"")
    put world "/users/88888" (userText "Nobody" "nobody@test.example") `shouldAnswer` missing
  it "deletes a user, also from the cache" $ \world -> do
    _ <- get world "/users/30"
    eventually 5 "the user is in the cache" ((/= Nothing) <$> cached world 30)
    delete world "/users/30" `shouldAnswer` ok "{\"message\":\"User deleted\"}"
    cached world 30 `shouldReturn` Nothing
    get world "/users/30" `shouldAnswer` missing
    delete world "/users/30" `shouldAnswer` missing

bodies :: SpecWith World
bodies = do
  forM_ invalidBodies $ \(what, body) ->
    it ("refuses a body that is " <> what) $ \world -> do
      post world "/users" body `shouldAnswer` invalidUser
      put world "/users/40" body `shouldAnswer` invalidUser
  forM_ (zip [1 :: Int ..] validBodies) $ \(number, (what, body)) ->
    it ("takes a body with " <> what) $ \world -> do
      let email = "valid" <> Char8.pack (show number) <> "@test.example"
      (_, text) <- created world (body email)
      text `shouldBe` "\"name\":\"N\",\"email\":\"" <> email <> "\",\"bio\":null,"
  it "refuses a body above 64 KiB before it has come" $ \world ->
    withConnection (runningPort (worldRunning world)) $ \connection ->
      exchange connection "POST /users HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10000000\r\n\r\n{\"name\":"
        >>= (`shouldBe` (413, "Payload Too Large", "{\"error\":\"Body too large\"}")) . \response -> (responseStatus response, responseReason response, responseBody response)
  it "refuses a body above 64 KiB that comes in chunks" $ \world ->
    withConnection (runningPort (worldRunning world)) $ \connection -> do
      let chunk = "4000\r\n" <> Char8.replicate 16384 ' ' <> "\r\n"
      response <- exchange connection ("PUT /users/1 HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n" <> ByteString.concat (replicate 5 chunk))
      (responseStatus response, responseBody response) `shouldBe` (413, "{\"error\":\"Body too large\"}")
  it "takes a body of 64 KiB, and one in chunks" $ \world -> do
    let start = "{\"name\":\"N\",\"email\":\"large@test.example\""
        large = start <> Char8.replicate (65536 - ByteString.length start - 1) ' ' <> "}"
    (_, text) <- created world large
    text `shouldBe` "\"name\":\"N\",\"email\":\"large@test.example\",\"bio\":null,"
    withConnection (runningPort (worldRunning world)) $ \connection -> do
      response <- exchange connection "POST /users HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\na\r\n{\"name\":\"N\r\n1d\r\n\",\"email\":\"c@test.example\"}  \r\n0\r\n\r\n"
      responseStatus response `shouldBe` 201

invalidBodies :: [(String, ByteString)]
invalidBodies =
  [ ("empty", ""),
    ("blank", "  "),
    ("no JSON", "name=A&email=a@b"),
    ("half of an object", "{\"name\":\"A\",\"email\":\"a@b.c\""),
    ("an object and more", valid <> "x"),
    ("two objects", valid <> valid),
    ("an array", "[" <> valid <> "]"),
    ("null", "null"),
    ("a string", "\"a\""),
    ("empty of members", "{}"),
    ("without a name", "{\"email\":\"a@b.c\"}"),
    ("without an e-mail", "{\"name\":\"A\"}"),
    ("of names in capitals", "{\"Name\":\"A\",\"Email\":\"a@b.c\"}"),
    ("a name of null", "{\"name\":null,\"email\":\"a@b.c\"}"),
    ("a name of a number", "{\"name\":5,\"email\":\"a@b.c\"}"),
    ("an e-mail of an array", "{\"name\":\"A\",\"email\":[\"a@b.c\"]}"),
    ("a bio of a boolean", "{\"name\":\"A\",\"email\":\"a@b.c\",\"bio\":true}"),
    ("a bio of an object", "{\"name\":\"A\",\"email\":\"a@b.c\",\"bio\":{}}"),
    ("an empty name", "{\"name\":\"\",\"email\":\"a@b.c\"}"),
    ("an e-mail without its sign", "{\"name\":\"A\",\"email\":\"abc\"}"),
    ("an e-mail that is too short", "{\"name\":\"A\",\"email\":\"a@\"}"),
    ("a name that is too long", "{\"name\":\"" <> Char8.replicate 201 'n' <> "\",\"email\":\"a@b.c\"}"),
    ("a name that is too long in UTF-8", "{\"name\":\"" <> ByteString.concat (replicate 101 "\195\169") <> "\",\"email\":\"a@b.c\"}"),
    ("an e-mail that is too long", "{\"name\":\"A\",\"email\":\"a@" <> Char8.replicate 319 'b' <> "\"}"),
    ("a bio that is too long", "{\"name\":\"A\",\"email\":\"a@b.c\",\"bio\":\"" <> Char8.replicate 4001 'b' <> "\"}"),
    ("a name twice", "{\"name\":\"A\",\"name\":\"A\",\"email\":\"a@b.c\"}"),
    ("a bio twice", "{\"name\":\"A\",\"bio\":null,\"email\":\"a@b.c\",\"bio\":\"b\"}"),
    ("a name with a NUL", "{\"name\":\"A\\u0000B\",\"email\":\"a@b.c\"}"),
    ("half a surrogate", "{\"name\":\"A\\ud83d\",\"email\":\"a@b.c\"}"),
    ("the wrong half of a surrogate", "{\"name\":\"A\\ude00\\ud83d\",\"email\":\"a@b.c\"}"),
    ("no UTF-8", "{\"name\":\"A\255\",\"email\":\"a@b.c\"}"),
    ("no UTF-8 elsewhere", "{\"name\":\"A\",\"email\":\"a@b.c\",\"x\":\"\192\128\"}"),
    ("a bare line end in a string", "{\"name\":\"A\nB\",\"email\":\"a@b.c\"}"),
    ("an unknown escape", "{\"name\":\"\\x41\",\"email\":\"a@b.c\"}"),
    ("a short escape", "{\"name\":\"\\u41\",\"email\":\"a@b.c\"}"),
    ("a comma too many", "{\"name\":\"A\",\"email\":\"a@b.c\",}"),
    ("a comma too few", "{\"name\":\"A\" \"email\":\"a@b.c\"}"),
    ("a comment", "{\"name\":\"A\",/* */\"email\":\"a@b.c\"}"),
    ("of single quotation marks", "{'name':'A','email':'a@b.c'}"),
    ("of bare names", "{name:\"A\",email:\"a@b.c\"}"),
    ("a wrong number elsewhere", "{\"name\":\"A\",\"email\":\"a@b.c\",\"x\":01}"),
    ("a number that ends early", "{\"name\":\"A\",\"email\":\"a@b.c\",\"x\":1.}"),
    ("a wrong word elsewhere", "{\"name\":\"A\",\"email\":\"a@b.c\",\"x\":nul}"),
    ("NaN elsewhere", "{\"name\":\"A\",\"email\":\"a@b.c\",\"x\":NaN}"),
    ("nested too deep", "{\"name\":\"A\",\"email\":\"a@b.c\",\"x\":" <> Char8.replicate 64 '[' <> Char8.replicate 64 ']' <> "}"),
    ("an array that is left open", "{\"name\":\"A\",\"email\":\"a@b.c\",\"x\":[1,}"),
    ("behind a byte order mark", "\239\187\191" <> valid),
    ("UTF-16", ByteString.intercalate "\0" (map Char8.singleton (Char8.unpack valid)))
  ]
  where
    valid = "{\"name\":\"A\",\"email\":\"a@b.c\"}"

validBodies :: [(String, ByteString -> ByteString)]
validBodies =
  [ ("blanks everywhere", \email -> " \t\r\n{ \"name\" : \"N\" ,\n\"email\":\t\"" <> email <> "\" } \r\n"),
    ("members that mean nothing", \email -> "{\"a\":[1,-2.5e+3,0,true,false,null,{}],\"name\":\"N\",\"b\":{\"name\":\"other\"},\"email\":\"" <> email <> "\",\"c\":\"\\ud83d\"}"),
    ("escaped names of members", \email -> "{\"n\\u0061me\":\"N\",\"email\":\"" <> email <> "\"}"),
    ("an escaped name", \email -> "{\"name\":\"\\u004e\",\"email\":\"" <> email <> "\"}"),
    ("the deepest nesting", \email -> "{\"name\":\"N\",\"email\":\"" <> email <> "\",\"x\":" <> Char8.replicate 63 '[' <> Char8.replicate 63 ']' <> "}"),
    ("a number that no machine holds", \email -> "{\"name\":\"N\",\"x\":1e999999,\"email\":\"" <> email <> "\"}")
  ]

connections :: SpecWith World
connections = do
  it "answers requests that come together, in their order" $ \world ->
    withConnection (runningPort (worldRunning world)) $ \connection -> do
      sendBytes connection (ByteString.concat (map (\target -> requestBytes "GET" target Nothing) ["/users/1", "/users/99999", "/users/2"]))
      receive connection `shouldAnswer` ok first
      receive connection `shouldAnswer` missing
      receive connection `shouldAnswer` ok second
  it "reads requests that come byte by byte" $ \world ->
    withConnection (runningPort (worldRunning world)) $ \connection -> do
      forM_ (ByteString.unpack (requestBytes "PUT" "/users/50" (Just (userText "Fifty" "fifty@test.example")))) $ \byte ->
        sendBytes connection (ByteString.singleton byte)
      response <- receive connection
      responseStatus response `shouldBe` 200
  it "takes bodies whatever their type is said to be" $ \world ->
    withConnection (runningPort (worldRunning world)) $ \connection -> do
      response <- exchange connection "PUT /users/51 HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\nContent-Length: 38\r\n\r\n{\"name\":\"A\",\"email\":\"51@test.example\"}"
      responseStatus response `shouldBe` 200
