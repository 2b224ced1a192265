-- | Credentials that are replaced again and again, and credentials that expire, while many callers
-- work: on shared connections, on dedicated ones, and with commands that wait on the server.
module RotationSpec (spec) where

import Control.Concurrent.Async (async, cancel, wait)
import Control.Concurrent.STM
import Control.Exception (finally, try)
import Control.Monad (forM, forM_, unless, void, when)
import Data.Bifunctor (first, second)
import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Data.Int (Int64)
import Data.List (sort)
import Data.Maybe (mapMaybe)
import GHC.Clock (getMonotonicTime)
import Harness
import Redis
import Redis.Commands qualified as Commands
import Redis.TestKit.Command (Reply (List, Status), replyText)
import Redis.TestKit.Server (Server, serverDefaults, withServer)
import Redis.TestKit.Server qualified as Server
import Redis.TestKit.Wait (pause, within)
import Redis.Tracing (CommandEnded (..), CommandOutcome (..))
import Test.Hspec hiding (before)

spec :: Spec
spec = describe "credentials that change again and again" $ do
  it "lose nothing and fail nothing when a password is replaced, though the server knows of it before whoever issues it" $
    withServer serverDefaults $ \server -> do
      user server "app" "0"
      newest <- newTVarIO "0"
      stale <- newTVarIO (0 :: Int, "0")
      do
        let issue = atomically $ do
              (times, old) <- readTVar stale
              if times > 0
                then issuedCredentials (named "app" old) <$ writeTVar stale (times - 1, old)
                else issuedCredentials . named "app" <$> readTVar newest
        failures <- newTVarIO []
        let noteFailure problem = when (errorDelivery problem /= MaybeExecuted) (atomically (modifyTVar' failures (problem :)))
            noteEnd ended = case endedOutcome ended of
              -- A command on a dedicated connection is not tried again; the load's own counts cover
              -- the others.
              CommandFailed problem -> unless (lostEarly problem) (noteFailure problem)
              _ -> pure ()
            hooks = noHooks {hookCommand = Just (\_ -> pure noteEnd)}
            config = setMaxAttempts 1000 (setHooks hooks (setCredentialsFrom issue (setMaxDedicated 8 (setMuxCount (Just 3) (addressed server)))))
        others <- newTVarIO mempty
        tally <- underLoad server config $ \client load -> do
          lent <- lending client others
          flip finally (stop lent) $ do
            forM_ [1 .. 8 :: Int] $ \number -> do
              let text = decimal number
              Server.command server ["ACL", "SETUSER", "app", "resetpass", ">" <> text] >>= (`shouldBe` Status "OK")
              -- Twice the action still issues the old password; the client asks it again for one second. Meanwhile
              -- connections are lost.
              atomically $ do
                old <- swapTVar newest text
                when (even number) (writeTVar stale (2, old))
              when (even number) $ do
                void (Server.command server ["CLIENT", "KILL", "USER", "app"])
                atomically (readTVar stale >>= check . (== 0) . fst)
              workersProgress load 10
              reauthenticate client `shouldReturn` []
              workersProgress load 10
            enoughDone others
          audit server lent
        -- Commands in flight on a lost connection may have run; nothing else failed.
        found' <- readTVarIO failures
        take 3 found' `shouldBe` []
        tallyNotRun tally `shouldBe` 0
        found <- readTVarIO others
        (tallyNotRun found, take 3 (tallyWrong found)) `shouldBe` (0, [])

  it "lose nothing and fail nothing when tokens expire, whose connections the server then ends" $
    withServer serverDefaults $ \server -> do
      issued <- newTVarIO []
      let life = 1
          -- A machine that is busy may keep the client from renewing them in the last fifth of
          -- their time. That it renews them by then is shown without a server (CredentialStoreSpec).
          grace = 1
          issue = do
            number <- length <$> readTVarIO issued
            let name = "token-" <> decimal number
            user server name "secret"
            now <- getMonotonicTime
            atomically (modifyTVar' issued ((name, now + life + grace) :))
            pure (issuedCredentials (Credentials {credentialsUser = Just name, credentialsPassword = toSecret "secret"})) {issuedFor = Just (seconds life)}
          expireAll = do
            now <- getMonotonicTime
            over <- atomically $ do
              all' <- readTVar issued
              pure [name | (name, end) <- all', end <= now]
            -- The server closes every connection that has not authenticated anew since.
            forM_ over $ \name -> Server.command server ["ACL", "DELUSER", name]
            pure (length over)
      others <- newTVarIO mempty
      tally <- underLoad server (setCredentialsFrom issue (setMaxDedicated 8 (setMuxCount (Just 3) (addressed server)))) $ \client _ -> do
        lent <- lending client others
        flip finally (stop lent) $ do
          let untilExpired wanted = do
                count <- expireAll
                if count >= wanted then pure () else pause 0.02 >> untilExpired wanted
          untilExpired (3 :: Int)
          enoughDone others
        audit server lent
      (tallyMaybe tally, tallyNotRun tally) `shouldBe` (0, 0)
      found <- readTVarIO others
      (tallyMaybe found, tallyNotRun found, tallyWrong found) `shouldBe` (0, 0, [])

-- | The workers on dedicated connections.
data Lending = Lending
  { lendingStop :: TVar Bool,
    -- | Each counter, with how many increments were answered and how many are in doubt.
    lendingCounters :: TVar [(ByteString, Int, Int)],
    -- | The elements that were certainly pushed, those that may have been, and those that were
    -- taken.
    lendingPushed :: TVar ([ByteString], [ByteString]),
    lendingTaken :: TVar [ByteString],
    -- | The number of takes that may have taken an element without a reply.
    lendingLostTakes :: TVar Int,
    stop :: IO ()
  }

-- | Whether a connection was lost before the command was sent on it.
lostEarly :: Error -> Bool
lostEarly = \case
  ConnectionError ConnectionFailure {connectionCause = cause} -> case cause of
    HandshakeRefused _ -> False
    CredentialsFailed _ -> False
    _ -> True
  _ -> False

lending :: Client -> TVar Tally -> IO Lending
lending client tally = do
  lendingStop <- newTVarIO False
  lendingCounters <- newTVarIO []
  lendingPushed <- newTVarIO ([], [])
  lendingTaken <- newTVarIO []
  lendingLostTakes <- newTVarIO 0
  let note change = atomically (modifyTVar' tally (<> change))
      failed problem = note $ case errorDelivery problem of
        MaybeExecuted -> mempty {tallyMaybe = 1}
        -- A dedicated connection that is lost while it is opened is not tried again.
        _ | lostEarly problem -> mempty
        _ -> mempty {tallyNotRun = 1, tallyWrong = [show problem]}
      going action = do
        over <- readTVarIO lendingStop
        if over then pure () else action >> going action
      -- Counts on a dedicated connection, which goes back to the pool and is lent again.
      counting number = do
        let counter = "lent:" <> decimal number
        done <- newTVarIO (0 :: Int, 0 :: Int)
        going $ do
          answer <- lendTo counter
          case answer of
            Right (_ :: Int64) -> note mempty {tallyRight = 1} >> atomically (modifyTVar' done (\(a, b) -> (a + 1, b)))
            Left problem -> do
              failed problem
              pause 0.02
              when (errorDelivery problem == MaybeExecuted) (atomically (modifyTVar' done (\(a, b) -> (a, b + 1))))
        (a, b) <- readTVarIO done
        atomically (modifyTVar' lendingCounters ((counter, a, b) :))
      lendTo counter = tryLend (withDedicated client AnyPrimary (\own -> tryRunOn own (Commands.incr counter)))
      pushing = do
        next <- newTVarIO (0 :: Int)
        going $ do
          number <- atomically (stateTVar next (\n -> (n, n + 1)))
          pushed <- tryRun client (raw ["RPUSH", "list", decimal number])
          case pushed of
            Right _ -> atomically (modifyTVar' lendingPushed (first (decimal number :)))
            Left problem -> do
              failed problem
              when (errorDelivery problem == MaybeExecuted) (atomically (modifyTVar' lendingPushed (second (decimal number :))))
          pause 0.005
      -- Waits on the server, so it runs on a dedicated connection.
      taking = going $ do
        taken <- tryRun client (Commands.blpop (pure "list") (Just (seconds 0.2)))
        case taken of
          Right (Just (_, element)) -> note mempty {tallyRight = 1} >> atomically (modifyTVar' lendingTaken (element :))
          Right Nothing -> pure ()
          Left problem -> do
            failed problem
            when (errorDelivery problem == MaybeExecuted) (atomically (modifyTVar' lendingLostTakes (+ 1)))
  threads <- forM (map counting [1 .. 4 :: Int] <> [pushing, taking, taking]) async
  let stop = do
        atomically (writeTVar lendingStop True)
        mapM_ wait threads `finally` mapM_ cancel threads
  pure Lending {lendingStop, lendingCounters, lendingPushed, lendingTaken, lendingLostTakes, stop}
  where
    tryLend action = either Left id <$> try action

-- | Waits until the workers on dedicated connections have more than a hundred right replies: on a
-- busy machine the changes of credentials may be over before that.
enoughDone :: TVar Tally -> IO ()
enoughDone tally = within 20 (atomically (readTVar tally >>= check . (> 100) . tallyRight))

-- | Checks that every answered increment is there and none twice, and that every element was taken
-- once.
audit :: Server -> Lending -> IO ()
audit server lent = do
  counters <- readTVarIO (lendingCounters lent)
  length counters `shouldBe` 4
  forM_ counters $ \(counter, done, doubtful) -> do
    held <- counterOf server counter
    (counter, held, done, doubtful) `shouldSatisfy` \_ -> done <= held && held <= done + doubtful
  (sure, unsure) <- readTVarIO (lendingPushed lent)
  taken <- readTVarIO (lendingTaken lent)
  lostTakes <- readTVarIO (lendingLostTakes lent)
  rest <- listOf server
  let seen = taken <> rest
  [element | (element, next) <- zip (sort seen) (drop 1 (sort seen)), element == next] `shouldBe` []
  [element | element <- seen, element `notElem` sure, element `notElem` unsure] `shouldBe` []
  length [element | element <- sure, element `notElem` seen] `shouldSatisfy` (<= lostTakes)

decimal :: Int -> ByteString
decimal = Char8.pack . show

named :: ByteString -> ByteString -> Credentials
named name text = Credentials {credentialsUser = Just name, credentialsPassword = toSecret text}

user :: Server -> ByteString -> ByteString -> IO ()
user server name text = Server.command server ["ACL", "SETUSER", name, "on", ">" <> text, "~*", "&*", "+@all"] >>= (`shouldBe` Status "OK")

listOf :: Server -> IO [ByteString]
listOf server =
  Server.command server ["LRANGE", "list", "0", "-1"] >>= \case
    List replies -> pure (mapMaybe replyText replies)
    _ -> pure []
