module Redis.Internal.Routing.RetryPolicySpec (spec) where

import Control.Monad (forM_)
import Data.ByteString (ByteString)
import Data.List qualified as List
import Redis.Duration
import Redis.Error
import Redis.Internal.Command (CallOptions (..), Facts (..), factIdempotent, factReadOnly, noOptions, readFacts, untoldFacts, writeFacts)
import Redis.Internal.Config (AddressMapping (..), Backoff (..))
import Redis.Internal.Routing.RetryPolicy
import Redis.Internal.Routing.Target
import Redis.Internal.Routing.Topology (Trigger (..))
import Redis.Properties (cases)
import Support
import Test.Hspec
import Test.Hspec.QuickCheck (prop)
import Test.QuickCheck hiding (Failure)

spec :: Spec
spec = describe "Redis.Internal.Routing.RetryPolicy" $ do
  describe "in a cluster, after the first attempt of a write at a primary" $
    mapM_ (row cluster writeFacts Primary) writesAtPrimary

  describe "in a cluster, after the first attempt of a read at a replica" $
    mapM_ (row cluster readFacts Replica) readsAtReplica

  describe "in a cluster, after the first attempt of a read at a primary" $
    mapM_ (row cluster readFacts Primary) readsAtPrimary

  describe "with a standalone server, after the first attempt of a write" $
    mapM_ (row standalone writeFacts Primary) writesAtStandalone

  it "follows the first redirect at once and waits before each further one" $ do
    let first = decide cluster writeFacts noAttempts (failure (reply "MOVED 1 10.0.0.2:6379"))
        second = decide cluster writeFacts (decisionSoFar first) (failure (reply "ASK 1 10.0.0.3:6379"))
        third = decide cluster writeFacts (decisionSoFar second) (failure (reply "MOVED 1 10.0.0.2:6379"))
    decisionNext first `shouldBe` RetryNow (ToNode (node 2))
    decisionNext second `shouldBe` RetryAfter (waiting 1) (AskingNode (node 3))
    decisionNext third `shouldBe` RetryAfter (waiting 2) (ToNode (node 2))

  it "waits for anything from one half of the delay to the whole, as the random number says" $ do
    let drawing random = decide cluster writeFacts noAttempts (failure (reply "TRYAGAIN Multiple keys")) {failedRandom = random}
    map (decisionNext . drawing) [0, 0.25, 0.5, 1]
      `shouldBe` [RetryAfter (part * firstDelay) slots | part <- [0.5, 0.625, 0.75, 1]]

  it "says why no node can be reached when none was ever tried" $ do
    let unreachable = RoutingError (RoutingFailure "" NotSent (NoReachableNode [(node 1, lost NotSent (ConnectFailed "refused"))]))
        nowhere = (failure unreachable) {failedNode = Nothing}
        first = decide cluster readFacts noAttempts nowhere
        last' = decide cluster readFacts (decisionSoFar first) nowhere {failedRemaining = Just 0}
    decisionNext last' `shouldBe` GiveUp unreachable

  it "starts again at the source when the target of an ASK says TRYAGAIN" $ do
    let first = decide cluster writeFacts noAttempts (failure (reply "ASK 1 10.0.0.2:6379"))
        second = decide cluster writeFacts (decisionSoFar first) (failure (reply "TRYAGAIN Multiple keys")) {failedNode = Just (node 2)}
    decisionNext first `shouldBe` RetryNow (AskingNode (node 2))
    decisionNext second `shouldBe` RetryAfter (waiting 1) slots

  it "puts the host that answered into a redirect without one" $
    decisionNext (decide cluster writeFacts noAttempts (failure (reply "MOVED 3999 :6381")))
      `shouldBe` RetryNow (ToNode (TcpEndpoint "10.0.0.1" 6381))

  it "authenticates again once, and only once" $ do
    let first = decide cluster writeFacts noAttempts (failure (reply "NOAUTH Authentication required."))
        second = decide cluster writeFacts (decisionSoFar first) (failure (reply "NOAUTH Authentication required."))
        between = decide cluster writeFacts (decisionSoFar first) (failure (reply "LOADING Redis is loading"))
        third = decide cluster writeFacts (decisionSoFar between) (failure (reply "NOAUTH Authentication required."))
    decisionNext second `shouldBe` GiveUp (reply "NOAUTH Authentication required.")
    decisionNext third `shouldBe` GiveUp (reply "NOAUTH Authentication required.")

  it "names every node it tried when attempts run out" $ do
    let policy = cluster {policyMaxAttempts = 2}
        first = decide policy writeFacts noAttempts (failure (reply "ASK 1 10.0.0.2:6379"))
        second = decide policy writeFacts (decisionSoFar first) (failure (reply "CLUSTERDOWN The cluster is down")) {failedNode = Just (node 2)}
    decisionNext second
      `shouldBe` GiveUp
        (RoutingError (RoutingFailure "" RefusedBeforeRun (AttemptsExhausted [(node 1, reply "ASK 1 10.0.0.2:6379"), (node 2, reply "CLUSTERDOWN The cluster is down")])))

  it "follows no redirect of a node that was named, and tells of it for other commands" $ do
    let outcome = decide standalone {policyTarget = TargetNode (node 1)} writeFacts noAttempts (failure (reply "REDIRECT 10.0.0.2:6379"))
    (decisionNext outcome, decisionEffects outcome)
      `shouldBe` (GiveUp (reply "REDIRECT 10.0.0.2:6379"), [Tell (LearntRedirect (node 1) (node 2))])

  it "leaves a read with a replica that was named, whatever that says" $
    forM_ ["CLUSTERDOWN The cluster is down", "BUSY Redis is busy running a script.", "NOSCRIPT No matching script"] $ \said ->
      decisionNext (decide cluster {policyTarget = TargetNode (node 1)} readFacts noAttempts (failure (reply said)) {failedRole = Replica})
        `shouldBe` GiveUp (reply said)

  it "gives the plain error when one attempt is all there may be" $
    decisionNext (decide cluster {policyMaxAttempts = 1} writeFacts noAttempts (failure (reply "TRYAGAIN Multiple keys")))
      `shouldBe` GiveUp (reply "TRYAGAIN Multiple keys")

  it "says what was tried, and not the redirect, when no time is left to follow it" $ do
    let said = reply "MOVED 3999 10.0.0.2:6379"
        given = RoutingError (RoutingFailure "" RefusedBeforeRun (AttemptsExhausted [(node 1, said)]))
    decisionNext (decide cluster writeFacts noAttempts (failure said) {failedRemaining = Just 0}) `shouldBe` GiveUp given
    decisionNext (decide cluster {policyMaxAttempts = 1} writeFacts noAttempts (failure said)) `shouldBe` GiveUp given

  it "believes a redirect of what may fail half-way only if it is for the slot of its keys" $
    forM_ ["MOVED", "ASK"] $ \code -> do
      let said = reply (code <> " 3999 10.0.0.2:6379")
          outcome facts slot = decide cluster {policyTarget = TargetSlot (slotAt slot)} facts noAttempts (failure said)
          halfway = untoldFacts
          inDoubt = ReplyError (serverErrorFromText (code <> " 3999 10.0.0.2:6379")) {serverErrorDelivery = MaybeExecuted}
      (decisionNext (outcome halfway 4), decisionEffects (outcome halfway 4)) `shouldBe` (GiveUp inDoubt, [])
      [() | RetryNow _ <- map decisionNext [outcome halfway 3999, outcome writeFacts 4]] `shouldBe` [(), ()]

  it "does not wait past the deadline" $ do
    let short = (failure (reply "CLUSTERDOWN The cluster is down")) {failedRemaining = Just 0.001}
    decisionNext (decide cluster writeFacts noAttempts short) `shouldBe` GiveUp (reply "CLUSTERDOWN The cluster is down")

  it "waits only if the next attempt has some time left, or it would leave a doubt where there is none" $ do
    let left seconds' = decisionNext (decide cluster writeFacts noAttempts (failure down) {failedRemaining = Just (waiting 1 + seconds')})
        down = reply "CLUSTERDOWN The cluster is down"
    map left [0, 0.004, 0.006] `shouldBe` [GiveUp down, GiveUp down, wait slots]

  it "asks the primary what a replica has not answered in its part of the time, and nobody after the whole of it" $ do
    let late delivery left role = decisionNext (decide cluster readFacts noAttempts (failure (TimeoutError (TimeoutFailure "" delivery (seconds 1) Nothing))) {failedRole = role, failedRemaining = left})
        given delivery = GiveUp (TimeoutError (TimeoutFailure "" delivery (seconds 1) Nothing))
    [late delivery (Just 1) Replica | delivery <- [NotSent, MaybeExecuted]] `shouldBe` [RetryNow slotsPrimary, RetryNow slotsPrimary]
    late MaybeExecuted Nothing Replica `shouldBe` RetryNow slotsPrimary
    late MaybeExecuted (Just 0) Replica `shouldBe` given MaybeExecuted
    late MaybeExecuted (Just 1) Primary `shouldBe` given MaybeExecuted

  it "leads to where the mapping says that a redirect points" $ do
    let mapped = cluster {policyMapping = AddressMapping (\_ -> node 7)}
    map (decisionNext . decide mapped readFacts noAttempts . failure . reply) ["MOVED 1 10.0.0.2:6379", "ASK 1 10.0.0.2:6379", "MOVED 1 :6381"]
      `shouldBe` [RetryNow (ToNode (node 7)), RetryNow (AskingNode (node 7)), RetryNow (ToNode (node 7))]

  it "follows no redirect after the deadline" $ do
    let late = (failure (reply "MOVED 1 10.0.0.2:6379")) {failedRemaining = Just 0}
    decisionNext (decide cluster writeFacts noAttempts late) `shouldBe` GiveUp (RoutingError (RoutingFailure "" RefusedBeforeRun (AttemptsExhausted [(node 1, reply "MOVED 1 10.0.0.2:6379")])))

  it "says that a repeatable write may have run when only an earlier attempt may have" $ do
    let repeatableWrite = writeFacts {factOptions = noOptions {optionIdempotent = True}}
        first = decide cluster repeatableWrite noAttempts (failure (lost MaybeExecuted ClosedByPeer))
        second = decide cluster repeatableWrite (decisionSoFar first) (failure (reply "OOM command not allowed"))
    decisionNext first `shouldBe` RetryNow slots
    case decisionNext second of
      GiveUp failed -> errorDelivery failed `shouldBe` MaybeExecuted
      other -> expectationFailure (show other)

  cases 1000 $ do
    prop "never sends a write again after an attempt that may have run" $
      forAll anyQuestion $ \(policy, facts, history, final) ->
        let (soFar, _) = through policy facts history
         in not (factIdempotent facts) && errorDelivery (failedError final) == MaybeExecuted
              ==> isGiveUp (decisionNext (decide policy facts soFar final))

    prop "gives up with an error that owns up to what may have run" $
      forAll anyQuestion $ \(policy, facts, history, final) ->
        not (factReadOnly facts)
          ==> let (soFar, mayHaveRun) = through policy facts history
                  ran = mayHaveRun || errorDelivery (failedError final) == MaybeExecuted
               in case decisionNext (decide policy facts soFar final) of
                    GiveUp failed -> (ran, failed) === (errorDelivery failed == MaybeExecuted, failed)
                    _ -> property True

    prop "never waits beyond the time that is left, nor for less than nothing" $
      forAll anyQuestion $ \(policy, facts, history, final) ->
        let (soFar, _) = through policy facts history
         in case decisionNext (decide policy facts soFar final) of
              RetryAfter delay _ -> delay >= 0 && maybe True (delay <) (failedRemaining final)
              RetryNow _ -> maybe True (> 0) (failedRemaining final)
              GiveUp _ -> True

  cases 1000 $ do
    prop "ends every command within its attempts, and at most one of them follows at once" $
      forAll ((,,) <$> anyFacts <*> vectorOf 40 anyFailure <*> arbitrary) $ \(facts, failures, clustered) ->
        let policy = cluster {policyFollowed = clustered}
            decisions = decisionsOf policy facts noAttempts failures
         in length decisions <= policyMaxAttempts policy
              && length [() | RetryNow _ <- decisions] <= 1
              && any isGiveUp decisions

    prop "tells of a standalone server nothing that only a cluster has" $
      forAll ((,) <$> anyFacts <*> anyFailure) $ \(facts, final) ->
        let outcome = decide standalone facts noAttempts final
            redirects = [target | Tell (LearntRedirect _ target) <- decisionEffects outcome]
            allowed = slots : map ToNode redirects
         in [trigger | Tell trigger <- decisionEffects outcome] === [LearntRedirect from target | Just from <- [failedNode final], target <- redirects]
              .&&. case decisionNext outcome of
                RetryNow target -> counterexample (show target) (target `elem` allowed)
                RetryAfter _ target -> counterexample (show target) (target `elem` allowed)
                GiveUp _ -> property True

