-- | Who sends, who sleeps and who wakes whom on one connection: one state, one
-- pure step.
--
-- Five parties share a connection: the callers, the reader, the writer, the
-- watchdog and whoever ends it. Each of them tells the machine what it has done
-- or would like to do (an 'Event'), under the connection's lock. The machine
-- answers what it does next, and whom it must wake when it has left the lock.
-- The machine does no IO and reads no clock. "Redis.Internal.Network.Multiplexer",
-- "Redis.Internal.Network.Sender", "Redis.Internal.Network.Reader" and
-- "Redis.Internal.Network.Watchdog" drive it. The suite @core@ searches every
-- interleaving of a model of these drivers around this very step
-- (@WakeupSpec@), and shows for each rule below that it fails without it.
--
-- = The states
--
-- > reader    Awake            runs, polls, or has been woken and will run
-- >           AsleepWatched    sleeps; the socket wakes it, too
-- >           AsleepUnwatched  sleeps; only a party of this connection wakes it
-- >           AwaitsSender     sleeps at the end, until nobody sends
-- > sender    Idle             nobody sends
-- >           Helping          a caller or the reader sends one block
-- >           Writing          the writer sends, and looks for more afterwards
-- >           Closed           the reader has the right to send for good
-- > watchdog  Ticking          wakes up at every tick
-- >           Resting          sleeps until a command is queued
-- > life      Open, Draining, Dead
-- > unsent    commands in the buffer that nobody has begun to send
-- > watch     whether the reader must not sleep unwatched for now
--
-- = The events
--
-- The first line of a party that fits is the one that counts.
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
-- > Stuck        R7 Dead                               as Sent               Leave   as Sent
-- >              otherwise                             Writing               Send    writer
-- > WriterSent   Dead                                  as Sent               Leave   as Sent
-- >              R8 unsent > 0                         unsent = 0            Send
-- >              otherwise                             Idle                  Leave
-- > WouldSleep   R9 Dead; Draining, nothing in flight                        Finish
-- >              R10 unsent > 0, Idle                                        GoOn
-- >              R11 unwatched, in flight                                    GoOn
-- >              R12 unwatched, Resting or watch       watch                 GoOn
-- >              otherwise                             Asleep…               Sleep
-- > Woken                                              Awake                 Leave
-- > Ticked       R13 AsleepUnwatched                   watch, reader Awake   Leave   reader
-- >              otherwise                                                   Leave
-- > WouldRest    R14 in flight, waited for, not Open,                        GoOn
-- >              or AsleepUnwatched
-- >              otherwise                             Resting               Sleep
-- > Drains       Open                                  Draining              Leave   R15 reader
-- > Dies         not Dead                              Dead                  Leave   R16 all
-- > WouldEnd     Idle                                  Closed                Finish
-- >              R17 otherwise                         AwaitsSender          Sleep
--
-- (*) if it sleeps unwatched, or would poll for the reply.
--
-- = Why nothing is left unsent
--
-- Commands in the buffer have somebody who will send them, at any time:
--
-- * Somebody sends now. When it is done it looks again: the writer sends the
--   rest (R8), a caller or the reader wakes the reader if that sleeps (R5).
-- * Nobody sends and the reader is awake. It sends before it reads, and does
--   not go to sleep without having sent (R10).
-- * Nobody sends and the reader sleeps. Then there was nothing unsent when it
--   went to sleep, and whoever queued something since has woken it (R3).
--
-- No timer is part of this. A timer helps in one case only: a reader that sleeps
-- unwatched sees a push, or the peer's end, at the watchdog's next tick (R13), so
-- the watchdog does not rest meanwhile (R12, R14). Nothing is in flight then
-- (R11), and whoever queues a command ends it (R2).
--
-- = Why two never send at once
--
-- Sending begins with 'Idle' only, in the same step that leaves it (R4), and the
-- step that returns to 'Idle' is taken by the party that sent.
module Redis.Internal.Network.Wakeup
  ( -- * The state
    Wakeup (..),
    Reader (..),
    Sender (..),
    Watchdog (..),
    Life (..),
    atFirst,
    asleep,

    -- * The step
    Event (..),
    Answer (..),
    Step (..),
    step,

    -- * One word
    pack,
    unpack,
  )
where

import Data.Bits (shiftL, shiftR, (.&.), (.|.))

-- | The reader, as the others see it.
data Reader = Awake | AsleepWatched | AsleepUnwatched | AwaitsSender
  deriving stock (Eq, Ord, Show, Enum, Bounded)

-- | Who has the right to send: to swap the blocks, and to write to the
-- transport without the lock.
data Sender = Idle | Helping | Writing | Closed
  deriving stock (Eq, Ord, Show, Enum, Bounded)

