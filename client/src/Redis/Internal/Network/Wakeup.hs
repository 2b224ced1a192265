{-# LANGUAGE PatternSynonyms #-}

-- | The rules by which the threads of one connection send, sleep and wake each other: one state,
-- one pure step.
--
-- Five parties share a connection: the callers, the reader, the writer, the watchdog and the thread
-- that ends it. Each of them reports to the machine, under the connection's lock, what it has done or would
-- like to do (an 'Event'). The machine answers what the party does next, and which threads it must
-- wake when it has left the lock. The machine does no IO and reads no clock.
--
-- ARCHITECTURE.md (\"The wake-up\") describes the states, and says why nothing is left unsent. The suite
-- @core@ searches every interleaving of a model of the drivers around this very step (@WakeupSpec@), and
-- shows for each rule below that it fails without it.
--
-- = The events
--
-- For each event, the first line whose condition holds counts. Besides the states of ARCHITECTURE.md,
-- @unsent@ counts commands in the buffer that nobody has begun to send, @watch@ says that the reader must not
-- sleep unwatched for now, and @polls@ that it would poll for a reply.
--
-- > event        if                                    then                  answer  wakes
-- > -----------  ------------------------------------  --------------------  ------  --------------
-- > Queued       (always: unsent grows)                Ticking                       R1 watchdog
-- >              Idle, enough to send                  Helping, unsent = 0   Send    R2 reader *
-- >              Idle                                  reader Awake          Leave   R3 reader
-- >              somebody sends                                              Leave   R2 reader *
-- > WouldSend    Idle, unsent > 0                      Helping, unsent = 0   Send
-- >              R4 otherwise                                                Leave
-- > Sent         R5 unsent > 0                         Idle, reader Awake    Leave   reader
-- >              R6 reader AwaitsSender                Idle, reader Awake    Leave   reader
-- >              otherwise                             Idle                  Leave
-- > Stuck                                              Writing               Leave
-- > WriterSent   Dead                                  as Sent               Leave   as Sent
-- >              R7 unsent > 0                         unsent = 0            Send
-- >              otherwise                             Idle                  Leave
-- > WouldSleep   R8 Dead; Draining, nothing in flight                        Finish
-- >              R9 unsent > 0, Idle                                         GoOn
-- >              R10 unwatched, in flight                                    GoOn
-- >              R11 unwatched, Resting or watch       watch                 GoOn
-- >              otherwise                             Asleep…               Sleep
-- > Woken        in flight                             Awake, no watch       Leave
-- >              otherwise                             Awake                 Leave
-- > Judged                                             polls                 Leave
-- > Ticked       R12 AsleepUnwatched                   watch, reader Awake   Leave   reader
-- >              otherwise                                                   Leave
-- > WouldRest    R13 in flight, waited for, not Open,                        GoOn
-- >              or AsleepUnwatched
-- >              otherwise                             Resting               Sleep
-- > Drains       Open                                  Draining              Leave   R14 reader
-- > Dies         not Dead                              Dead                  Leave   R15 both
-- > WouldEnd     Idle                                  Closed                Finish
-- >              R16 otherwise                         AwaitsSender          Sleep
--
-- (*) if it sleeps unwatched, or would poll for the reply. A reader that is woken counts as Awake from then
-- on, and a watchdog as Ticking.
--
-- No timer is needed to send. One helps in one case only: a reader that sleeps unwatched sees a push, or
-- the peer's end, at the watchdog's next tick (R12), so the watchdog does not rest meanwhile (R11, R13).
-- Nothing is in flight then (R10), and the next command that is queued ends this sleep (R2, R3).
--
-- Two never send at once: sending begins with 'Idle' only, in the same step that leaves it (R4), and only
-- the party that sent takes the step that returns to 'Idle'.
module Redis.Internal.Network.Wakeup
  ( -- * The state
    Wakeup,
    ReaderState (Awake, AsleepWatched, AsleepUnwatched, AwaitsSender),
    Sender (Idle, Helping, Writing, Closed),
    Watchdog (Ticking, Resting),
    Life (Open, Draining, Dead),
    atFirst,
    wakeupReader,
    wakeupSender,
    wakeupWatchdog,
    wakeupLife,
    wakeupWatch,
    wakeupPolls,
    wakeupUnsent,
    asleep,

    -- * The step
    Event (..),
    Answer (Leave, Send, Sleep, GoOn, Finish),
    Step (..),
    wakesReader,
    wakesWatchdog,
    step,

    -- * The word
    wakeupWord,
    fromWord,

    -- * For the model, which breaks it on purpose
    setReader,
    setSender,
    setWatchdog,
    setLife,
    setWatch,
    setUnsent,
    Wakes,
    wakesWord,
    wakingNobody,
    wakingReader,
    wakingWatchdog,
    with,
    without,
  )
where

import Data.Bits (complement, shiftL, shiftR, (.&.), (.|.))

-- | The state of all parties in one word: two bits each for the reader, the sender and the life,
-- one bit for each of the others, and the number of unsent commands above them. So the step
-- allocates nothing, and the state is one read and one write.
newtype Wakeup = Wakeup Int
  deriving newtype (Eq, Ord)

instance Show Wakeup where
  show state =
    unwords $
      [show (wakeupReader state), show (wakeupSender state), show (wakeupWatchdog state), show (wakeupLife state), show (wakeupUnsent state)]
        <> ["watch" | wakeupWatch state]
        <> ["polls" | wakeupPolls state]

-- | The reader, as the others see it.
newtype ReaderState = ReaderState Int
  deriving newtype (Eq, Ord)

pattern Awake, AsleepWatched, AsleepUnwatched, AwaitsSender :: ReaderState
pattern Awake = ReaderState 0
pattern AsleepWatched = ReaderState 1
pattern AsleepUnwatched = ReaderState 2
pattern AwaitsSender = ReaderState 3

{-# COMPLETE Awake, AsleepWatched, AsleepUnwatched, AwaitsSender #-}

instance Show ReaderState where
  show (ReaderState number) = nameOf number ["Awake", "AsleepWatched", "AsleepUnwatched", "AwaitsSender"]

-- | The holder of the right to send: to swap the blocks, and to write without the lock.
newtype Sender = Sender Int
  deriving newtype (Eq, Ord)

pattern Idle, Helping, Writing, Closed :: Sender
pattern Idle = Sender 0
pattern Helping = Sender 1
pattern Writing = Sender 2
pattern Closed = Sender 3

{-# COMPLETE Idle, Helping, Writing, Closed #-}

instance Show Sender where
  show (Sender number) = nameOf number ["Idle", "Helping", "Writing", "Closed"]

-- | Whether the watchdog ticks.
newtype Watchdog = Watchdog Int
  deriving newtype (Eq, Ord)

pattern Ticking, Resting :: Watchdog
pattern Ticking = Watchdog 0
pattern Resting = Watchdog 1

{-# COMPLETE Ticking, Resting #-}

instance Show Watchdog where
  show (Watchdog number) = nameOf number ["Ticking", "Resting"]

-- | Whether the connection takes commands. A draining one ends when those in flight are answered.
newtype Life = Life Int
  deriving newtype (Eq, Ord)

pattern Open, Draining, Dead :: Life
pattern Open = Life 0
pattern Draining = Life 1
pattern Dead = Life 2

{-# COMPLETE Open, Draining, Dead #-}

instance Show Life where
  show (Life number) = nameOf number ["Open", "Draining", "Dead"]

-- | The name of the state with this number.
nameOf :: Int -> [String] -> String
nameOf number = concat . take 1 . drop number

-- | The first state: nothing sent, the reader about to run.
atFirst :: Wakeup
atFirst = Wakeup 0

wakeupReader :: Wakeup -> ReaderState
wakeupReader (Wakeup word) = ReaderState (word .&. 3)

wakeupSender :: Wakeup -> Sender
wakeupSender (Wakeup word) = Sender (word `shiftR` 2 .&. 3)

wakeupLife :: Wakeup -> Life
wakeupLife (Wakeup word) = Life (word `shiftR` 4 .&. 3)

wakeupWatchdog :: Wakeup -> Watchdog
wakeupWatchdog (Wakeup word) = Watchdog (word `shiftR` 6 .&. 1)

-- | Whether the reader must not sleep unwatched for now.
wakeupWatch :: Wakeup -> Bool
wakeupWatch (Wakeup word) = word .&. 128 /= 0

-- | Whether the reader would poll for replies if it were awake.
wakeupPolls :: Wakeup -> Bool
wakeupPolls (Wakeup word) = word .&. 256 /= 0

-- | Commands that nobody has begun to send.
wakeupUnsent :: Wakeup -> Int
wakeupUnsent (Wakeup word) = word `shiftR` 9

setReader :: ReaderState -> Wakeup -> Wakeup
setReader (ReaderState reader) (Wakeup word) = Wakeup (word .&. complement 3 .|. reader)

setSender :: Sender -> Wakeup -> Wakeup
setSender (Sender sender) (Wakeup word) = Wakeup (word .&. complement 12 .|. sender `shiftL` 2)

setLife :: Life -> Wakeup -> Wakeup
setLife (Life life) (Wakeup word) = Wakeup (word .&. complement 48 .|. life `shiftL` 4)

setWatchdog :: Watchdog -> Wakeup -> Wakeup
setWatchdog (Watchdog watchdog) (Wakeup word) = Wakeup (word .&. complement 64 .|. watchdog `shiftL` 6)

setWatch :: Bool -> Wakeup -> Wakeup
setWatch watch (Wakeup word) = Wakeup (if watch then word .|. 128 else word .&. complement 128)

setPolls :: Bool -> Wakeup -> Wakeup
setPolls polls (Wakeup word) = Wakeup (if polls then word .|. 256 else word .&. complement 256)

setUnsent :: Int -> Wakeup -> Wakeup
setUnsent unsent (Wakeup word) = Wakeup (word .&. 511 .|. unsent `shiftL` 9)

-- | Whether the reader sleeps and may be woken to send or to read.
asleep :: ReaderState -> Bool
asleep reader = reader == AsleepWatched || reader == AsleepUnwatched

-- | What a party has done or would like to do.
data Event
  = -- | A caller has put so many commands (the first number) in the buffer, and sends if so many
    -- (the second number) are unsent.
    Queued Int Int
  | -- | The reader is about to read, and would first send the queued commands.
    WouldSend
  | -- | A caller or the reader is done with sending its block, or has failed.
    Sent
  | -- | A caller or the reader found the socket full while sending its block. It starts a writer,
    -- which has the block and the right to send.
    Stuck
  | -- | The writer is done with sending its block, or has failed.
    WriterSent
  | -- | The reader found nothing to read. The arguments are whether the socket will wake it, and
    -- whether commands are in flight.
    WouldSleep Bool Bool
  | -- | The reader runs again. The argument is whether commands are in flight.
    Woken Bool
  | -- | The reader has looked at how long replies take. The argument is whether it would poll.
    Judged Bool
  | -- | The watchdog's tick has passed.
    Ticked
  | -- | The watchdog found nothing to do for a while. The argument is whether commands are in
    -- flight, or callers wait for room.
    WouldRest Bool
  | -- | The connection is to take no more commands.
    Drains
  | -- | The connection is broken, or no longer wanted.
    Dies
  | -- | The reader wants the right to send for good, to fail what is in flight and
    -- to free the descriptor.
    WouldEnd
  deriving stock (Eq, Show)

-- | What the party does next.
newtype Answer = Answer Int
  deriving newtype (Eq, Ord)

-- | 'Leave' is nothing, 'Send' is to swap the blocks and send, 'GoOn' to look again, 'Finish' to clean up.
pattern Leave, Send, Sleep, GoOn, Finish :: Answer
pattern Leave = Answer 0
pattern Send = Answer 1
pattern Sleep = Answer 2
pattern GoOn = Answer 3
pattern Finish = Answer 4

{-# COMPLETE Leave, Send, Sleep, GoOn, Finish #-}

instance Show Answer where
  show (Answer number) = nameOf number ["Leave", "Send", "Sleep", "GoOn", "Finish"]

-- | A set of threads to wake.
newtype Wakes = Wakes Int
  deriving newtype (Eq, Ord)

instance Show Wakes where
  show wakes = show ([name | (name, one) <- [("reader", wakingReader), ("watchdog", wakingWatchdog)], wakes `includes` one] :: [String])

wakingNobody, wakingReader, wakingWatchdog :: Wakes
wakingNobody = Wakes 0
wakingReader = Wakes 1
wakingWatchdog = Wakes 2

-- | A number for the set, different for different sets.
wakesWord :: Wakes -> Int
wakesWord (Wakes wakes) = wakes

includes :: Wakes -> Wakes -> Bool
includes (Wakes wakes) (Wakes one) = wakes .&. one /= 0

-- | The union.
with :: Wakes -> Wakes -> Wakes
with (Wakes some) (Wakes others) = Wakes (some .|. others)

-- | The first set without the second.
without :: Wakes -> Wakes -> Wakes
without (Wakes wakes) (Wakes others) = Wakes (wakes .&. complement others)

-- | The set if the condition holds, otherwise the empty one.
given :: Bool -> Wakes -> Wakes
given holds wakes = if holds then wakes else wakingNobody

-- | The result of a step: the next state, what the party does next, and the threads that it wakes.
data Step = Step
  { stepState :: Wakeup,
    stepAnswer :: Answer,
    stepWakes :: Wakes
  }
  deriving stock (Eq, Show)

wakesReader, wakesWatchdog :: Step -> Bool
wakesReader after = stepWakes after `includes` wakingReader
wakesWatchdog after = stepWakes after `includes` wakingWatchdog

-- | Takes the step for an event. \(O(1)\). Inlined, so that nothing is allocated for a known event.
step :: Event -> Wakeup -> Step
step event state = case event of
  Queued count enough -> queued count enough state
  WouldSend
    | wakeupSender state == Idle && wakeupUnsent state > 0 -> answer Send (setSender Helping (setUnsent 0 state))
    | otherwise -> answer Leave state
  Sent -> released state
  Stuck -> answer Leave (setSender Writing state)
  WriterSent
    | wakeupLife state == Dead -> released state
    | wakeupUnsent state > 0 -> answer Send (setUnsent 0 state)
    | otherwise -> answer Leave (setSender Idle state)
  WouldSleep watched inFlight -> wouldSleep watched inFlight state
  Woken inFlight -> answer Leave (setReader Awake (setWatch (wakeupWatch state && not inFlight) state))
  Judged polls -> answer Leave (setPolls polls state)
  Ticked
    | wakeupReader state == AsleepUnwatched -> readerWoken (setWatch True state)
    | otherwise -> answer Leave state
  WouldRest busy
    | busy || wakeupLife state /= Open || wakeupReader state == AsleepUnwatched -> answer GoOn state
    | otherwise -> answer Sleep (setWatchdog Resting state)
  Drains
    | wakeupLife state == Open -> readerWoken (setLife Draining state)
    | otherwise -> answer Leave state
  Dies
    | wakeupLife state == Dead -> answer Leave state
    | otherwise ->
      Step
        { stepState = setLife Dead (setReader Awake (setWatchdog Ticking state)),
          stepAnswer = Leave,
          stepWakes = wakingReader `with` wakingWatchdog
        }
  WouldEnd
    | wakeupSender state == Idle -> answer Finish (setSender Closed state)
    | otherwise -> answer Sleep (setReader AwaitsSender state)
{-# INLINE step #-}

queued :: Int -> Int -> Wakeup -> Step
queued !count !enough !before =
  Step
    { stepState = setWatchdog Ticking (if wakes then setReader Awake after else after),
      stepAnswer = if sends then Send else Leave,
      stepWakes = given wakes wakingReader `with` given (wakeupWatchdog before == Resting) wakingWatchdog
    }
  where
    unsent = wakeupUnsent before + count
    idle = wakeupSender before == Idle
    sends = idle && unsent >= enough
    after
      | sends = setSender Helping (setUnsent 0 before)
      | otherwise = setUnsent unsent before
    reader = wakeupReader before
    wakes
      | idle && not sends = asleep reader
      | otherwise = reader == AsleepUnwatched || reader == AsleepWatched && wakeupPolls before
{-# INLINE queued #-}

-- | Gives the right to send back.
released :: Wakeup -> Step
released before
  | reader == AwaitsSender || wakeupUnsent before > 0 && asleep reader = readerWoken after
  | otherwise = answer Leave after
  where
    reader = wakeupReader before
    after = setSender Idle before

wouldSleep :: Bool -> Bool -> Wakeup -> Step
wouldSleep watched inFlight state
  | wakeupLife state == Dead || wakeupLife state == Draining && not inFlight = answer Finish state
  | wakeupUnsent state > 0 && wakeupSender state == Idle = answer GoOn state
  | watched = answer Sleep (setReader AsleepWatched state)
  | inFlight = answer GoOn state
  | wakeupWatchdog state == Resting || wakeupWatch state = answer GoOn (setWatch True state)
  | otherwise = answer Sleep (setReader AsleepUnwatched state)

answer :: Answer -> Wakeup -> Step
answer what state = Step {stepState = state, stepAnswer = what, stepWakes = wakingNobody}

readerWoken :: Wakeup -> Step
readerWoken state = Step {stepState = setReader Awake state, stepAnswer = Leave, stepWakes = wakingReader}

-- | The word in which the state is kept.
wakeupWord :: Wakeup -> Int
wakeupWord (Wakeup word) = word

-- | The state in a word from 'wakeupWord'.
fromWord :: Int -> Wakeup
fromWord = Wakeup
