-- | A server in the test's own process that answers as the test says, and reports commands that it
-- did not expect. No Redis is needed.
--
-- > withScripted
-- >   (inOrder [on ["GET", "k"] [replies Nil], on ["SET", "k", "v"] [replies (Status "OK")]])
-- >   $ \server -> myService (scriptedPort server)
--
-- An expectation names a command, and the steps that the server then takes, one by one:
-- @times 2 (on ["INCR", "n"] [pauses 0.1, fails "OOM no memory"])@.
-- When the action ends, every expected command must have arrived, and no other.
--
-- The commands by which a client introduces itself are answered as a real server does, unless an
-- expectation is for them: HELLO, AUTH, CLIENT, SELECT, PING, READONLY, ASKING and QUIT.
module Redis.TestKit.Scripted
  ( -- * Life
    Scripted,
    withScripted,
    ScriptedOptions (..),
    scriptedDefaults,
    withScriptedOf,
    scriptedAddress,
    scriptedPort,

    -- * What is expected
    Script,
    inOrder,
    inAnyOrder,
    nothingMore,
    Expectation,
    on,
    onAny,

    -- ** What is done then
    Step,
    replies,
    fails,
    pushes,
    cutsAfter,
    hangsUp,
    holds,
    waitsFor,
    pauses,
    says,

    -- ** How often
    times,
    anyNumber,

    -- * While it runs
    expects,
    awaitMet,
    heardBy,
    pushToAll,
    hangUp,
    connections,
    complaints,
  )
where

import Control.Concurrent.STM
import Control.Exception (SomeAsyncException, SomeException, catch, displayException, fromException, throwIO)
import Control.Monad (forM_)
import Data.ByteString (ByteString)
import Data.ByteString qualified as ByteString
import Data.ByteString.Char8 qualified as Char8
import Data.Char (toUpper)
import Data.Map.Strict (Map)
import Data.Map.Strict qualified as Map
import Data.Maybe (fromMaybe, isJust)
import GHC.Stack (HasCallStack)
import Redis.TestKit.Address (Address, renderAddress)
import Redis.TestKit.Command
import Redis.TestKit.Listener
import Redis.TestKit.Wait (Seconds, TestKitFailure (..), eventually, failure, pause)

-- | The expected commands: any number of strands. The expectations of one strand are met one after
-- the other. '<>' puts strands side by side.
newtype Script = Script [[Expectation]]
  deriving newtype (Semigroup, Monoid)

-- | These expectations, one after the other, whichever connections the commands arrive on.
inOrder :: [Expectation] -> Script
inOrder expectations = Script [expectations]

-- | These expectations, in any order. If a command fits several, it meets the first.
inAnyOrder :: [Expectation] -> Script
inAnyOrder = Script . map pure

-- | No command, except those by which a client introduces itself.
nothingMore :: Script
nothingMore = Script []

-- | An expected command, the steps that follow, and how often it comes.
data Expectation = Expectation
  { expectationName :: String,
    expectationFits :: [ByteString] -> Bool,
    expectationSteps :: [Step],
    expectationLeast :: Int,
    expectationMost :: Maybe Int
  }

-- | A step of the server, on the connection on which the command arrived.
data Step
  = Say (Protocol -> ByteString)
  | CutAfter Int Reply
  | WaitFor (STM ())
  | Pause Seconds
  | Leave
  | Hold

