-- | A model of the parties of one connection: small programs around the very step that the real
-- threads drive, and around a socket that holds one command. Each program follows its driver in the
-- library. What the driver does under the lock is one action here, and so is each thing that it
-- does without the lock.
--
-- A send to a peer that has hung up may fail or succeed: a sender looks at the socket only after a
-- time without replies, and the peer may hang up between the look and the send.
--
-- The model leaves out time limits, pushes, and replies in parts.
module WakeupModel
  ( -- * The world
    World (..),
    Doing (..),
    Party (..),
    Reading (..),
    Writing' (..),
    Watching (..),
    Ending (..),
    Scenario (..),
    start,
    Key,
    keyOf,

    -- * What may happen
    Actor (..),
    actions,
    sendingAtOnce,
    closedTooEarly,

    -- * The rules
    Rule (..),
  )
where

import Data.Bits (shiftL, (.|.))
import Data.List qualified as List
import Redis.Internal.Network.Wakeup

-- | A rule without which something goes wrong. The numbers are those of the table in
-- "Redis.Internal.Network.Wakeup".
data Rule
  = R1QueuedWakesWatchdog
  | R2QueuedWakesUnwatchedReader
  | R3QueuedWakesReader
  | R4SendingBeginsWhenIdle
  | R5SentWakesReader
  | R6SentWakesEnd
  | R7WriterLooksAgain
  | R8NoSleepAfterTheEnd
  | R9NoSleepOverUnsent
  | R10NoUnwatchedSleepInFlight
  | R11NoUnwatchedSleepWithoutWatchdog
  | R12TickEndsUnwatchedSleep
  | R13NoRestInFlight
  | R13NoRestWhileUnwatched
  | R14DrainingWakesReader
  | R15DeathWakesReader
  | R15DeathWakesWatchdog
  | R16EndAwaitsSender
  | -- | The reader's own: it empties its wake-up variable before it looks, not after.
    ReaderForgetsFirst
  | -- | The reader's own: under the lock, before it sleeps, it calls the callers for which there is
    -- room.
    ReaderAdmitsBeforeSleep
  | -- | The reader's own: at the end it calls all callers that wait for room.
    EndCallsEverybody
  deriving stock (Eq, Show, Enum, Bounded)

-- | The step without one rule, or with all rules.
stepWithout :: Maybe Rule -> Event -> Wakeup -> Step
stepWithout dropped event before = case (dropped, event) of
  (Just R1QueuedWakesWatchdog, Queued _ _) -> after {stepWakes = stepWakes after `without` wakingWatchdog, stepState = setWatchdog (wakeupWatchdog before) (stepState after)}
  (Just R2QueuedWakesUnwatchedReader, Queued _ _) | unwatched, stepAnswer after == Send || wakeupSender before /= Idle -> readerSleepsOn
  (Just R3QueuedWakesReader, Queued _ _) | stepAnswer after == Leave, wakeupSender before == Idle -> readerSleepsOn
  (Just R4SendingBeginsWhenIdle, Queued _ _) -> step event (setSender Idle before)
  (Just R4SendingBeginsWhenIdle, WouldSend) -> step event (setSender Idle before)
  (Just R5SentWakesReader, Sent) | wakeupReader before /= AwaitsSender -> readerSleepsOn
  (Just R6SentWakesEnd, Sent) | wakeupReader before == AwaitsSender -> readerSleepsOn
  (Just R6SentWakesEnd, WriterSent) | wakeupReader before == AwaitsSender -> readerSleepsOn
  (Just R7WriterLooksAgain, WriterSent) -> asIf (setUnsent 0) (setUnsent (wakeupUnsent before))
  (Just R8NoSleepAfterTheEnd, WouldSleep _ _) -> asIf (setLife Open) (setLife (wakeupLife before))
  (Just R9NoSleepOverUnsent, WouldSleep _ _) -> asIf (setUnsent 0) (setUnsent (wakeupUnsent before))
  (Just R10NoUnwatchedSleepInFlight, WouldSleep watched _) | wakeupLife before == Open -> step (WouldSleep watched False) before
  (Just R11NoUnwatchedSleepWithoutWatchdog, WouldSleep _ _) -> asIf (setWatchdog Ticking . setWatch False) (setWatchdog (wakeupWatchdog before))
  (Just R12TickEndsUnwatchedSleep, Ticked) -> Step {stepState = before, stepAnswer = Leave, stepWakes = wakingNobody}
  (Just R13NoRestInFlight, WouldRest _) -> step (WouldRest False) before
  (Just R13NoRestWhileUnwatched, WouldRest _) | unwatched -> asIf (setReader Awake) (setReader AsleepUnwatched)
  (Just R14DrainingWakesReader, Drains) -> readerSleepsOn
  (Just R15DeathWakesReader, Dies) -> readerSleepsOn
  (Just R15DeathWakesWatchdog, Dies) -> after {stepWakes = stepWakes after `without` wakingWatchdog, stepState = setWatchdog (wakeupWatchdog before) (stepState after)}
  (Just R16EndAwaitsSender, WouldEnd) -> step event (setSender Idle before)
  _ -> after
  where
    after = step event before
    unwatched = wakeupReader before == AsleepUnwatched
    readerSleepsOn = after {stepWakes = stepWakes after `without` wakingReader, stepState = setReader (wakeupReader before) (stepState after)}
    asIf change restore = let other = step event (change before) in other {stepState = restore (stepState other)}