-- | An error, the decision about it, and its effects on others.
type Row = (Error, NextStep, [Effect])

row :: RetryPolicy -> Facts -> Role -> Row -> Spec
row policy facts role (failed, next, effects) =
  it (describeRow failed next) $ do
    let outcome = decide policy facts noAttempts (failure failed) {failedRole = role}
    (decisionNext outcome, decisionEffects outcome) `shouldBe` (next, effects)

describeRow :: Error -> NextStep -> String
describeRow failed next =
  verb <> " on " <> show failed
  where
    verb = case next of
      GiveUp _ -> "gives up"
      RetryNow target -> "goes at once by " <> show target
      RetryAfter _ target -> "waits and goes by " <> show target

writesAtPrimary :: [Row]
writesAtPrimary =
  [ (reply "MOVED 3999 10.0.0.2:6379", RetryNow (ToNode (node 2)), [Tell (LearntMoved (slotAt 3999) (node 2))]),
    (reply "MOVED 3999 10.0.0.1:6379", wait (ToNode (node 1)), [Tell (LearntMoved (slotAt 3999) (node 1)), Reconnect (node 1)]),
    (reply "MOVED 3999 ?:6379", wait slots, [Tell (MovedToUnknown (slotAt 3999))]),
    (reply "ASK 3999 10.0.0.2:6379", RetryNow (AskingNode (node 2)), []),
    (reply "ASK 3999 10.0.0.1:6379", wait slots, []),
    (reply "ASK 3999 ?:6379", wait slots, [Tell (MovedToUnknown (slotAt 3999))]),
    (reply "TRYAGAIN Multiple keys request", wait slots, []),
    (reply "CLUSTERDOWN The cluster is down", wait slots, [Tell SawClusterDown]),
    (reply "LOADING Redis is loading", wait slots, [Tell (SawLoading (node 1))]),
    (reply "MASTERDOWN Link with MASTER is down", wait slots, [Tell (SawMasterDown (node 1))]),
    (reply "READONLY You can't write", wait slots, [Tell (SawReadOnly (node 1))]),
    (reply "UNBLOCKED force unblock from blocking operation, instance state changed (master -> replica?)", wait slots, [Tell (SawReadOnly (node 1))]),
    (reply "NOAUTH Authentication required.", wait slots, [Reconnect (node 1)]),
    (lost NotSent (ConnectFailed "refused"), wait slots, [Tell (LostNode (node 1))]),
    (lost NotSent ClosedByPeer, RetryNow slots, [Tell (LostNode (node 1))]),
    (lost NotSent ClosedLocally, wait slots, []),
    (RoutingError (RoutingFailure "" NotSent (UncoveredSlot 7)), wait slots, [Tell (SawUncovered (slotAt 7))]),
    (RoutingError (RoutingFailure "" NotSent (NoReachableNode [])), wait slots, []),
    (RoutingError (RoutingFailure "" NotSent (NoReachableNode [(node 1, refusal), (node 2, lost NotSent ClosedByPeer)])), wait slots, []),
    handedOver (RoutingError (RoutingFailure "" NotSent (NoReachableNode [(node 1, refusal), (node 2, refusal)])))
  ]
    <> [ (failed, GiveUp failed, [Tell (LostNode (node 1))])
         | failed <-
             [ lost MaybeExecuted ClosedByPeer,
               lost MaybeExecuted (SilentPeer (seconds 5)),
               lost MaybeExecuted (ProtocolViolation "x"),
               lost NotSent (TlsFailed "certificate has expired"),
               lost NotSent (HandshakeRefused (serverErrorFromText "WRONGPASS invalid username-password pair"))
             ]
       ]
    <> map handedOver alwaysHandedOver
    <> map handedOver [reply "MOVED 99999 10.0.0.2:6379", reply "MOVED 1 10.0.0.2:0", reply "READONLY You can't write script: y"]
    -- An error of a script that has written.
    <> map (handedOver . reply . (<> " said the script")) ["TRYAGAIN", "CLUSTERDOWN", "LOADING", "MASTERDOWN", "READONLY", "NOAUTH"]

