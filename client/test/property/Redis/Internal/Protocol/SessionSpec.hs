-- | Whether a connection is in the state that the handshake left: the session's answer, compared
-- with a model of a server.
module Redis.Internal.Protocol.SessionSpec (spec) where

import Control.Monad (forM_)
import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Data.List qualified as List
import Data.Maybe (isJust)
import Data.Set (Set)
import Data.Set qualified as Set
import Redis.Internal.Protocol.Session
import Redis.Value
import Test.Hspec
import Test.Hspec.QuickCheck (prop)
import Test.QuickCheck

spec :: Spec
spec = describe "Redis.Internal.Protocol.Session" $ do
  it "is never as the handshake left it while the server is not, in any state that commands lead to" $
    [(session, server) | (session, server) <- Set.toList reachable, isAsLeft fresh session, server /= newServer] `shouldBe` []

  it "is searched to the end" $
    Set.size reachable `shouldSatisfy` (> 8000)

  it "is as the handshake left it again after what undoes it, in every state that is not spoilt" $
    [ (session, server)
      | (session, server) <- Set.toList reachable,
        session /= spoilt,
        let (undone, undoneServer) = List.foldl' (flip (spoken Fine)) (session, server) undoing,
        not (isAsLeft fresh undone) || undoneServer /= newServer
    ]
      `shouldBe` []

  prop "is never as the handshake left it while the server is not, after any commands" $
    forAll (listOf ((,) <$> elements fates <*> elements alphabet)) $ \history ->
      let (session, server) = List.foldl' (\both (fate, words') -> spoken fate words' both) (fresh, newServer) history
       in classify (isAsLeft fresh session && not (null history)) "as it was" $
            counterexample (show (session, server)) (not (isAsLeft fresh session) || server == newServer)

  it "comes back after a transaction that ran, one that met a change, and one that was refused" $
    forM_ [Fine, KeyChanged] $ \fate ->
      forM_ [["GET", "k"], ["SELECT", "7" {- refused: no such database -}]] $ \between -> do
        let history = [(Fine, ["WATCH", "k"]), (Fine, ["GET", "k"]), (Fine, ["MULTI"]), (Fine, between), (fate, ["EXEC"])]
            (session, _) = List.foldl' (\both (chance, words') -> spoken chance words' both) (fresh, newServer) history
        isAsLeft fresh session `shouldBe` True

  forM_ [["AUTH", "x"], ["HELLO", "3"], ["RESET"], ["QUIT"], ["SUBSCRIBE", "c"], ["UNSUBSCRIBE"], ["SSUBSCRIBE", "c"], ["MONITOR"], ["CLIENT", "REPLY", "SKIP"], ["client", "caching", "yes"], ["CLIENT", "SETINFO", "LIB-NAME", "x"], ["SCRIPT", "DEBUG", "YES"], ["NO.SUCH", "x"], ["SELECT", "05"], ["CLIENT", "SETNAME"]] $ \words' ->
    it ("is spoilt by " <> Char8.unpack (Char8.unwords words') <> ", whatever the answer") $
      forM_ [Accepted, Refused "ERR", Queued, Missing, Ran []] $ \answer ->
        step (effectOf words') answer fresh `shouldBe` spoilt

  forM_ [["GET", "k"], ["EVAL", "return 1", "0"], ["WAIT", "0", "0"], ["CLIENT", "ID"], ["client", "list"], ["PUBLISH", "c", "m"], ["HELLO"]] $ \words' ->
    it ("is not changed by " <> Char8.unpack (Char8.unwords words')) $
      step (effectOf words') Accepted fresh `shouldBe` fresh

  it "runs what was queued in its order, and nothing of what EXEC says was refused" $ do
    let queueing = List.foldl' (\session database -> step (Selects database) Queued session) (step BeginsQueue Accepted fresh)
        ranAll databases accepted = step RunsQueue (Ran accepted) (queueing databases)
    ranAll [5, 0] [True, True] `shouldBe` fresh
    ranAll [5, 0] [False, True] `shouldBe` fresh
    ranAll [5, 0] [False, False] `shouldBe` fresh
    ranAll [5, 0] [True, False] `shouldBe` step (Selects 5) Accepted fresh
    ranAll [0, 5] [True, True] `shouldBe` step (Selects 5) Accepted fresh

  it "is spoilt by what no server says between MULTI and EXEC, and by EXEC's answers to something else" $ do
    let queueing = step Harmless Queued (step BeginsQueue Accepted fresh)
        strange =
          [(effect, Queued) | effect <- [BeginsQueue, DropsQueue, TurnsOn Watching]]
            <> [(Harmless, Accepted), (Harmless, Missing), (RunsQueue, Accepted), (RunsQueue, Queued)]
            <> [(RunsQueue, Ran accepted) | accepted <- [[], [True, True]]]
            <> [(RunsQueue, Refused code) | code <- ["ERR", "MOVED", "OOM"]]
    [step effect answer queueing | (effect, answer) <- strange] `shouldBe` map (const spoilt) strange

  it "is as it was after an EXEC or a DISCARD that had nothing to end, and was refused; not if it was accepted" $ do
    [step effect (Refused "ERR") fresh | effect <- [RunsQueue, DropsQueue]] `shouldBe` [fresh, fresh]
    [step effect answer fresh | (effect, answer) <- [(RunsQueue, Ran []), (RunsQueue, Missing), (RunsQueue, Refused "EXECABORT"), (DropsQueue, Accepted)]]
      `shouldBe` replicate 4 spoilt

  it "is asked for one command only, whatever becomes of that" $
    forM_ [Accepted, Refused "MOVED", Missing] $ \answer -> do
      let asking = step (TurnsOn Asking) Accepted fresh
      asking `shouldSatisfy` (/= fresh)
      step Harmless answer asking `shouldBe` fresh

  it "is spoilt when the server has forgotten who it is" $ do
    step Harmless (answerOf (ErrorReply "NOAUTH Authentication required.")) fresh `shouldBe` spoilt
    step RunsQueue (answerOf (ErrorReply "EXECABORT Transaction discarded because of: NOAUTH Authentication required.")) (step BeginsQueue Accepted fresh) `shouldBe` spoilt

  it "takes the words in small letters for the same" $
    step (effectOf ["select", "0"]) Accepted (step (effectOf ["Select", "3"]) Accepted fresh) `shouldBe` fresh

fresh, spoilt :: Session
fresh = newSession 0 "worker"
spoilt = step Spoils Accepted fresh

-- | The model: the state that a server keeps of a connection.
data Server = Server
  { serverDatabase :: ByteString,
    serverName :: ByteString,
    serverModes :: Set ByteString,
    -- | The oldest command first.
    serverQueue :: Maybe [[ByteString]],
    serverAborts :: Bool
  }
  deriving stock (Eq, Ord, Show)

newServer :: Server
newServer = Server {serverDatabase = "0", serverName = "worker", serverModes = Set.empty, serverQueue = Nothing, serverAborts = False}

-- | What else happens to a command.
data Fate
  = Fine
  | -- | The server has no memory left, or the user has no right to the command.
    Denied
  | -- | Another client has changed a watched key.
    KeyChanged
  deriving stock (Show)

fates :: [Fate]
fates = [Fine, Denied, KeyChanged]

alphabet :: [[ByteString]]
alphabet =
  [ ["GET", "k"],
    ["MULTI"],
    ["EXEC"],
    ["DISCARD"],
    ["WATCH", "k"],
    ["UNWATCH"],
    ["SELECT", "0"],
    ["SELECT", "3"],
    ["SELECT", "7"],
    ["CLIENT", "SETNAME", "worker"],
    ["CLIENT", "SETNAME", "other"],
    ["CLIENT", "TRACKING", "ON", "BCAST"],
    ["CLIENT", "TRACKING", "OFF"],
    ["CLIENT", "NO-TOUCH", "ON"],
    ["CLIENT", "NO-TOUCH", "OFF"],
    ["CLIENT", "NO-EVICT", "ON"],
    ["CLIENT", "NO-EVICT", "OFF"],
    ["READONLY"],
    ["READWRITE"],
    ["ASKING"],
    ["AUTH", "x"]
  ]

undoing :: [[ByteString]]
undoing =
  [ ["DISCARD"],
    ["UNWATCH"],
    ["SELECT", "0"],
    ["CLIENT", "SETNAME", "worker"],
    ["CLIENT", "TRACKING", "OFF"],
    ["CLIENT", "NO-TOUCH", "OFF"],
    ["CLIENT", "NO-EVICT", "OFF"],
    ["READWRITE"]
  ]

-- | Gives one command to both.
spoken :: Fate -> [ByteString] -> (Session, Server) -> (Session, Server)
spoken fate words' (session, server) =
  let (reply, server') = serve fate words' server
   in (step (effectOf words') (answerOf reply) session, server')

-- | The reply of a server and its new state, according to its documentation.
serve :: Fate -> [ByteString] -> Server -> (Value, Server)
serve fate words' server = case (words', serverQueue server, fate) of
  (["EXEC"], Just _, Denied) -> (ErrorReply "EXECABORT Transaction discarded because of: OOM", ended)
  (_, queue, Denied) -> (ErrorReply "OOM command not allowed", notAsking server {serverAborts = isJust queue})
  (["MULTI"], Nothing, _) -> (SimpleString "OK", server {serverQueue = Just [], serverAborts = False})
  (["MULTI"], Just _, _) -> refused "ERR MULTI calls can not be nested"
  (["WATCH", _], Just _, _) -> refused "ERR WATCH inside MULTI is not allowed"
  (["EXEC"], Nothing, _) -> refused "ERR EXEC without MULTI"
  (["DISCARD"], Nothing, _) -> refused "ERR DISCARD without MULTI"
  (["DISCARD"], Just _, _) -> (SimpleString "OK", ended)
  (["EXEC"], Just queue, _)
    | serverAborts server -> (ErrorReply "EXECABORT Transaction discarded because of previous errors.", ended)
    | KeyChanged <- fate, "watch" `Set.member` serverModes server -> (Null, ended)
    | otherwise ->
      let (replies, done) = List.foldl' (\(so, now) queued -> let (reply, next) = plainly queued now in (so <> [reply], next)) ([], ended) queue
       in -- EXEC also ends ASKING.
          (Array replies, done {serverModes = Set.delete "asking" (serverModes done)})
  (_, Just queue, _) -> (SimpleString "QUEUED", server {serverQueue = Just (queue <> [words'])})
  (["ASKING"], Nothing, _) -> plainly words' server
  (_, Nothing, _) -> plainly words' (notAsking server)
  where
    refused text = (ErrorReply text, notAsking server {serverAborts = isJust (serverQueue server)})
    ended = server {serverQueue = Nothing, serverAborts = False, serverModes = Set.difference (serverModes server) (Set.fromList ["watch", "asking"])}
    notAsking now
      | isJust (serverQueue now) = now
      | otherwise = now {serverModes = Set.delete "asking" (serverModes now)}

-- | A command that runs at once.
plainly :: [ByteString] -> Server -> (Value, Server)
plainly words' server = case words' of
  ["SELECT", "7"] -> (ErrorReply "ERR DB index is out of range", server)
  ["SELECT", database] -> (ok, server {serverDatabase = database})
  ["CLIENT", "SETNAME", name] -> (ok, server {serverName = name})
  ["CLIENT", mode, "OFF"] -> (ok, without mode)
  "CLIENT" : mode : _ -> (ok, with mode)
  ["WATCH", _] -> (ok, with "watch")
  ["UNWATCH"] -> (ok, without "watch")
  ["READONLY"] -> (ok, with "readonly")
  ["READWRITE"] -> (ok, without "readonly")
  ["ASKING"] -> (ok, with "asking")
  ["AUTH", _] -> (ok, with "auth")
  _ -> (BulkString "value", server)
  where
    ok = SimpleString "OK"
    with mode = server {serverModes = Set.insert mode (serverModes server)}
    without mode = server {serverModes = Set.delete mode (serverModes server)}

-- | Every state that both can reach with at most one command queued.
reachable :: Set (Session, Server)
reachable = go Set.empty [(fresh, newServer)]
  where
    go seen [] = seen
    go seen (state@(session, server) : later)
      | state `Set.member` seen || maybe False ((> 1) . length) (serverQueue server) || session == spoilt = go seen later
      | otherwise = go (Set.insert state seen) ([spoken fate words' state | fate <- fates, words' <- alphabet] <> later)