-- | A caller, the reader, or another party: the place in its program, how much of its block is
-- left, and which threads it still has to wake.
data Party doing = Party
  { doing :: doing,
    units :: Int,
    owes :: Wakes
  }

-- | The places in a caller's program.
data Doing = Ready | Joining | Queueing | CalledIn | Sends | FindsFull | SendFails | TellsDeath | Releases | WakesOthers | WaitsForReply | Finished
  deriving stock (Eq, Enum)

data Reading
  = Flushes
  | FlushesLocked
  | ReaderSends
  | ReaderFindsFull
  | ReaderSendFails
  | ReaderTellsDeath
  | ReaderReleases
  | ReaderWakes
  | Reads
  | Settles
  | Forgets
  | Parks
  | Sleeps
  | Wakes'
  | Dying
  | DyingTells
  | Ends
  | AwaitsRight
  | Fails
  | ReaderGone
  deriving stock (Eq, Ord, Enum)

-- | The last place is that of no writer, and of one that only has others to wake yet.
data Writing' = WriterSends | WriterBlocked | WriterFails | WriterTellsDeath | WriterDone | NoWriter
  deriving stock (Eq, Enum)

data Watching = Pauses | WatchdogWakes | Rests | WatchdogGone
  deriving stock (Eq, Enum)

data Ending = NothingYet | EnderWakes | EnderDone
  deriving stock (Eq, Enum)

-- | The whole state of the model.
data World = World
  { machine :: Wakeup,
    -- | The most commands that may be in flight.
    room :: Int,
    -- | A party keeps the lock over more than one action.
    locked :: Bool,
    -- | Each caller with the number of commands that it has yet to submit.
    callers :: [(Party Doing, Int)],
    reader :: Party Reading,
    -- | Whether the reader has the socket watched when it parks.
    watched :: Bool,
    writer :: Party Writing',
    leftover :: Int,
    watchdog :: Party Watching,
    ender :: Party Ending,
    readerWake, watchdogWake :: Bool,
    -- | Whether the socket will wake the reader.
    armed :: Bool,
    -- | The callers of the commands in flight, oldest first.
    ring :: [Int],
    -- | The callers that wait for room, in order.
    queue :: [Int],
    -- | Commands that the server has yet to read, and replies that the reader has yet to read.
    wire, inbox :: Int,
    hungUp, shutDown, closed :: Bool
  }

-- | The parameters of a search.
data Scenario = Scenario
  { -- | Whether the reader would poll when it is woken.
    scenarioPolls :: Bool,
    -- | Whether the connection may end.
    scenarioMayEnd :: Bool,
    -- | The most commands that may be in flight.
    scenarioRoom :: Int,
    -- | How many commands each caller submits. The first caller does not wait for its replies
    -- before it submits again; the second does.
    scenarioCommands :: [Int]
  }
  deriving stock (Show)