readsAtReplica :: [Row]
readsAtReplica =
  [ ( reply "MOVED 3999 10.0.0.2:6379",
      RetryNow (ToNode (node 2)),
      [Tell (LearntMoved (slotAt 3999) (node 2)), Tell (SawStrayReplica (node 1))]
    ),
    (reply "LOADING Redis is loading", RetryNow slotsPrimary, []),
    (reply "MASTERDOWN Link with MASTER is down", RetryNow slotsPrimary, [Tell (SawMasterDown (node 1))]),
    (reply "READONLY You can't write", RetryNow slotsPrimary, []),
    (reply "CLUSTERDOWN The cluster is down", RetryNow slotsPrimary, [Tell SawClusterDown]),
    (reply "BUSY Redis is busy running a script.", RetryNow slotsPrimary, []),
    (reply "NOSCRIPT No matching script", RetryNow slotsPrimary, []),
    (lost NotSent (ConnectFailed "refused"), RetryNow slotsPrimary, [Tell (LostNode (node 1))]),
    (lost MaybeExecuted ClosedByPeer, RetryNow slotsPrimary, [Tell (LostNode (node 1))]),
    -- The primary may accept the same credentials, and have another certificate.
    (refusal, RetryNow slotsPrimary, [Tell (LostNode (node 1))]),
    (lost NotSent (TlsFailed "certificate has expired"), RetryNow slotsPrimary, [Tell (LostNode (node 1))]),
    -- The reply that cannot be parsed may be the command's own, and the primary's is the same.
    (lost MaybeExecuted (ProtocolViolation "x"), GiveUp (lost MaybeExecuted (ProtocolViolation "x")), [Tell (LostNode (node 1))]),
    (TimeoutError (TimeoutFailure "" NotSent (seconds 5) Nothing), RetryNow slotsPrimary, []),
    (TimeoutError (TimeoutFailure "" MaybeExecuted (seconds 5) Nothing), RetryNow slotsPrimary, [])
  ]
    <> [handedOver failed | failed <- alwaysHandedOver, not (isReplicasOwn failed)]