-- | Whether time is looked after.
data Watchdog = Ticking | Resting
  deriving stock (Eq, Ord, Show, Enum, Bounded)

-- | Whether commands are taken. A draining connection takes none, and ends when
-- those in flight are answered.
data Life = Open | Draining | Dead
  deriving stock (Eq, Ord, Show, Enum, Bounded)

-- | Where the parties stand.
data Wakeup = Wakeup
  { wakeupReader :: Reader,
    wakeupSender :: Sender,
    wakeupWatchdog :: Watchdog,
    wakeupLife :: Life,
    -- | Whether the reader must not sleep unwatched for now.
    wakeupWatch :: Bool,
    -- | Whether the reader would poll for replies if it were awake.
    wakeupPolls :: Bool,
    -- | Commands that nobody has begun to send.
    wakeupUnsent :: Int
  }
  deriving stock (Eq, Ord, Show)

-- | Nothing sent, the reader about to run.
atFirst :: Wakeup
atFirst =
  Wakeup
    { wakeupReader = Awake,
      wakeupSender = Idle,
      wakeupWatchdog = Ticking,
      wakeupLife = Open,
      wakeupWatch = False,
      wakeupPolls = False,
      wakeupUnsent = 0
    }

-- | Whether the reader sleeps and may be woken to send or to read.
asleep :: Reader -> Bool
asleep = \case
  AsleepWatched -> True
  AsleepUnwatched -> True
  _ -> False
{-# INLINE asleep #-}

-- | What a party tells.
data Event
  = -- | A caller has put so many commands in the buffer, and sends them itself if
    -- so many are unsent.
    Queued Int Int
  | -- | The reader is about to read, and sends first what is queued.
    WouldSend
  | -- | Who sent a block by itself is done with it, or has failed.
    Sent
  | -- | Who sent a block by itself found the socket full.
    Stuck
  | -- | The writer is done with its block, or has failed.
    WriterSent
  | -- | The reader found nothing to read: whether it has asked to be woken by the
    -- socket, and whether commands are in flight.
    WouldSleep Bool Bool
  | -- | The reader runs again: whether commands are in flight.
    Woken Bool
  | -- | The reader has looked at how long replies take: whether it would poll.
    Judged Bool
  | -- | The watchdog's time is over.
    Ticked
  | -- | The watchdog found nothing to do for a while: whether commands are in
    -- flight, or callers wait for room.
    WouldRest Bool
  | -- | No more commands are to be taken.
    Drains
  | -- | The connection is broken, or no longer wanted.
    Dies
  | -- | The reader wants the right to send for good, to fail what is in flight and
    -- to free the descriptor.
    WouldEnd
  deriving stock (Eq, Show)

-- | What the party does next.
data Answer
  = -- | Nothing.
    Leave
  | -- | Swaps the blocks and sends; after 'Stuck', hands its block to the writer.
    Send
  | Sleep
  | -- | Looks again.
    GoOn
  | -- | Cleans up.
    Finish
  deriving stock (Eq, Show, Enum, Bounded)

-- | What follows from an event.
data Step = Step
  { stepState :: Wakeup,
    stepAnswer :: Answer,
    stepWakesReader :: Bool,
    stepWakesWriter :: Bool,
    stepWakesWatchdog :: Bool
  }
  deriving stock (Eq, Show)

-- | The step. \(O(1)\). Inlined, so that nothing is allocated for a known event.
step :: Event -> Wakeup -> Step
step event state = case event of
  Queued count enough -> queued count enough state
  WouldSend
    | wakeupSender state == Idle && wakeupUnsent state > 0 -> answer Send state {wakeupSender = Helping, wakeupUnsent = 0}
    | otherwise -> answer Leave state
  Sent -> released state
  Stuck
    | wakeupLife state == Dead -> released state
    | otherwise -> (answer Send state {wakeupSender = Writing}) {stepWakesWriter = True}
  WriterSent
    | wakeupLife state == Dead -> released state
    | wakeupUnsent state > 0 -> answer Send state {wakeupUnsent = 0}
    | otherwise -> answer Leave state {wakeupSender = Idle}
  WouldSleep watched inFlight -> wouldSleep watched inFlight state
  Woken inFlight -> answer Leave state {wakeupReader = Awake, wakeupWatch = wakeupWatch state && not inFlight}
  Judged polls -> answer Leave state {wakeupPolls = polls}
  Ticked
    | wakeupReader state == AsleepUnwatched -> wakingReader Leave state {wakeupWatch = True}
    | otherwise -> answer Leave state
  WouldRest busy
    | busy || wakeupLife state /= Open || wakeupReader state == AsleepUnwatched -> answer GoOn state
    | otherwise -> answer Sleep state {wakeupWatchdog = Resting}
  Drains
    | wakeupLife state == Open -> wakingReader Leave state {wakeupLife = Draining}
    | otherwise -> answer Leave state
  Dies
    | wakeupLife state == Dead -> answer Leave state
    | otherwise ->
      Step
        { stepState = state {wakeupLife = Dead, wakeupReader = Awake, wakeupWatchdog = Ticking},
          stepAnswer = Leave,
          stepWakesReader = True,
          stepWakesWriter = True,
          stepWakesWatchdog = True
        }
  WouldEnd
    | wakeupSender state == Idle -> answer Finish state {wakeupSender = Closed}
    | otherwise -> answer Sleep state {wakeupReader = AwaitsSender}
{-# INLINE step #-}

queued :: Int -> Int -> Wakeup -> Step
queued count enough before =
  Step
    { stepState = after {wakeupWatchdog = Ticking, wakeupReader = if wakes then Awake else wakeupReader after},
      stepAnswer = if sends then Send else Leave,
      stepWakesReader = wakes,
      stepWakesWriter = False,
      stepWakesWatchdog = wakeupWatchdog before == Resting
    }
  where
    unsent = wakeupUnsent before + count
    idle = wakeupSender before == Idle
    sends = idle && unsent >= enough
    after
      | sends = before {wakeupSender = Helping, wakeupUnsent = 0}
      | otherwise = before {wakeupUnsent = unsent}
    reader = wakeupReader before
    wakes
      | idle && not sends = asleep reader
      | otherwise = reader == AsleepUnwatched || reader == AsleepWatched && wakeupPolls before
{-# INLINE queued #-}

-- | The right to send is given back.
released :: Wakeup -> Step
released before
  | reader == AwaitsSender || wakeupUnsent before > 0 && asleep reader = wakingReader Leave after
  | otherwise = answer Leave after
  where
    reader = wakeupReader before
    after = before {wakeupSender = Idle}
{-# INLINE released #-}

wouldSleep :: Bool -> Bool -> Wakeup -> Step
wouldSleep watched inFlight state
  | wakeupLife state == Dead || wakeupLife state == Draining && not inFlight = answer Finish state
  | wakeupUnsent state > 0 && wakeupSender state == Idle = answer GoOn state
  | watched = answer Sleep state {wakeupReader = AsleepWatched}
  | inFlight = answer GoOn state
  | wakeupWatchdog state == Resting || wakeupWatch state = answer GoOn state {wakeupWatch = True}
  | otherwise = answer Sleep state {wakeupReader = AsleepUnwatched}
{-# INLINE wouldSleep #-}

answer :: Answer -> Wakeup -> Step
answer what state = Step {stepState = state, stepAnswer = what, stepWakesReader = False, stepWakesWriter = False, stepWakesWatchdog = False}
{-# INLINE answer #-}

wakingReader :: Answer -> Wakeup -> Step
wakingReader what state = (answer what state {wakeupReader = Awake}) {stepWakesReader = True}
{-# INLINE wakingReader #-}

-- | The state in one word: two bits for the reader, the sender and the life each,
-- one for each of the others, and what is unsent above them.
pack :: Wakeup -> Int
pack state =
  fromEnum (wakeupReader state)
    .|. fromEnum (wakeupSender state) `shiftL` 2
    .|. fromEnum (wakeupLife state) `shiftL` 4
    .|. fromEnum (wakeupWatchdog state) `shiftL` 6
    .|. fromEnum (wakeupWatch state) `shiftL` 7
    .|. fromEnum (wakeupPolls state) `shiftL` 8
    .|. wakeupUnsent state `shiftL` 9
{-# INLINE pack #-}

-- | The state of a word that 'pack' has made.
unpack :: Int -> Wakeup
unpack word =
  Wakeup
    { wakeupReader = case bits 0 3 of
        0 -> Awake
        1 -> AsleepWatched
        2 -> AsleepUnwatched
        _ -> AwaitsSender,
      wakeupSender = case bits 2 3 of
        0 -> Idle
        1 -> Helping
        2 -> Writing
        _ -> Closed,
      wakeupLife = case bits 4 3 of
        0 -> Open
        1 -> Draining
        _ -> Dead,
      wakeupWatchdog = if bits 6 1 == 0 then Ticking else Resting,
      wakeupWatch = bits 7 1 /= 0,
      wakeupPolls = bits 8 1 /= 0,
      wakeupUnsent = word `shiftR` 9
    }
  where
    bits from mask = word `shiftR` from .&. mask
{-# INLINE unpack #-}
