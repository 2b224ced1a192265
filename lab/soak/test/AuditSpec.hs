-- | The audit finds what it should: a history without faults passes, and a history with one fault
-- fails with the words for that fault.
module AuditSpec (spec) where

import Data.ByteString (ByteString)
import Data.List (isInfixOf)
import Data.Map.Strict qualified as Map
import Data.Time.Clock (UTCTime)
import Data.Time.Clock.POSIX (posixSecondsToUTCTime)
import Redis
import Redis.MessageAudit
import Soak.Audit
import Soak.Book
import Soak.Measure
import Test.Hspec hiding (after, before)

spec :: Spec
spec = do
  describe "the audit of counters" $ do
    it "passes when the server has what was acknowledged, or what is in doubt besides" $ do
      let history = [Counted counter [Answered 1], Counted counter [inDoubt], Counted counter [Answered 3]]
      audit history [(counter, 2)] `shouldBe` []
      audit history [(counter, 3)] `shouldBe` []
    it "fails when an acknowledged increment is not there" $
      audit [Counted counter [Answered 1], Counted counter [Answered 2]] [(counter, 1)] `shouldSatisfy` telling "lost"
    it "asks nothing of the kind of a counter that may lose" $
      audit [Counted losing [Answered 1], Counted losing [Answered 2]] [(losing, 1)] `shouldBe` []
    it "fails when an increment is there twice, also on a counter that may lose" $ do
      audit [Counted counter [Answered 1]] [(counter, 2)] `shouldSatisfy` telling "doubled"
      audit [Counted losing [Answered 1]] [(losing, 2)] `shouldSatisfy` telling "doubled"
    it "fails when an increment is there that was not sent, or was refused" $ do
      audit [Counted counter [notSent]] [(counter, 1)] `shouldSatisfy` telling "doubled"
      audit [Counted counter [refused]] [(counter, 1)] `shouldSatisfy` telling "doubled"
    it "takes an interrupted increment for one in doubt" $ do
      audit [Counted counter [Abandoned]] [(counter, 1)] `shouldBe` []
      audit [Counted counter [Abandoned]] [(counter, 2)] `shouldSatisfy` telling "doubled"
    it "fails when an answer skips or repeats one" $ do
      audit [Counted counter [Answered 1], Counted counter [Answered 3]] [(counter, 2)] `shouldSatisfy` telling "an increment says 3"
      audit [Counted counter [Answered 1], Counted counter [Answered 1]] [(counter, 2)] `shouldSatisfy` telling "an increment says 1"
      audit [Counted counter [Answered 2, Answered 2]] [(counter, 2)] `shouldSatisfy` telling "say the same"
    it "adds up what several callers know of a counter that they share" $ do
      let shared = mconcat [ledgerOf [CountedShared counter (Answered True)], ledgerOf [CountedShared counter inDoubt], ledgerOf [CountedShared counter (Answered False)]]
          holding held = verdict nothing {heldCounters = Map.singleton counter held} shared
      map (null . holding) [0, 1, 2, 3] `shouldBe` [False, True, True, False]

  describe "the audit of values" $ do
    it "passes when it is the last that was acknowledged, or one in doubt" $ do
      let history = [Wrote key 1 done, Wrote key 2 inDoubt, Wrote key 3 done]
      map (values history . Just . valueFor key) [2, 3] `shouldBe` [[], []]
    it "fails when an acknowledged write is not there" $ do
      values [Wrote key 1 done, Wrote key 2 done] (Just (valueFor key 1)) `shouldSatisfy` telling "lost write"
      values [Wrote key 1 done] Nothing `shouldSatisfy` telling "lost write"
    it "fails when a refused write is there" $
      values [Wrote key 1 done, Wrote key 2 notSent] (Just (valueFor key 2)) `shouldSatisfy` telling "refused, and there"
    it "fails when a value was never written" $
      values [Wrote key 1 done] (Just (valueFor key 9)) `shouldSatisfy` telling "never written"
    it "fails when the value that was read is another key's, even if it may lose, and from a replica" $ do
      let other = valueFor counter 1
      told [Wrote key 1 done, Read key False (Just other)] `shouldSatisfy` telling "wrong value"
      told [Wrote losing 1 done, Read losing False (Just other)] `shouldSatisfy` telling "wrong value"
      told [Wrote key 1 done, ReadFar key (Just other)] `shouldSatisfy` telling "wrong value"
    it "lets a read be stale once, and not for ever" $ do
      let stale again = told [Wrote key 1 done, Wrote key 2 done, Read key again (Just (valueFor key 1))]
      stale False `shouldBe` []
      stale True `shouldSatisfy` telling "lost write"

  describe "the audit of lists" $ do
    it "passes when each element was popped, is left, or was taken by a pop in doubt" $ do
      lists [Pushed key 1 done, Pushed key 2 done, popped 1] [2] `shouldBe` []
      lists [Pushed key 1 done, Popped key Abandoned] [] `shouldBe` []
    it "fails when an element is lost" $
      lists [Pushed key 1 done, Pushed key 2 done, popped 1] [] `shouldSatisfy` telling "lost elements [2]"
    it "fails when an element comes twice" $ do
      lists [Pushed key 1 done, popped 1, popped 1] [] `shouldSatisfy` telling "popped twice"
      lists [Pushed key 1 done, popped 1] [1] `shouldSatisfy` telling "popped, and left"
      lists [Pushed key 1 done] [1, 1] `shouldSatisfy` telling "twice in the list"
    it "fails when an element comes that was refused, or never pushed" $ do
      lists [Pushed key 1 refused, popped 1] [] `shouldSatisfy` telling "refused, and there"
      lists [popped 1] [] `shouldSatisfy` telling "never pushed"
    it "fails when an element is another list's" $
      told [Pushed key 1 done, Popped key (Answered (Just (keyName counter, valueFor counter 1)))] `shouldSatisfy` telling "popped"

  describe "the audit of calls" $ do
    it "fails when a reply is another's" $ do
      told [Echoed "mine" "mine"] `shouldBe` []
      told [Echoed "mine" "yours"] `shouldSatisfy` telling "wrong reply"
    it "fails when a call comes back later than its time, the grace and the lag" $ do
      told [Returned call {callTook = 2.99} Nothing] `shouldBe` []
      told [Returned call {callTook = 3.01} Nothing] `shouldSatisfy` telling "late"
      told [Returned call {callTook = 3.01, callLag = 0.1} Nothing] `shouldBe` []
    it "fails on an error that no fault explains" $ do
      told [Returned call (Just (TimeoutError (TimeoutFailure "" NotSent (seconds 2) Nothing)))] `shouldBe` []
      told [Returned call (Just (ReplyError (serverErrorFromText "CLUSTERDOWN The cluster is down")))] `shouldBe` []
      told [Returned call (Just (ReplyError (serverErrorFromText "WRONGTYPE of value")))] `shouldSatisfy` telling "unexpected error"
      told [Returned call (Just (ConnectionError (ConnectionFailure "" NotSent (TcpEndpoint "h" 1) (ProtocolViolation "x"))))] `shouldSatisfy` telling "unexpected error"
      told [Returned call (Just ClientClosed)] `shouldSatisfy` telling "unexpected error"
    it "keeps what is wrong when ledgers are put together" $
      verdict nothing (ledgerOf [Echoed "mine" "yours"] <> ledgerOf [Counted counter [Answered 1]]) `shouldSatisfy` telling "wrong reply"
    it "fails when nobody asked the servers for a key" $
      verdict nothing (ledgerOf [Counted counter [Answered 1]]) `shouldSatisfy` telling "nobody looked"

  describe "the audit of messages" $ do
    it "passes when all that was taken is heard, in order" $ do
      judgeRound OneServer (told' [sent 1 True, sent 2 True] [message 1, message 2]) `shouldBe` []
      roundOver (told' [sent 1 True, sent 2 True] [message 1, message 2]) `shouldBe` True
      roundOver (told' [sent 1 True, sent 2 True] [message 1]) `shouldBe` False
    it "passes when what is missing was not taken, or lies in a gap that is told before what follows" $ do
      judgeRound OneServer (told' [sent 1 True, sent 2 False, sent 3 True] [message 1, message 3]) `shouldBe` []
      judgeRound OneServer (told' [sent 1 True, sent 2 True, sent 3 True] [message 1, gap 1 2, message 3]) `shouldBe` []
    it "fails when one is missing without a gap, or the gap is another, or comes late" $ do
      let three = [sent 1 True, sent 2 True, sent 3 True, sent 4 True]
      judgeRound OneServer (told' three [message 1, message 3, message 4]) `shouldSatisfy` telling "missed [2]"
      judgeRound OneServer (told' three [message 1, gap 3 3, message 3, message 4]) `shouldSatisfy` telling "missed [2]"
      judgeRound OneServer (told' three [message 1, message 3, gap 1 2, message 4]) `shouldSatisfy` telling "missed [2]"
    it "passes when one whose publishing is in doubt comes late" $ do
      judgeRound OneServer (told' [sent 1 True, sent 2 False, sent 3 True] [message 1, message 3, message 2]) `shouldBe` []
      judgeRound OneServer (told' [sent 1 True, sent 2 True, sent 3 True] [message 1, message 3, message 2]) `shouldSatisfy` telling "heard 2 after 3"
      let later = nextRound (told' [sent 1 True, sent 2 False, sent 3 True] [message 1, message 3])
      judgeRound OneServer (heard (message 2) later) `shouldBe` []
      judgeRound OneServer (heard (message 1) later) `shouldSatisfy` telling "heard 1 after 3"
    it "passes when one in doubt comes late, between a gap and what follows" $ do
      let three doubt = told' [sent 1 True, sent 2 doubt, sent 3 True, sent 4 True] [message 1, gap 2 3, message 2, message 4]
      judgeRound OneServer (three False) `shouldBe` []
      judgeRound OneServer (three True) `shouldSatisfy` telling "missed [3]"
    it "fails when one comes twice, unless two nodes had it within a gap" $ do
      let twice = told' [sent 1 True, sent 2 True, sent 3 True] [message 1, gap 1 2, message 2, message 3, message 2]
      judgeRound OneServer twice `shouldSatisfy` telling "heard 2 after 3"
      judgeRound SeveralServers twice `shouldBe` []
      judgeRound SeveralServers (told' [sent 1 True, sent 2 True] [message 1, message 2, message 1]) `shouldSatisfy` telling "heard 1 after 2"

    it "judges the messages of each node for themselves" $ do
      let four = told' [sentTo' 1 1, sentTo' 1 2, sentTo' 2 3, sentTo' 2 4]
      judgeRound SeveralServers (four [message 1, message 3, message 2, message 4]) `shouldBe` []
      judgeRound SeveralServers (four [message 3, message 1, message 2, message 4]) `shouldBe` []
      judgeRound SeveralServers (four [message 2, message 1, message 3, message 4]) `shouldSatisfy` telling "heard 1 after 2"
      judgeRound SeveralServers (four [message 2, message 3, message 4]) `shouldSatisfy` telling "missed [1]"
    it "holds a gap for each node until that node's next message" $ do
      let five = told' [sentTo' 1 1, sentTo' 2 2, sentTo' 1 3, sentTo' 2 4, sentTo' 1 5]
      judgeRound SeveralServers (five [message 1, gap 2 3, message 4, message 5]) `shouldBe` []
      judgeRound SeveralServers (five [gap 1 1, message 3, message 4, message 5]) `shouldSatisfy` telling "missed [2]"
      judgeRound SeveralServers (five [message 1, message 2, message 3, gap 1 3, message 5, message 4]) `shouldBe` []
    it "misses what a node that takes no more took last, in the round after" $ do
      let three = told' [sentTo' 1 1, sentTo' 1 2, sentTo' 2 3]
          after = nextRound . three
      judgeRound SeveralServers (three [message 1, message 3]) `shouldBe` []
      judgeRound SeveralServers (after [message 1, message 3]) `shouldSatisfy` telling "never heard [2]"
      judgeRound SeveralServers (heard (message 2) (after [message 1, message 3])) `shouldBe` []
      judgeRound SeveralServers (after [message 1, gap 2 2, message 3]) `shouldBe` []
      judgeRound SeveralServers (heard (gap 2 2) (after [message 1, message 3])) `shouldBe` []

  describe "the audit of a stream" $ do
    let handling numbers book = foldl (flip handled) book numbers
        three = added 3 done (added 2 inDoubt (added 1 done (mempty {streamTried = 3})))
    it "passes when all that was acknowledged was handled, once or often" $ do
      streamHolds "x" (handling [1, 3] three) `shouldBe` []
      streamHolds "x" (handling [1, 2, 3, 3, 1] three) `shouldBe` []
    it "fails when one was never handled" $
      streamHolds "x" (handling [1, 2] three) `shouldSatisfy` telling "1 entries never handled, the first 3"
    it "fails when one was handled that was refused, or that nobody added" $ do
      streamHolds "x" (handling [1, 2] (added 2 notSent (added 1 done (mempty {streamTried = 2})))) `shouldSatisfy` telling "refused, the first 2"
      streamHolds "x" (handling [1, 2, 3, 4] three) `shouldSatisfy` telling "never added, the first 4"
    it "numbers entries from one" $
      fst (nextEntry (snd (nextEntry mempty))) `shouldBe` 2

  describe "the audit of what the process holds" $ do
    it "passes when it is as before" $ grown small small `shouldBe` []
    it "fails when descriptors are left" $ grown small small {heldDescriptors = 60} `shouldSatisfy` telling "descriptors"
    it "fails when lent connections are kept" $ grown small small {heldLent = 1} `shouldSatisfy` telling "lent connections"
    it "fails when there are more connections than there can be use for" $ grown small small {heldConnections = 115} `shouldSatisfy` telling "connections: 115"
    it "fails when the heap has grown" $ grown small small {heldBytes = 20000000} `shouldSatisfy` telling "live heap"

telling :: String -> [String] -> Bool
telling word = any (word `isInfixOf`)

ledgerOf :: [Event] -> Ledger
ledgerOf = foldl (flip observe) mempty

nothing :: Held
nothing = Held Map.empty Map.empty Map.empty

-- | The faults in a history of counters, given the counters' values.
audit :: [Event] -> [(Key, Int)] -> [String]
audit history held = verdict nothing {heldCounters = Map.fromList held} (ledgerOf history)

-- | The faults in a history of the one key, given its value.
values :: [Event] -> Maybe ByteString -> [String]
values history held = verdict nothing {heldValues = Map.singleton key held} (ledgerOf history)

-- | The faults in a history of the one list, given the elements that are left in it.
lists :: [Event] -> [Int] -> [String]
lists history left = verdict nothing {heldLists = Map.singleton key (map (valueFor key) left)} (ledgerOf history)

-- | The faults that the history shows by itself, without the servers' contents.
told :: [Event] -> [String]
told = ledgerWrong . ledgerOf

told' :: [(Int, Sent)] -> [Heard] -> Round
told' messages = foldl (flip heard) (foldl (flip (uncurry published)) newRound messages)

sent :: Int -> Bool -> (Int, Sent)
sent number taken = (number, Sent (at number) (at number) taken Nothing)

-- | A message that one of several nodes took.
sentTo' :: Int -> Int -> (Int, Sent)
sentTo' node number = fmap (\message' -> message' {sentNode = Just (TcpEndpoint "h" (fromIntegral node))}) (sent number True)

message :: Int -> Heard
message = HeardMessage

gap :: Int -> Int -> Heard
gap from to = HeardGap (at from) (at to)

at :: Int -> UTCTime
at = posixSecondsToUTCTime . fromIntegral

counter, losing, key :: Key
counter = Key "counter" Kept
losing = Key "losing" MayLose
key = Key "key" Kept

done :: Outcome ()
done = Answered ()

refused, inDoubt, notSent :: Outcome a
refused = Failed (ReplyError (serverErrorFromText "OOM command not allowed"))
inDoubt = Failed (TimeoutError (TimeoutFailure "" MaybeExecuted (seconds 2) Nothing))
notSent = Failed (TimeoutError (TimeoutFailure "" NotSent (seconds 2) Nothing))

popped :: Int -> Event
popped number = Popped key (Answered (Just (keyName key, valueFor key number)))

call :: Call
call = Call {callKind = "GET", callLimit = 2, callTook = 0.1, callLag = 0}

small :: Holdings
small = Holdings {heldConnections = 10, heldDescriptors = 50, heldLent = 0, heldBytes = 3000000}