-- | Whether the primary may answer a read after it all the same.
isReplicasOwn :: Error -> Bool
isReplicasOwn = \case
  TimeoutError _ -> True
  ReplyError failed -> serverErrorCode failed `elem` ["BUSY", "NOSCRIPT"]
  _ -> False

readsAtPrimary :: [Row]
readsAtPrimary =
  [ (lost MaybeExecuted ClosedByPeer, RetryNow slots, [Tell (LostNode (node 1))]),
    (lost MaybeExecuted (SilentPeer (seconds 5)), RetryNow slots, [Tell (LostNode (node 1))]),
    (TimeoutError (TimeoutFailure "" MaybeExecuted (seconds 5) Nothing), GiveUp (TimeoutError (TimeoutFailure "" MaybeExecuted (seconds 5) Nothing)), []),
    -- The reply that cannot be parsed may be the command's own.
    (lost MaybeExecuted (ProtocolViolation "x"), GiveUp (lost MaybeExecuted (ProtocolViolation "x")), [Tell (LostNode (node 1))]),
    (lost NotSent (ProtocolViolation "x"), RetryNow slots, [Tell (LostNode (node 1))]),
    (refusal, GiveUp refusal, [Tell (LostNode (node 1))])
  ]

writesAtStandalone :: [Row]
writesAtStandalone =
  [ (reply "REDIRECT 10.0.0.2:6379", RetryNow (ToNode (node 2)), [Tell (LearntRedirect (node 1) (node 2))]),
    (reply "REDIRECT 10.0.0.1:6379", wait slots, []),
    (lost NotSent ClosedByPeer, RetryNow slots, []),
    (lost MaybeExecuted ClosedByPeer, GiveUp (lost MaybeExecuted ClosedByPeer), []),
    (reply "LOADING Redis is loading", wait slots, []),
    (reply "NOAUTH Authentication required.", wait slots, [Reconnect (node 1)])
  ]
    <> map handedOver alwaysHandedOver
    <> map
      (handedOver . reply)
      [ "MOVED 3999 10.0.0.2:6379",
        "ASK 3999 10.0.0.2:6379",
        "TRYAGAIN Multiple keys request during rehashing of slot",
        "CLUSTERDOWN The cluster is down",
        "MASTERDOWN Link with MASTER is down",
        "READONLY You can't write"
      ]

