-- | Collects what a caller saw, and finds what contradicts the library's promises.
--
-- Pure, and fed event by event: a run of minutes has millions of events, and none is kept. Each
-- caller has a ledger of its own. At the end the ledgers are added up ('<>') and compared with the
-- data on the servers ('verdict').
module Soak.Audit
  ( -- * What happened
    Event (..),
    Call (..),

    -- * The ledger
    Ledger (..),
    observe,
    ledgerFailures,

    -- * At the end
    Held (..),
    verdict,
    withoutBooks,

    -- * Errors
    errorClass,
    isExpected,

    -- * Grace
    grace,
  )
where

import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Data.Int (Int64)
import Data.List (sortOn)
import Data.Map.Strict (Map)
import Data.Map.Strict qualified as Map
import Data.Maybe (fromMaybe)
import Redis.Error
import Soak.Book

-- | An event that a caller saw.
data Event
  = -- | A call returned, with an error or without.
    Returned Call (Maybe Error)
  | -- | Increments that were under way at the same time, of a counter that no other caller
    -- increments.
    Counted Key [Outcome Int64]
  | -- | An increment of a counter that others increment, too. 'False' if the reply says that it did
    -- not happen.
    CountedShared Key (Outcome Bool)
  | -- | The n-th write of a key that no other caller writes.
    Wrote Key Int (Outcome ())
  | -- | A read of a key while no write of it was under way. The flag says whether it was read again
    -- and again before.
    Read Key Bool (Maybe ByteString)
  | -- | A read that may return an older value.
    ReadFar Key (Maybe ByteString)
  | Pushed Key Int (Outcome ())
  | Popped Key (Outcome (Maybe (ByteString, ByteString)))
  | -- | The text that was sent, and the text that came back.
    Echoed ByteString ByteString
  | -- | Something that is always wrong.
    Wrong String

-- | How long a call took, in seconds.
data Call = Call
  { callKind :: String,
    -- | How long the call may take.
    callLimit :: Double,
    callTook :: Double,
    -- | How long the process was kept from running meanwhile.
    callLag :: Double
  }
  deriving stock (Eq, Show)

-- | How much later than its limit a call may return, besides the lag: half a second to open a
-- connection, and half a second to spare.
grace :: Double
grace = 1

-- | The facts about everything that a caller did.
data Ledger = Ledger
  { ledgerCounters :: Map Key CounterBook,
    ledgerValues :: Map Key ValueBook,
    ledgerLists :: Map Key ListBook,
    ledgerCalls :: Map String Int,
    ledgerErrors :: Map (String, Delivery) Int,
    ledgerStale :: Int,
    -- | The call that returned latest after its limit.
    ledgerLatest :: Maybe Call,
    -- | The first violations.
    ledgerWrong :: [String],
    ledgerWrongs :: Int
  }
  deriving stock (Show)

instance Semigroup Ledger where
  one <> other =
    Ledger
      { ledgerCounters = Map.unionWith (<>) (ledgerCounters one) (ledgerCounters other),
        ledgerValues = Map.unionWith (<>) (ledgerValues one) (ledgerValues other),
        ledgerLists = Map.unionWith (<>) (ledgerLists one) (ledgerLists other),
        ledgerCalls = Map.unionWith (+) (ledgerCalls one) (ledgerCalls other),
        ledgerErrors = Map.unionWith (+) (ledgerErrors one) (ledgerErrors other),
        ledgerStale = ledgerStale one + ledgerStale other,
        ledgerLatest = later (ledgerLatest one) (ledgerLatest other),
        ledgerWrong = take 20 (ledgerWrong one <> ledgerWrong other),
        ledgerWrongs = ledgerWrongs one + ledgerWrongs other
      }

instance Monoid Ledger where
  mempty =
    Ledger
      { ledgerCounters = Map.empty,
        ledgerValues = Map.empty,
        ledgerLists = Map.empty,
        ledgerCalls = Map.empty,
        ledgerErrors = Map.empty,
        ledgerStale = 0,
        ledgerLatest = Nothing,
        ledgerWrong = [],
        ledgerWrongs = 0
      }