-- | Every party at its beginning.
start :: Scenario -> World
start Scenario {scenarioPolls, scenarioMayEnd, scenarioRoom, scenarioCommands} =
  World
    { machine = stepState (step (Judged scenarioPolls) atFirst),
      locked = False,
      room = scenarioRoom,
      callers = [(idleIn Ready, count) | count <- scenarioCommands],
      reader = idleIn Flushes,
      watched = False,
      writer = idleIn NoWriter,
      leftover = 0,
      watchdog = idleIn Pauses,
      ender = idleIn (if scenarioMayEnd then NothingYet else EnderDone),
      readerWake = False,
      watchdogWake = False,
      armed = False,
      ring = [],
      queue = [],
      wire = 0,
      inbox = 0,
      hungUp = False,
      shutDown = False,
      closed = False
    }

idleIn :: doing -> Party doing
idleIn what = Party {doing = what, units = 0, owes = wakingNobody}

-- | Who performs an action.
data Actor
  = -- | A thread of this program, or the runtime.
    Us
  | Server
  | Timer
  | -- | The thread that ends the connection, or the peer that hangs up.
    TheEnd
  deriving stock (Eq, Show)

-- | All actions that may happen next, each with the world after it.
actions :: Maybe Rule -> World -> [(Actor, World)]
actions dropped world =
  map (fmap settled) . concat $
    [ [(Us, next) | index <- [0 .. length (callers world) - 1], next <- callerActions dropped index world],
      [(Us, next) | next <- readerActions dropped world],
      [(Us, next) | next <- writerActions dropped world],
      watchdogActions dropped world,
      enderActions dropped world,
      [(Us, world {armed = False, readerWake = True}) | armed world, inbox world > 0 || hungUp world || shutDown world],
      [(Server, world {wire = wire world - 1, inbox = inbox world + 1}) | wire world > 0, not (hungUp world), not (shutDown world)]
    ]

-- | Performs at once every action of a thread that no other thread sees and that changes nothing
-- for the others: any order with other actions has the same result.
--
-- It also forgets what no longer matters: after the end, the bytes on the wire and in the buffer.
settled :: World -> World
settled given =
  world
    { callers = [(settledCaller index party left, left) | (index, (party, left)) <- zip [0 ..] (callers world)],
      reader = settledReader (reader world),
      writer = settledWriter (writer world),
      watched = watched world && doing (reader world) == Parks,
      armed = armed world && not (wakeupWord' == Dead && reads')
    }
  where
    wakeupWord' = wakeupLife (machine given)
    reads' = doing (reader given) >= Dying
    world
      | shutDown given = given {wire = 0, inbox = 0, hungUp = False, machine = setWatch False (setUnsent 0 (machine given))}
      | otherwise = given
    settledCaller index party left = case doing party of
      Sends | units party == 0 -> party {doing = Releases}
      WakesOthers | owes party == wakingNobody -> settledCaller index party {doing = if index == 0 then Ready else WaitsForReply} left
      WaitsForReply | index `notElem` ring world -> settledCaller index party {doing = Ready} left
      Ready | left == 0, index `notElem` ring world -> party {doing = Finished}
      _ -> party
    settledReader party = case doing party of
      ReaderSends | units party == 0 -> party {doing = ReaderReleases}
      ReaderWakes | owes party == wakingNobody -> party {doing = Reads}
      _ -> party
    settledWriter party = case doing party of
      WriterSends | units party == 0 -> party {doing = WriterDone}
      _ -> party

-- | One step under the lock.
locking :: Maybe Rule -> Event -> World -> (Step, World)
locking dropped event world = (after, world {machine = stepState after})
  where
    after = stepWithout dropped event (machine world)

-- | Wakes the threads that a party owes a wake-up.
waking :: Wakes -> World -> World
waking wakes world =
  world
    { readerWake = readerWake world || wakesReader as,
      watchdogWake = watchdogWake world || wakesWatchdog as
    }
  where
    as = Step {stepState = atFirst, stepAnswer = Leave, stepWakes = wakes}

unsentIn :: World -> Int
unsentIn = wakeupUnsent . machine

-- | Calls the waiting callers for which there is room.
admit :: World -> World
admit world = case queue world of
  next : rest
    | length (ring world) + promised world < room world ->
      admit (setCaller next (\party -> party {doing = CalledIn}) world {queue = rest})
  _ -> world