alwaysHandedOver :: [Error]
alwaysHandedOver =
  map
    reply
    [ "ERR unknown command",
      "WRONGTYPE Operation against a key",
      "BUSY Redis is busy running a script.",
      "OOM command not allowed",
      "MISCONF Redis is configured to save RDB snapshots",
      "NOREPLICAS Not enough good replicas to write.",
      "NOPERM this user has no permissions",
      "WRONGPASS invalid username-password pair",
      "CROSSSLOT Keys in request don't hash to the same slot",
      "NOSCRIPT No matching script",
      "EXECABORT Transaction discarded"
    ]
    <> [ TimeoutError (TimeoutFailure "" NotSent (seconds 5) Nothing),
         TimeoutError (TimeoutFailure "" MaybeExecuted (seconds 5) Nothing),
         UnexpectedReply (DecodeError [] "a" "b" ""),
         RoutingError (RoutingFailure "" NotSent (AttemptsExhausted [])),
         RefusedError EmptyCommand,
         ClientClosed
       ]

handedOver :: Error -> Row
handedOver failed = (failed, GiveUp failed, [])

-- | The target of the commands, and that of a read that a replica did not answer.
slots, slotsPrimary :: Target
slots = TargetSlot (slotAt 1)
slotsPrimary = TargetPrimary (slotAt 1)