-- | Expects this command with these arguments, its name in upper or lower case. The server then
-- takes all of these steps, one after the other.
on :: [ByteString] -> [Step] -> Expectation
on words' = onAny (commandLine words') (== upperName words')

-- | Expects any command that fits; the function gets the name in capitals. The text names the
-- command in complaints.
onAny :: String -> ([ByteString] -> Bool) -> [Step] -> Expectation
onAny expectationName fits expectationSteps =
  Expectation {expectationName, expectationFits = fits . upperName, expectationSteps, expectationLeast = 1, expectationMost = Just 1}

-- | Sends a reply. A client that speaks RESP2 gets it as RESP2.
replies :: Reply -> Step
replies reply = Say (`encodeReply` reply)

-- | Sends an error reply: its code and its message.
fails :: ByteString -> Step
fails = replies . Failed

-- | Sends a push message, before or after a reply.
pushes :: [Reply] -> Step
pushes items = Say (`encodePush` items)

-- | Sends these bytes as they are.
says :: ByteString -> Step
says bytes = Say (const bytes)

-- | Sends this many bytes of a reply and closes the connection.
cutsAfter :: Int -> Reply -> Step
cutsAfter = CutAfter

-- | Closes the connection.
hangsUp :: Step
hangsUp = Leave

-- | Sends nothing more on this connection, and leaves it open.
holds :: Step
holds = Hold

-- | Waits for this transaction of the test's before the connection continues.
waitsFor :: STM () -> Step
waitsFor = WaitFor

-- | Waits for this time.
pauses :: Seconds -> Step
pauses = Pause

-- | The command is expected this often, instead of once.
times :: Int -> Expectation -> Expectation
times count given = given {expectationLeast = count, expectationMost = Just count}

-- | The command may come any number of times, or never. In a strand, the next expectation may be
-- met at any time.
anyNumber :: Expectation -> Expectation
anyNumber given = given {expectationLeast = 0, expectationMost = Nothing}

-- | An expectation, and how often its command has come.
data Awaited = Awaited
  { awaited :: Expectation,
    awaitedCame :: Int
  }

-- | A running scripted server.
data Scripted = Scripted
  { scriptedListener :: Listener,
    scriptedState :: State
  }

data State = State
  { stateStrands :: TVar [[Awaited]],
    -- | The latest command is first.
    stateHeard :: TVar [(Int, [ByteString])],
    stateUnexpected :: TVar [(Int, [ByteString])],
    stateProtocols :: TVar (Map Int Protocol)
  }

-- | The kind of server. Change fields of 'scriptedDefaults'.
data ScriptedOptions = ScriptedOptions
  { -- | The numeric address to listen at.
    scriptedHost :: String,
    -- | The newest protocol that it speaks. 'Resp2' is an old server, which does not know HELLO.
    scriptedProtocol :: Protocol
  }
  deriving stock (Eq, Show)

-- | At 127.0.0.1, with RESP3.
scriptedDefaults :: ScriptedOptions
scriptedDefaults = ScriptedOptions {scriptedHost = "127.0.0.1", scriptedProtocol = Resp3}

-- | Runs the action beside a server with this script. When the action has ended, throws a
-- 'TestKitFailure' that lists the commands that did not come, and those that were not expected. If
-- the action itself throws after unexpected commands, the failure shows both.
withScripted :: HasCallStack => Script -> (Scripted -> IO a) -> IO a
withScripted = withScriptedOf scriptedDefaults

-- | Like 'withScripted', with options.
withScriptedOf :: HasCallStack => ScriptedOptions -> Script -> (Scripted -> IO a) -> IO a
withScriptedOf ScriptedOptions {scriptedHost, scriptedProtocol} script action = do
  state <- State <$> newTVarIO [] <*> newTVarIO [] <*> newTVarIO [] <*> newTVarIO Map.empty
  addTo state script
  withListener scriptedHost (answer scriptedProtocol state) $ \listener -> do
    let server = Scripted {scriptedListener = listener, scriptedState = state}
    result <- action server `catch` explained server
    complaints server >>= mapM_ failure
    pure result
  where
    explained server problem = do
      unexpected <- readTVarIO (stateUnexpected (scriptedState server))
      told <- complaints server
      case (told, fromException problem) of
        (Just text, Nothing) | not (null unexpected) -> throwIO (TestKitFailure (displayException (problem :: SomeException) <> "\n" <> text))
        (_, Just asynchronous) -> throwIO (asynchronous :: SomeAsyncException)
        _ -> throwIO problem

-- | The server's address.
scriptedAddress :: Scripted -> Address
scriptedAddress = listenerAddress . scriptedListener

-- | The server's port.
scriptedPort :: Scripted -> Int
scriptedPort = listenerPort . scriptedListener

-- | Adds expectations while the server runs.
expects :: Scripted -> Script -> IO ()
expects = addTo . scriptedState

addTo :: State -> Script -> IO ()
addTo state (Script strands) = atomically (modifyTVar' (stateStrands state) (<> map (map (`Awaited` 0)) strands))

-- | Waits until all expected commands have come, for at most this many seconds.
awaitMet :: HasCallStack => Scripted -> Seconds -> IO ()
awaitMet server limit =
  eventually limit "the scripted server has got what it expects" (null . unmet <$> readTVarIO (stateStrands (scriptedState server)))

-- | Every command, in the order of arrival, with the number of its connection.
heardBy :: Scripted -> IO [(Int, [ByteString])]
heardBy server = reverse <$> readTVarIO (stateHeard (scriptedState server))

-- | Sends a push on every connection.
pushToAll :: Scripted -> [Reply] -> IO ()
pushToAll server items = do
  callers <- atomically (callersNow (scriptedListener server))
  forM_ callers $ \caller -> do
    protocol <- protocolOf (scriptedState server) caller
    sayTo caller (encodePush protocol items)

-- | Closes every connection.
hangUp :: Scripted -> IO ()
hangUp = hangUpAll . scriptedListener

-- | How many connections there are.
connections :: Scripted -> STM Int
connections = connectionsNow . scriptedListener

-- | The complaints so far: unexpected commands, and expected ones that have not come.
complaints :: Scripted -> IO (Maybe String)
complaints server = do
  strands <- readTVarIO (stateStrands state)
  unexpected <- reverse <$> readTVarIO (stateUnexpected state)
  heard <- heardBy server
  let missed = unmet strands
  pure $
    if null missed && null unexpected
      then Nothing
      else
        Just . unlines $
          ("the scripted server at " <> renderAddress (scriptedAddress server)) :
          part "did not expect" (map line unexpected)
            <> part "still expects" (map lack missed)
            <> part "has heard" (map line heard)
  where
    state = scriptedState server
    part title = \case
      [] -> []
      lines' -> ("  " <> title <> ":") : map ("    " <>) lines'
    line (number, words') = "connection " <> show number <> ": " <> commandLine words'
    lack one =
      expectationName (awaited one)
        <> case (expectationLeast (awaited one), awaitedCame one) of
          (1, _) -> ""
          (least, came) -> " (" <> show least <> " times; came " <> show came <> " times)"

unmet :: [[Awaited]] -> [Awaited]
unmet = concatMap (filter (\one -> awaitedCame one < expectationLeast (awaited one)))

answer :: Protocol -> State -> Listener -> Caller -> [ByteString] -> IO AndThen
answer newest state listener caller words' = do
  found <- atomically $ do
    modifyTVar' (stateHeard state) ((callerNumber caller, words') :)
    strands <- readTVar (stateStrands state)
    case meet words' strands of
      Just (steps, rest) -> Just steps <$ writeTVar (stateStrands state) rest
      Nothing
        | isJust (introduction newest words') -> pure Nothing
        | otherwise -> Nothing <$ modifyTVar' (stateUnexpected state) ((callerNumber caller, words') :)
  case found of
    Just steps -> perform steps
    Nothing -> do
      let (reply, protocol) = fromMaybe (Failed ("ERR the script does not expect " <> Char8.pack (commandLine words')), Nothing) (introduction newest words')
      forM_ protocol $ \spoken -> atomically (modifyTVar' (stateProtocols state) (Map.insert (callerNumber caller) spoken))
      now <- protocolOf state caller
      sayTo caller (encodeReply now reply)
      pure (if upperName words' == ["QUIT"] then HangUp else GoOn)
  where
    perform = \case
      [] -> pure GoOn
      step : rest -> case step of
        Say bytes -> do
          protocol <- protocolOf state caller
          sayTo caller (bytes protocol)
          perform rest
        CutAfter count reply -> do
          protocol <- protocolOf state caller
          sayTo caller (ByteString.take count (encodeReply protocol reply))
          pure HangUp
        WaitFor condition -> do
          atomically (condition `orElse` (listenerOver listener >>= check))
          perform rest
        Pause time -> pause time *> perform rest
        Leave -> pure HangUp
        Hold -> HangUp <$ untilItLeaves caller

-- | The steps of the first expectation that the command meets, and the strands that remain.
meet :: [ByteString] -> [[Awaited]] -> Maybe ([Step], [[Awaited]])
meet words' = \case
  [] -> Nothing
  strand : others -> case within' strand of
    Just (steps, rest) -> Just (steps, [rest | not (null rest)] <> others)
    Nothing -> fmap (strand :) <$> meet words' others
  where
    within' = \case
      [] -> Nothing
      one : rest
        | not (isFull one),
          expectationFits (awaited one) words' ->
          let came = one {awaitedCame = awaitedCame one + 1}
           in Just (expectationSteps (awaited one), if isFull came then rest else came : rest)
        -- An expectation that has been met often enough may be skipped.
        | awaitedCame one >= expectationLeast (awaited one) -> within' rest
        | otherwise -> Nothing
    isFull one = maybe False (awaitedCame one >=) (expectationMost (awaited one))

-- | A server's reply to a client that introduces itself, and the protocol of the connection from
-- then on.
introduction :: Protocol -> [ByteString] -> Maybe (Reply, Maybe Protocol)
introduction newest words' = case upperName words' of
  "HELLO" : version
    | newest == Resp2 -> Just (Failed "ERR unknown command 'HELLO'", Nothing)
    | take 1 version == ["3"] -> Just (hello 3, Just Resp3)
    | otherwise -> Just (hello 2, Just Resp2)
  "AUTH" : _ -> okay
  "CLIENT" : "ID" : _ -> Just (Number 1, Nothing)
  "CLIENT" : sub : _ | sub `elem` ["SETINFO", "SETNAME", "NO-EVICT", "NO-TOUCH", "CAPA"] -> okay
  "SELECT" : _ -> okay
  ["PING"] -> Just (Status "PONG", Nothing)
  ["PING", text] -> Just (Text text, Nothing)
  ["READONLY"] -> okay
  ["ASKING"] -> okay
  ["QUIT"] -> okay
  _ -> Nothing
  where
    okay = Just (Status "OK", Nothing)
    hello version =
      Mapping
        [ (Text "server", Text "redis"),
          (Text "version", Text "7.4.0"),
          (Text "proto", Number version),
          (Text "id", Number 1),
          (Text "mode", Text "standalone"),
          (Text "role", Text "master"),
          (Text "modules", List [])
        ]

protocolOf :: State -> Caller -> IO Protocol
protocolOf state caller = Map.findWithDefault Resp2 (callerNumber caller) <$> readTVarIO (stateProtocols state)

upperName :: [ByteString] -> [ByteString]
upperName = \case
  name : sub : rest | upper name `elem` ["CLUSTER", "CLIENT", "CONFIG", "SCRIPT"] -> upper name : upper sub : rest
  name : rest -> upper name : rest
  [] -> []
  where
    upper = Char8.map toUpper

-- | The command as a user would type it; long words are cut.
commandLine :: [ByteString] -> String
commandLine = unwords . map word
  where
    word text
      | ByteString.null text || Char8.any (`elem` (" \r\n\"" :: String)) text || ByteString.length text > 60 = show (ByteString.take 60 text)
      | otherwise = Char8.unpack text