promised :: World -> Int
promised world = length [() | (party, _) <- callers world, doing party == CalledIn]

callEverybody :: World -> World
callEverybody world = foldr (\index -> setCaller index (\party -> party {doing = CalledIn})) world {queue = []} (queue world)

setCaller :: Int -> (Party Doing -> Party Doing) -> World -> World
setCaller index change world =
  world {callers = [if at == index then (change party, left) else entry | (at, entry@(party, left)) <- zip [0 ..] (callers world)]}

callerActions :: Maybe Rule -> Int -> World -> [World]
callerActions dropped index world = case doing party of
  Ready
    | left == 0 || locked world -> []
    | wakeupLife (machine world) /= Open -> [refused]
    | null (queue world) && length (ring world) < room world && promised world == 0 -> appended world
    -- The real caller joins the queue in the same hold of the lock, but the reader may take a
    -- command from the ring in between.
    | otherwise -> [become Joining world {locked = True}]
  Joining -> [become Queueing world {locked = False, queue = queue world <> [index]}]
  Queueing -> []
  CalledIn
    | locked world -> []
    | wakeupLife (machine world) /= Open -> [refused]
    | otherwise -> appended world
  Sends
    | shutDown world -> [become SendFails world]
    | otherwise -> [become SendFails world | hungUp world] <> [if wire world == 0 then spend world {wire = 1} else become FindsFull world]
  FindsFull
    | not (locked world) ->
      let (after, next) = locking dropped Stuck world
       in [owing after WakesOthers next {leftover = units party}]
  SendFails | not (locked world) -> let (after, next) = locking dropped Dies world in [owing after TellsDeath next {shutDown = True}]
  TellsDeath -> [paid Releases world]
  Releases | not (locked world) -> let (after, next) = locking dropped Sent world in [owing after WakesOthers next]
  WakesOthers -> [paid (if index == 0 then Ready else WaitsForReply) world]
  _ -> []
  where
    (party, left) = callers world List.!! index
    become what = setCaller index (\known -> known {doing = what})
    spend = setCaller index (\known -> known {units = units known - 1})
    submitted next = next {callers = [if at == index then (known, count - 1) else entry | (at, entry@(known, count)) <- zip [0 :: Int ..] (callers next)]}
    refused = (become Ready world) {callers = [if at == index then (known {doing = Ready}, 0) else entry | (at, entry@(known, _)) <- zip [0 ..] (callers world)]}
    paid what next = setCaller index (\known -> known {doing = what, owes = wakingNobody}) (waking (owes party) next)
    owing after what = setCaller index (\known -> known {doing = what, units = 0, owes = owes known `with` stepWakes after})
    appended before =
      [ let (after, next) = locking dropped (Queued 1 enough) before
            sends = stepAnswer after == Send
            more = submitted next {ring = ring next <> [index]}
         in setCaller
              index
              (\known -> known {doing = if sends then Sends else WakesOthers, units = if sends then unsentIn before + 1 else 0, owes = stepWakes after})
              (if sends then admit more else more)
        | enough <- [1, 2]
      ]

