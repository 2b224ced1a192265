module Redis.Patterns.SessionSpec (spec) where

import Control.Concurrent.Async
import Control.Concurrent.STM
import Control.Exception (try)
import Control.Monad (forM_, void, when)
import Data.ByteString (ByteString)
import Data.ByteString qualified as ByteString
import Data.ByteString.Char8 qualified as Char8
import Data.IORef
import Data.List (nub)
import Network.HTTP.Types
import Network.Wai
import Network.Wai.Internal (ResponseReceived (..))
import Redis
import Redis.Commands qualified as Redis
import Redis.Patterns.Session
import Redis.Patterns.Surroundings
import Redis.TestKit.Proxy qualified as Proxy
import Redis.TestKit.Server (freeze)
import Test.Hspec

spec :: Spec
spec = do
  it "keeps what was stored from one request to the next, and sets no cookie without need" $
    withRedisAndClient $ \_ client -> do
      (nothing, untouched) <- visit client sessions [] (\_ -> pure ())
      (nothing, untouched) `shouldBe` ((), [])
      (_, missing) <- visit client sessions [] (`sessionGet` "user")
      missing `shouldBe` []
      (stored, cookies) <- visit client sessions [] (\session -> sessionPut session "user" "ada")
      stored `shouldBe` True
      let jar = jarOf cookies
      (found, again) <- visit client sessions jar (\session -> (,) <$> sessionGet session "user" <*> sessionGet session "other")
      (found, again) `shouldBe` ((Just "ada", Nothing), [])
      fst <$> visit client sessions jar (\session -> sessionDelete session "user" *> sessionGet session "user") `shouldReturn` Nothing

  it "sets a cookie that scripts and other sites do not get" $
    withRedisAndClient $ \_ client -> do
      (_, cookies) <- visit client sessions [] (\session -> sessionPut session "a" "1")
      map attributes cookies `shouldBe` [["__Host-session", "Path=/", "HttpOnly", "Secure", "SameSite=Lax"]]
      (_, remembered) <- visit client sessions {sessionRemembered = True, sessionSecure = False, sessionSameSite = Strict} [] (\session -> sessionPut session "a" "1")
      map attributes remembered `shouldBe` [["session", "Path=/", "HttpOnly", "SameSite=Strict", "Max-Age=43200"]]
      visit client sessions {sessionRemembered = True, sessionSecure = False} (jarOf remembered) (`sessionGet` "a") `shouldReturn` (Just "1", [])

  it "makes ids of 256 bits, each another" $
    withRedisAndClient $ \_ client -> do
      ids <- mapConcurrently (\_ -> idOf . snd <$> visit client sessions [] (\session -> sessionPut session "a" "1")) [1 .. 50 :: Int]
      map ByteString.length ids `shouldBe` replicate 50 64
      length (nub ids) `shouldBe` 50

  it "does not take over an id that it did not make" $
    withRedisAndClient $ \_ client -> do
      let planted = Char8.replicate 64 'a'
      (_, cookies) <- visit client sessions [("__Host-session", planted)] (\session -> sessionPut session "user" "ada")
      idOf cookies `shouldNotBe` planted
      run client (Redis.exists (pure ("session:" <> planted))) `shouldReturn` 0
      -- It does not take over a text that cannot be an id, either, and does not look it up.
      (_, others) <- visit client sessions [("__Host-session", "../" <> planted)] (\session -> sessionPut session "user" "ada")
      ByteString.length (idOf others) `shouldBe` 64

  it "rotates: what was stored is under a new id, and the old one leads to nothing" $
    withRedisAndClient $ \_ client -> do
      (_, before') <- visit client sessions [] (\session -> sessionPut session "cart" "7")
      (_, after') <- visit client sessions (jarOf before') (\session -> sessionRotate session *> sessionPut session "user" "ada")
      idOf after' `shouldNotBe` idOf before'
      both (jarOf after') client `shouldReturn` (Just "7", Just "ada")
      both (jarOf before') client `shouldReturn` (Nothing, Nothing)

  it "loses nothing that others store while it rotates" $
    withRedisAndClient $ \_ client ->
      forM_ [1 .. 10 :: Int] $ \_ -> do
        (_, cookies) <- visit client sessions [] (\session -> sessionPut session "user" "0")
        started <- newEmptyTMVarIO
        -- Stores until a write is refused. Returns the last number that was stored.
        let storing session count = do
              stored <- sessionPut session "user" (Char8.pack (show count))
              when (count == 3) (atomically (putTMVar started ()))
              if stored then storing session (count + 1) else pure (count - 1)
        ((last', _), (_, rotated)) <-
          concurrently
            (visit client sessions (jarOf cookies) (\session -> sessionGet session "user" *> storing session (1 :: Int)))
            (atomically (takeTMVar started) *> visit client sessions (jarOf cookies) sessionRotate)
        snd <$> both (jarOf rotated) client `shouldReturn` Just (Char8.pack (show last'))
        both (jarOf cookies) client `shouldReturn` (Nothing, Nothing)

  it "loses nothing when two requests rotate it" $
    withRedisAndClient $ \_ client -> do
      (_, cookies) <- visit client sessions [] (\session -> sessionPut session "cart" "7")
      (_, late) <- visit client sessions (jarOf cookies) $ \session -> do
        _ <- sessionGet session "cart"
        (_, rotated) <- visit client sessions (jarOf cookies) sessionRotate
        both (jarOf rotated) client `shouldReturn` (Just "7", Nothing)
        sessionRotate session
      both (jarOf late) client `shouldReturn` (Just "7", Nothing)
      both (jarOf cookies) client `shouldReturn` (Nothing, Nothing)

  it "is rotated though its time is over meanwhile, and a request with the id from before begins no other" $
    withRedisAndClient $ \_ client -> do
      (_, cookies) <- visit client sessions [] (\session -> sessionPut session "cart" "7")
      (_, login) <- visit client sessions (jarOf cookies) $ \session -> do
        _ <- sessionGet session "cart"
        _ <- run client (Redis.del (pure ("session:" <> idOf cookies)))
        sessionRotate session *> sessionPut session "user" "ada"
      visit client sessions (jarOf cookies) (\session -> sessionPut session "user" "eve") `shouldReturn` (False, [])
      both (jarOf login) client `shouldReturn` (Nothing, Just "ada")

  it "ends, and a late write does not bring it back" $
    withRedisAndClient $ \_ client -> do
      (_, cookies) <- visit client sessions [] (\session -> sessionPut session "user" "ada")
      (late, said) <- visit client sessions (jarOf cookies) $ \session -> do
        _ <- sessionGet session "user"
        (_, cleared) <- visit client sessions (jarOf cookies) sessionEnd
        map attributes cleared `shouldBe` [["__Host-session", "Path=/", "HttpOnly", "Secure", "SameSite=Lax", "Max-Age=0"]]
        sessionPut session "user" "ada"
      (late, said) `shouldBe` (False, [])
      both (jarOf cookies) client `shouldReturn` (Nothing, Nothing)

  forM_ [False, True] $ \remembered ->
    it ("clears no cookie when another request has rotated it, remembered: " <> show remembered) $
      withRedisAndClient $ \_ client -> do
        let kept = sessions {sessionRemembered = remembered}
        (_, cookies) <- visit client kept [] (\session -> sessionPut session "cart" "7")
        -- The browser may have the new cookie before it gets these answers.
        (late, said) <- visit client kept (jarOf cookies) $ \session -> do
          _ <- sessionGet session "cart"
          _ <- visit client kept (jarOf cookies) sessionRotate
          sessionPut session "user" "ada"
        (late, said) `shouldBe` (False, [])
        visit client kept (jarOf cookies) (`sessionGet` "cart") `shouldReturn` (Nothing, [])
        visit client kept (jarOf cookies) (`sessionDelete` "cart") `shouldReturn` (False, [])
        visit client kept (jarOf cookies) (\session -> sessionGet session "cart" *> sessionPut session "user" "ada") `shouldReturn` (False, [])
        -- Once it is forgotten, which takes five minutes.
        let key = "session:" <> idOf cookies
        run client (Redis.pttl key) >>= (`shouldSatisfy` (\time -> lives (seconds 240) time && not (lives (seconds 301) time)))
        _ <- run client (Redis.del (pure key))
        (stored, another) <- visit client kept (jarOf cookies) (\session -> sessionGet session "cart" *> sessionPut session "user" "ada")
        stored `shouldBe` True
        idOf another `shouldNotBe` idOf cookies
        concatMap attributes another `shouldSatisfy` notElem "Max-Age=0"

  forM_ [("a rotation", sessionRotate), ("an end", sessionEnd)] $ \(how, over) ->
    it ("begins no session for a request that stores first after " <> how <> ", so it leaves a login's cookie alone") $
      withRedisAndClient $ \_ client -> do
        (_, cookies) <- visit client sessions [] (\session -> sessionPut session "cart" "7")
        (_, login) <- visit client sessions (jarOf cookies) over
        length login `shouldBe` 1
        visit client sessions (jarOf cookies) (\session -> sessionPut session "user" "ada") `shouldReturn` (False, [])
        -- The id of a session that had ended before the login.
        let expired = [("__Host-session", Char8.replicate 64 'a')]
        _ <- visit client sessions expired over
        visit client sessions expired (\session -> sessionPut session "user" "ada") `shouldReturn` (False, [])
        -- A login with such an id is possible.
        (_, again) <- visit client sessions (jarOf cookies) (\session -> sessionRotate session *> sessionPut session "user" "ada")
        snd <$> both (jarOf again) client `shouldReturn` Just "ada"

  forM_ [False, True] $ \remembered ->
    it ("leaves a login's cookie alone when a request from before it is answered later, remembered: " <> show remembered) $
      withRedisAndClient $ \_ client -> do
        let kept = sessions {sessionRemembered = remembered}
        (_, cookies) <- visit client kept [] (\session -> sessionPut session "cart" "7")
        (found, said) <- visit client kept (jarOf cookies) $ \session ->
          sessionGet session "cart" <* visit client kept (jarOf cookies) sessionRotate
        (found, said) `shouldBe` (Just "7", [])
        (_, more) <- visit client kept [] (\session -> sessionPut session "cart" "7")
        -- The second write must not begin another session, either. A login may.
        (late, silent) <- visit client kept (jarOf more) $ \session -> do
          _ <- sessionGet session "cart"
          _ <- visit client kept (jarOf more) sessionRotate
          (,,) <$> sessionPut session "user" "ada" <*> sessionPut session "user" "ada" <*> sessionDelete session "user"
        (late, silent) `shouldBe` ((False, False, False), [])
        (_, other) <- visit client kept [] (\session -> sessionPut session "cart" "7")
        (again, login) <- visit client kept (jarOf other) $ \session -> do
          _ <- sessionGet session "cart"
          _ <- visit client kept (jarOf other) sessionEnd
          refused <- sessionPut session "cart" "8"
          sessionRotate session
          (,) refused <$> sessionPut session "user" "ada"
        again `shouldBe` (False, True)
        length login `shouldBe` 1

  it "lives on while it is used, and no longer than its life" $
    withRedisAndClient $ \_ client -> do
      let kept = sessions {sessionIdle = hours' 1, sessionLifetime = hours' 2}
      (_, cookies) <- visit client kept [] (\session -> sessionPut session "user" "ada")
      let key = "session:" <> idOf cookies
          left = run client (Redis.pttl key)
      void (run client (raw ["PEXPIRE", key, "60000"]))
      void (visit client kept (jarOf cookies) (`sessionGet` "user"))
      left >>= (`shouldSatisfy` lives (seconds 3500))
      -- Makes the session look as if it had been created long ago.
      made <- maybe 0 (maybe 0 fst . Char8.readInt) <$> run client (Redis.hget key "c")
      void (run client (raw ["HSET", key, "c", Char8.pack (show (made - 5400000))]))
      void (visit client kept (jarOf cookies) (`sessionGet` "user"))
      left >>= (`shouldSatisfy` (\time -> lives (seconds 1700) time && not (lives (seconds 1900) time)))
      void (run client (raw ["HSET", key, "c", Char8.pack (show (made - 7200001))]))
      fst <$> visit client kept (jarOf cookies) (`sessionGet` "user") `shouldReturn` Nothing
      run client (Redis.exists (pure key)) `shouldReturn` 0

  it "does all of that in a cluster" $
    inCluster $ \client -> do
      (_, cookies) <- visit client sessions [] (\session -> sessionPut session "cart" "7")
      (_, rotated) <- visit client sessions (jarOf cookies) (\session -> sessionRotate session *> sessionPut session "user" "ada")
      both (jarOf rotated) client `shouldReturn` (Just "7", Just "ada")

  describe "a reply that is lost" $ do
    it "to any step of a rotation has it done again, and it is done once" $
      behindProxy $ \_ proxy client -> do
        (_, known) <- visit client sessions [] (\session -> sessionPut session "cart" "7")
        (_, warm) <- visit client sessions (jarOf known) (\session -> sessionRotate session *> sessionPut session "cart" "7")
        void (pure warm)
        forM_ [(direction, bytes) | direction <- [Proxy.ToServer, Proxy.ToClient], bytes <- [0, 20, 60, 150, 300]] $ \(direction, bytes) -> do
          (_, cookies) <- visit client sessions [] (\session -> sessionPut session "cart" "7")
          Proxy.cutAfter proxy direction bytes Proxy.Reset
          (_, rotated) <- visit client sessions (jarOf cookies) sessionRotate
          fst <$> both (jarOf rotated) client `shouldReturn` Just "7"
          fst <$> both (jarOf cookies) client `shouldReturn` Nothing

    it "to the end for ever is an error, and the cookie is not taken for gone" $
      behindProxy $ \server _ client -> do
        (_, cookies) <- visit client sessions [] (\session -> sessionPut session "user" "ada")
        freeze server
        (ended, said) <- visit client sessions (jarOf cookies) (try . sessionEnd)
        either errorDelivery (const NotSent) ended `shouldBe` MaybeExecuted
        said `shouldBe` []
  where
    hours' n = seconds (3600 * n)
    lives atLeast = \case
      Redis.KeyExpires time -> time >= atLeast
      _ -> False

both :: [(ByteString, ByteString)] -> Client -> IO (Maybe ByteString, Maybe ByteString)
both jar client = fst <$> visit client sessions jar (\session -> (,) <$> sessionGet session "cart" <*> sessionGet session "user")

-- | Sends a request with these cookies. Returns the action's result and the cookies that were set.
visit :: Client -> Sessions -> [(ByteString, ByteString)] -> (Session -> IO a) -> IO (a, [ByteString])
visit client kept jar action = do
  given <- newIORef Nothing
  set <- newIORef []
  let application session _ respond = do
        action session >>= writeIORef given . Just
        respond (responseLBS status200 [] "")
      header = ByteString.intercalate "; " [name <> "=" <> content | (name, content) <- ("first", "x") : jar]
  _ <- withSessions client kept application defaultRequest {requestHeaders = [(hCookie, header)]} $ \response ->
    ResponseReceived <$ writeIORef set [content | ("Set-Cookie", content) <- responseHeaders response]
  readIORef given >>= \case
    Just result -> (,) result <$> readIORef set
    Nothing -> fail "the application did not run"

jarOf :: [ByteString] -> [(ByteString, ByteString)]
jarOf cookies = [(name, ByteString.drop 1 (Char8.takeWhile (/= ';') rest)) | cookie <- cookies, let (name, rest) = Char8.break (== '=') cookie]

idOf :: [ByteString] -> ByteString
idOf cookies = mconcat (map snd (jarOf cookies))

-- | The cookie's name, and the attributes after its value.
attributes :: ByteString -> [ByteString]
attributes cookie = case map (Char8.dropWhile (== ' ')) (Char8.split ';' cookie) of
  first : others -> Char8.takeWhile (/= '=') first : others
  [] -> []