cluster, standalone :: RetryPolicy
cluster = RetryPolicy {policyMaxAttempts = 16, policyBackoff = Backoff {backoffFirst = seconds firstDelay, backoffCap = seconds 1}, policyFollowed = True, policyMapping = AddressMapping id, policyTarget = slots}
standalone = cluster {policyFollowed = False}

-- | A failed attempt at the primary with the number 1, with time left.
failure :: Error -> FailedAttempt
failure failed =
  FailedAttempt
    { failedError = failed,
      failedNode = Just (node 1),
      failedRole = Primary,
      failedRemaining = Just 5,
      failedRandom = 0.5
    }

refusal :: Error
refusal = lost NotSent (HandshakeRefused (serverErrorFromText "WRONGPASS invalid username-password pair"))

reply :: ByteString -> Error
reply = ReplyError . serverErrorFromText

lost :: Delivery -> ConnectionCause -> Error
lost delivery = ConnectionError . ConnectionFailure "" delivery (node 1)

wait :: Target -> NextStep
wait = RetryAfter (waiting 1)

-- | The delay before the retry with this number: three quarters of the first delay, because the
-- random number is one half, doubled for each earlier retry.
waiting :: Int -> Double
waiting count = 0.75 * firstDelay * 2 ^ (count - 1)