readerActions :: Maybe Rule -> World -> [World]
readerActions dropped world = case doing party of
  Flushes -> [become (if unsentIn world > 0 then FlushesLocked else Reads) world]
  FlushesLocked
    | free ->
      let (after, next) = locking dropped WouldSend world
       in [if stepAnswer after == Send then admit next {reader = party {doing = ReaderSends, units = unsentIn world}} else become Reads next]
  ReaderSends
    | shutDown world -> [become ReaderSendFails world]
    | otherwise -> [become ReaderSendFails world | hungUp world] <> [if wire world == 0 then world {wire = 1, reader = party {units = units party - 1}} else become ReaderFindsFull world]
  ReaderFindsFull
    | free ->
      let (after, next) = locking dropped Stuck world
       in [owing after ReaderWakes next {leftover = units party}]
  ReaderSendFails | free -> let (after, next) = locking dropped Dies world in [owing after ReaderTellsDeath next {shutDown = True}]
  ReaderTellsDeath -> [paid ReaderReleases]
  ReaderReleases | free -> let (after, next) = locking dropped Sent world in [owing after ReaderWakes next]
  ReaderWakes -> [paid Reads]
  Reads
    | shutDown world -> become Dying world : sleepsOn
    | inbox world > 0 -> become (if null (queue world) && not (locked world) then Flushes else Settles) world {inbox = inbox world - 1, ring = drop 1 (ring world)} : sleepsOn
    | hungUp world -> become Dying world : sleepsOn
    | otherwise -> become Forgets world : [become Flushes world | wakeupPolls (machine world), not (null (ring world))]
  Settles
    | null (queue world) -> [become Flushes world]
    | free -> [become Flushes (admit world)]
  Forgets ->
    let forgotten = if dropped == Just ReaderForgetsFirst then world else world {readerWake = False}
        unwatched = wakeupPolls (machine world) && null (ring world) && not (wakeupWatch (machine world))
     in [become Parks (if unwatched then forgotten {watched = False} else forgotten {watched = True, armed = True})]
  Parks
    | free ->
      let admitted = if dropped == Just ReaderAdmitsBeforeSleep then world else admit world
          (after, next) = locking dropped (WouldSleep (watched world) (not (null (ring world)))) admitted
          forgotten = if dropped == Just ReaderForgetsFirst then next {readerWake = False} else next
       in case stepAnswer after of
            Sleep -> [become Sleeps forgotten]
            Finish -> [become Dying next]
            _ -> [become Flushes next]
  Sleeps -> [become Wakes' world {readerWake = False} | readerWake world]
  Wakes' | free -> let (_, next) = locking dropped (Woken (not (null (ring world)))) world in [become Flushes next]
  Dying | free -> let (after, next) = locking dropped Dies world in [owing after DyingTells next {shutDown = True}]
  DyingTells -> [paid Ends]
  Ends
    | free ->
      let (after, next) = locking dropped WouldEnd world
       in [become (if stepAnswer after == Finish then Fails else AwaitsRight) next]
  AwaitsRight -> [become Ends world {readerWake = False} | readerWake world]
  Fails
    | free ->
      let called = if dropped == Just EndCallsEverybody then world else callEverybody world
       in [become ReaderGone called {ring = [], armed = False, closed = True}]
  _ -> []
  where
    party = reader world
    free = not (locked world)
    -- A reader that was woken to send does not look at the socket. (The model lets it do so at other times, too.)
    sleepsOn = [become Forgets world | not (wakeupPolls (machine world) && not (null (ring world)))]
    become what next = next {reader = (reader next) {doing = what}}
    paid what = (become what (waking (owes party) world)) {reader = party {doing = what, owes = wakingNobody}}
    owing after what next = next {reader = party {doing = what, units = 0, owes = owes party `with` stepWakes after}}

writerActions :: Maybe Rule -> World -> [World]
writerActions dropped world =
  paying <> case doing party of
    -- The next writer may begin before the last one has woken whom it has to wake.
    NoWriter -> [world {leftover = 0, writer = party {doing = WriterSends, units = leftover world}} | leftover world > 0]
    WriterSends
      | shutDown world -> [become WriterFails world]
      | wire world == 0 -> [become WriterFails world | hungUp world] <> [world {wire = 1, writer = party {units = units party - 1}}]
      | wakeupLife (machine world) == Dead -> [become WriterFails world | hungUp world] <> [become WriterDone world]
      | otherwise -> [become WriterFails world | hungUp world] <> [become WriterBlocked world]
    WriterBlocked -> [become WriterSends world | wire world == 0 || hungUp world || shutDown world]
    WriterFails | free -> let (after, next) = locking dropped Dies world in [owing after WriterTellsDeath next {shutDown = True}]
    WriterTellsDeath -> [paid WriterDone]
    WriterDone
      | free ->
        let (after, next) = locking dropped WriterSent world
         in if stepAnswer after == Send
              then [admit next {writer = party {doing = WriterSends, units = unsentIn world}}]
              else [owing after NoWriter next]
    _ -> []
  where
    party = writer world
    paying = [paid (doing party) | owes party /= wakingNobody, doing party /= WriterTellsDeath]
    free = not (locked world)
    become what next = next {writer = (writer next) {doing = what}}
    paid what = (waking (owes party) world) {writer = party {doing = what, owes = wakingNobody}}
    owing after what next = next {writer = party {doing = what, units = 0, owes = owes party `with` stepWakes after}}

watchdogActions :: Maybe Rule -> World -> [(Actor, World)]
watchdogActions dropped world = case doing party of
  Pauses ->
    let (ticked, next) = locking dropped Ticked world
        (after, next') = locking dropped (WouldRest (not (null (ring world)) || not (null (queue world)) || promised world > 0)) world
     in [(Timer, next {watchdog = party {doing = WatchdogWakes, owes = stepWakes ticked}}) | free, alive, stepWakes ticked /= wakingNobody]
          <> [(Timer, become Rests next') | free, alive, stepAnswer after == Sleep]
          <> [(Timer, become WatchdogGone world) | not alive]
          <> [(Us, looks) | watchdogWake world]
  WatchdogWakes -> [(Us, (waking (owes party) world) {watchdog = party {doing = Pauses, owes = wakingNobody}})]
  Rests -> [(Us, looks) | watchdogWake world]
  _ -> []
  where
    party = watchdog world
    free = not (locked world)
    alive = wakeupLife (machine world) /= Dead
    looks = (become (if alive then Pauses else WatchdogGone) world) {watchdogWake = False}
    become what next = next {watchdog = (watchdog next) {doing = what}}

-- | The possible ends: the peer may hang up at any time, and the connection may be closed, at once
-- or when nothing is in flight. One of these happens, once.
enderActions :: Maybe Rule -> World -> [(Actor, World)]
enderActions dropped world = case doing (ender world) of
  NothingYet ->
    (TheEnd, world {hungUp = True, ender = idleIn EnderDone}) :
      [ (TheEnd, finished {ender = (idleIn EnderWakes) {owes = stepWakes after}})
        | not (locked world),
          (after, finished) <-
            [ let (after, next) = locking dropped Dies world in (after, next {shutDown = True}),
              locking dropped Drains (if wakeupLife (machine world) == Open then callEverybody world else world)
            ]
      ]
  EnderWakes -> [(Us, (waking (owes (ender world)) world) {ender = idleIn EnderDone})]
  EnderDone -> []

-- | The number of parties that write to the socket.
sendingAtOnce :: World -> Int
sendingAtOnce world =
  length [() | (party, _) <- callers world, doing party `elem` [Sends, FindsFull]]
    + length [() | doing (reader world) `elem` [ReaderSends, ReaderFindsFull]]
    + length [() | doing (writer world) `elem` [WriterSends, WriterBlocked] || leftover world > 0]

-- | Whether the descriptor was freed while a party may still use it.
closedTooEarly :: World -> Bool
closedTooEarly world = closed world && sendingAtOnce world > 0

-- | A world packed into two words.
data Key = Key {-# UNPACK #-} Int {-# UNPACK #-} Int
  deriving stock (Eq, Ord)

-- | The key of a world. Different worlds have different keys.
keyOf :: World -> Key
keyOf world =
  Key
    ( packed
        [ (wakeupWord (machine world), 12),
          (fromEnum (doing (reader world)), 5),
          (units (reader world), 3),
          (wakesWord (owes (reader world)), 3),
          (fromEnum (doing (writer world)), 4),
          (units (writer world), 3),
          (wakesWord (owes (writer world)), 3),
          (fromEnum (doing (watchdog world)), 3),
          (wakesWord (owes (watchdog world)), 3),
          (fromEnum (doing (ender world)), 2),
          (wakesWord (owes (ender world)), 3),
          (leftover world, 3),
          (foldl (\word index -> 2 * word + index) 1 (ring world), 4),
          (foldl (\word index -> 2 * word + index) 1 (queue world), 3)
        ]
    )
    ( packed $
        concat [[(fromEnum (doing party), 4), (units party, 3), (wakesWord (owes party), 3), (left, 2)] | (party, left) <- callers world]
          <> [ (inbox world, 3),
               (wire world, 1)
             ]
          <> [ (fromEnum flag, 1)
               | flag <-
                   [ locked world,
                     watched world,
                     readerWake world,
                     watchdogWake world,
                     armed world,
                     hungUp world,
                     shutDown world,
                     closed world
                   ]
             ]
    )
  where
    packed = foldl (\word (value, bits) -> word `shiftL` bits .|. value) 0