later :: Maybe Call -> Maybe Call -> Maybe Call
later one other = case sortOn (negate . lateness) (concatMap (maybe [] pure) [one, other]) of
  [] -> Nothing
  latest : _ -> Just latest

-- | Seconds that the call returned after its limit, without the lag.
lateness :: Call -> Double
lateness call = callTook call - callLimit call - callLag call

-- | The number of calls that failed.
ledgerFailures :: Ledger -> Int
ledgerFailures = sum . ledgerErrors

-- | Adds an event to the ledger.
observe :: Event -> Ledger -> Ledger
observe event ledger = case event of
  Returned call failed ->
    complain ([late call | lateness call > grace] <> [unexpected problem | Just problem <- [failed], not (isExpected problem)]) $
      ledger
        { ledgerCalls = Map.insertWith (+) (callKind call) 1 (ledgerCalls ledger),
          ledgerLatest = later (ledgerLatest ledger) (Just call),
          ledgerErrors = case failed of
            Nothing -> ledgerErrors ledger
            Just problem -> Map.insertWith (+) (errorClass problem, errorDelivery problem) 1 (ledgerErrors ledger)
        }
  Counted key outcomes ->
    let (book, wrong) = count key outcomes (bookOf ledgerCounters key)
     in complain wrong ledger {ledgerCounters = Map.insert key book (ledgerCounters ledger)}
  CountedShared key outcome ->
    let counted = case effectOf outcome of
          Done True -> CounterBook 1 0
          Doubt -> CounterBook 0 1
          _ -> mempty
     in ledger {ledgerCounters = Map.insertWith (<>) key counted (ledgerCounters ledger)}
  Wrote key number outcome ->
    ledger {ledgerValues = Map.insert key (write number outcome (bookOf ledgerValues key)) (ledgerValues ledger)}
  Read key again value -> case judge key (bookOf ledgerValues key) value of
    Possible -> ledger
    Stale text
      | again -> complain ["lost write: " <> text] ledger
      | otherwise -> ledger {ledgerStale = ledgerStale ledger + 1}
    Impossible text -> complain [text] ledger
  ReadFar key value -> case judge key (bookOf ledgerValues key) value of
    Impossible text -> complain ["from a replica: " <> text] ledger
    _ -> ledger
  Pushed key number outcome ->
    ledger {ledgerLists = Map.insert key (push number outcome (bookOf ledgerLists key)) (ledgerLists ledger)}
  Popped key outcome ->
    let (book, wrong) = pop key outcome (bookOf ledgerLists key)
     in complain wrong ledger {ledgerLists = Map.insert key book (ledgerLists ledger)}
  Echoed sent got -> complain ["wrong reply: sent " <> show sent <> ", got " <> show got | sent /= got] ledger
  Wrong text -> complain [text] ledger
  where
    bookOf field key = fromMaybe mempty (Map.lookup key (field ledger))
    late call =
      "late: " <> callKind call <> " had " <> show (callLimit call) <> " s, took " <> show (callTook call)
        <> (", lag " <> show (callLag call))
    unexpected problem = "unexpected error: " <> show problem

-- | The ledger without what is only needed for the 'verdict'.
withoutBooks :: Ledger -> Ledger
withoutBooks ledger = ledger {ledgerCounters = Map.empty, ledgerValues = Map.empty, ledgerLists = Map.empty}

complain :: [String] -> Ledger -> Ledger
complain wrong ledger
  | null wrong = ledger
  | otherwise =
    ledger
      { ledgerWrong = take 20 (ledgerWrong ledger <> wrong),
        ledgerWrongs = ledgerWrongs ledger + length wrong
      }

-- | The data on the servers at the end.
data Held = Held
  { heldCounters :: Map Key Int,
    heldValues :: Map Key (Maybe ByteString),
    heldLists :: Map Key [ByteString]
  }