-- | The first delay in seconds. It is exact in binary.
firstDelay :: Double
firstDelay = 0.015625

isGiveUp :: NextStep -> Bool
isGiveUp = \case
  GiveUp _ -> True
  _ -> False

-- | The course after those failures that led to another attempt, and whether one of these attempts
-- may have run.
through :: RetryPolicy -> Facts -> [FailedAttempt] -> (AttemptsSoFar, Bool)
through policy facts = List.foldl' next (noAttempts, False)
  where
    next (soFar, ran) failed =
      let outcome = decide policy facts soFar failed
       in if isGiveUp (decisionNext outcome)
            then (soFar, ran)
            else (decisionSoFar outcome, ran || errorDelivery (failedError failed) == MaybeExecuted)

-- | The decisions, up to and including the one that ends the command.
decisionsOf :: RetryPolicy -> Facts -> AttemptsSoFar -> [FailedAttempt] -> [NextStep]
decisionsOf policy facts soFar = \case
  [] -> []
  failed : rest ->
    let outcome = decide policy facts soFar failed
     in decisionNext outcome : if isGiveUp (decisionNext outcome) then [] else decisionsOf policy facts (decisionSoFar outcome) rest

anyQuestion :: Gen (RetryPolicy, Facts, [FailedAttempt], FailedAttempt)
anyQuestion = do
  attempts <- choose (0, 6)
  clustered <- arbitrary
  let policy = cluster {policyMaxAttempts = attempts, policyFollowed = clustered}
  (,,,) policy <$> anyFacts <*> (choose (0, 4) >>= (`vectorOf` anyFailure)) <*> anyFailure

anyFacts :: Gen Facts
anyFacts = elements [readFacts, writeFacts, writeFacts {factOptions = noOptions {optionIdempotent = True}}]

anyFailure :: Gen FailedAttempt
anyFailure = do
  failed <- anyError
  failedNode <- oneof [pure Nothing, Just <$> anyNode]
  role <- elements [minBound .. maxBound]
  remaining <- oneof [pure Nothing, Just <$> choose (-1, 5)]
  random <- choose (0, 1)
  pure
    FailedAttempt
      { failedError = failed,
        failedNode = failedNode,
        failedRole = role,
        failedRemaining = remaining,
        failedRandom = random
      }

anyError :: Gen Error
anyError =
  oneof
    [ elements [failed | (failed, _, _) <- concat [writesAtPrimary, readsAtReplica, readsAtPrimary, writesAtStandalone]],
      reply <$> anyBytes,
      ConnectionError <$> (ConnectionFailure "" <$> anyDelivery <*> anyNode <*> elements [ClosedByPeer, ClosedLocally, SilentPeer (seconds 1), NameNotResolved "", ConnectTimedOut (seconds 5), BrokenConnection ""]),
      TimeoutError <$> (TimeoutFailure "" <$> anyDelivery <*> (seconds <$> choose (0, 5)) <*> pure Nothing),
      RoutingError <$> (RoutingFailure "" <$> anyDelivery <*> elements [UncoveredSlot 5, UncoveredSlot 70000, NoReachableNode [], AttemptsExhausted []])
    ]
  where
    anyDelivery = elements [minBound .. maxBound]