-- | All violations. A key for which there is no answer of the servers is a violation, too, so that
-- no key stays unchecked.
verdict :: Held -> Ledger -> [String]
verdict held ledger =
  ledgerWrong ledger
    <> concat [check counterHolds (heldCounters held) key book | (key, book) <- Map.toList (ledgerCounters ledger)]
    <> concat [check valueHolds (heldValues held) key book | (key, book) <- Map.toList (ledgerValues ledger)]
    <> concat [check listHolds (heldLists held) key book | (key, book) <- Map.toList (ledgerLists ledger)]
  where
    check holds there key book = maybe [Char8.unpack (keyName key) <> ": nobody looked"] (holds key book) (Map.lookup key there)
    valueHolds key book value = case judge key book value of
      Possible -> []
      Stale text -> ["lost write: " <> text]
      Impossible text -> [text]

-- | The kind of an error, without its details.
errorClass :: Error -> String
errorClass = \case
  ReplyError failed -> "reply " <> Char8.unpack (serverErrorCode failed)
  UnexpectedReply _ -> "unexpected reply"
  ConnectionError ConnectionFailure {connectionCause = cause} -> "connection: " <> causeClass cause
  TimeoutError _ -> "timeout"
  RoutingError RoutingFailure {routingCause = cause} -> case cause of
    UncoveredSlot _ -> "routing: uncovered slot"
    NoReachableNode _ -> "routing: no reachable node"
    AttemptsExhausted trail -> "routing: attempts exhausted" <> concatMap ((", " <>) . errorClass . snd) (take 1 (reverse trail))
    PartsFailed (FailedParts _ _ first) -> "parts: " <> errorClass first
    NodesFailed (FailedNodes failed _) -> "nodes: " <> maybe "none" (errorClass . fst) (Map.minView failed)
  RefusedError refusal -> "refused: " <> takeWhile (/= ' ') (show refusal)
  SubscriberTooSlow _ -> "subscriber too slow"
  ClientClosed -> "client closed"

causeClass :: ConnectionCause -> String
causeClass = \case
  ConnectFailed _ -> "not connected"
  NameNotResolved _ -> "no such name"
  TlsFailed _ -> "TLS"
  TlsTimedOut _ -> "TLS took too long"
  HandshakeRefused failed -> "handshake refused, " <> Char8.unpack (serverErrorCode failed)
  CredentialsFailed _ -> "credentials"
  ConnectTimedOut _ -> "connecting took too long"
  ClosedByPeer -> "closed by peer"
  BrokenConnection _ -> "broken"
  SilentPeer _ -> "silent peer"
  ProtocolViolation _ -> "protocol"
  ClosedLocally -> "closed locally"

-- | Whether the faults of a soak explain the error.
isExpected :: Error -> Bool
isExpected = \case
  ReplyError failed -> serverErrorCode failed `elem` passing
  ConnectionError ConnectionFailure {connectionCause = cause} -> case cause of
    ConnectFailed _ -> True
    ConnectTimedOut _ -> True
    TlsTimedOut _ -> True
    ClosedByPeer -> True
    BrokenConnection _ -> True
    SilentPeer _ -> True
    ClosedLocally -> True
    HandshakeRefused failed -> serverErrorCode failed `elem` passing
    _ -> False
  TimeoutError _ -> True
  RoutingError RoutingFailure {routingCause = cause} -> case cause of
    PartsFailed (FailedParts _ _ first) -> isExpected first
    NodesFailed (FailedNodes failed _) -> all isExpected failed
    NoReachableNode reasons -> all (isExpected . snd) reasons
    UncoveredSlot _ -> True
    AttemptsExhausted trail -> all (isExpected . snd) trail
  UnexpectedReply _ -> False
  SubscriberTooSlow _ -> False
  RefusedError _ -> False
  ClientClosed -> False
  where
    -- A dedicated connection follows no redirect, so its callers see MOVED and ASK.
    passing = ["ASK", "CLUSTERDOWN", "EXECABORT", "LOADING", "MASTERDOWN", "MOVED", "READONLY", "TRYAGAIN", "UNBLOCKED"]
