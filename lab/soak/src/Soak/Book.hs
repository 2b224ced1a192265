-- | What one caller was told about one key, and which data are possible after that.
--
-- A command that failed with 'NotSent' or 'RefusedBeforeRun' must have left no trace. A command
-- that failed with 'MaybeExecuted', or whose caller did not wait for it, is in doubt: it may have
-- run, and may even run later than commands that were answered since, because its bytes may wait at
-- a frozen server.
module Soak.Book
  ( -- * Keys
    Key (..),
    Keeping (..),
    valueFor,
    numberIn,

    -- * Outcomes
    Outcome (..),
    Effect (..),
    effectOf,

    -- * Counters
    CounterBook (..),
    count,
    counterHolds,

    -- * Values
    ValueBook (..),
    write,
    Reading (..),
    judge,
    doubtsOf,

    -- * Lists
    ListBook (..),
    push,
    pop,
    listHolds,

    -- * Streams
    StreamBook (..),
    nextEntry,
    added,
    handled,
    unhandled,
    streamHolds,
  )
where

import Data.ByteString (ByteString)
import Data.ByteString qualified as ByteString
import Data.ByteString.Char8 qualified as Char8
import Data.Int (Int64)
import Data.IntSet (IntSet)
import Data.IntSet qualified as IntSet
import Data.List (nub)
import Data.Maybe (isNothing, mapMaybe)
import Redis.Error

-- | Whether the servers keep what they have acknowledged.
data Keeping
  = -- | They keep it, whatever happens to them in a soak.
    Kept
  | -- | A replica that lacks the last writes may be elected: the servers lose those writes.
    -- Commands that did not run must still have left no trace.
    MayLose
  deriving stock (Eq, Ord, Show)

data Key = Key
  { keyName :: ByteString,
    keyKeeping :: Keeping
  }
  deriving stock (Eq, Ord, Show)

-- | The value that names its key and the number of its write.
valueFor :: Key -> Int -> ByteString
valueFor key number = keyName key <> "=" <> Char8.pack (show number)

-- | The number of the write of a value, if the value belongs to this key.
numberIn :: Key -> ByteString -> Maybe Int
numberIn key value = do
  digits <- ByteString.stripPrefix (keyName key <> "=") value
  case Char8.readInt digits of
    Just (number, "") -> Just number
    _ -> Nothing

-- | How a command ended for its caller.
data Outcome a
  = Answered a
  | Failed Error
  | -- | The caller was interrupted.
    Abandoned

-- | What a caller may conclude from an outcome.
data Effect a
  = Done a
  | Doubt
  | NotDone

effectOf :: Outcome a -> Effect a
effectOf = \case
  Answered result -> Done result
  Abandoned -> Doubt
  Failed failed -> case errorDelivery failed of
    MaybeExecuted -> Doubt
    NotSent -> NotDone
    RefusedBeforeRun -> NotDone

-- | Increments of a counter by one.
data CounterBook = CounterBook
  { counterDone :: Int,
    counterDoubts :: Int
  }
  deriving stock (Eq, Show)

instance Semigroup CounterBook where
  CounterBook done doubts <> CounterBook done' doubts' = CounterBook (done + done') (doubts + doubts')

instance Monoid CounterBook where
  mempty = CounterBook 0 0

-- | Adds increments that were under way at the same time, by the counter's only writer. Each reply
-- must be possible, and all must differ.
count :: Key -> [Outcome Int64] -> CounterBook -> (CounterBook, [String])
count key outcomes book = (book <> CounterBook (length done) doubts, wrong)
  where
    done = [fromIntegral number | Done number <- map effectOf outcomes] :: [Int]
    doubts = length [() | Doubt <- map effectOf outcomes]
    least = if keyKeeping key == Kept then counterDone book + 1 else 1
    -- Increments that are in doubt now may have run before those that were answered.
    most = counterDone book + counterDoubts book + length done + doubts
    wrong =
      [ named key <> "an increment says " <> show number <> ", possible is " <> show least <> " to " <> show most
        | number <- done,
          number < least || number > most
      ]
        <> [named key <> "two increments say the same: " <> show done | nub done /= done]

-- | Whether a counter has a possible value: no increment was lost, none ran twice.
counterHolds :: Key -> CounterBook -> Int -> [String]
counterHolds key (CounterBook done doubts) held
  | held < done && keyKeeping key == Kept = [story "lost"]
  | held > done + doubts = [story "doubled, or ran though refused"]
  | otherwise = []
  where
    story what = named key <> "increments were " <> what <> ": it holds " <> show held <> ", answered " <> show done <> ", in doubt " <> show doubts

-- | Writes of a key by its only writer. The n-th write writes 'valueFor' n.
data ValueBook = ValueBook
  { valueTried :: Int,
    valueDone :: Maybe Int,
    valueDoubts :: IntSet,
    valueRefused :: IntSet
  }
  deriving stock (Eq, Show)

-- | A key has only one writer, so the book with more writes is that of the writer.
instance Semigroup ValueBook where
  one <> other = if valueTried one >= valueTried other then one else other

instance Monoid ValueBook where
  mempty = ValueBook 0 Nothing IntSet.empty IntSet.empty

-- | Adds a write.
write :: Int -> Outcome () -> ValueBook -> ValueBook
write number outcome book = case effectOf outcome of
  Done () -> tried {valueDone = Just number}
  Doubt -> tried {valueDoubts = IntSet.insert number (valueDoubts book)}
  NotDone -> tried {valueRefused = IntSet.insert number (valueRefused book)}
  where
    tried = book {valueTried = max number (valueTried book)}

-- | The number of writes that are in doubt.
doubtsOf :: ValueBook -> Int
doubtsOf = IntSet.size . valueDoubts

-- | The verdict on a value that was read.
data Reading
  = Possible
  | -- | An older value: a read may reach a node that has just been replaced and does not know it,
    -- but not for long.
    Stale String
  | Impossible String
  deriving stock (Eq, Show)

-- | Judges a value that was read while no write was under way.
judge :: Key -> ValueBook -> Maybe ByteString -> Reading
judge key book = \case
  Nothing
    | Just done <- valueDone book, keyKeeping key == Kept -> Stale (named key <> "it is gone, written was " <> show done)
    | otherwise -> Possible
  Just value -> case numberIn key value of
    Nothing -> Impossible (named key <> "wrong value " <> show value)
    Just number
      | number < 1 || number > valueTried book -> Impossible (named key <> "never written: " <> show value)
      | number `IntSet.member` valueRefused book -> Impossible (named key <> "refused, and there: " <> show value)
      | valueDone book == Just number || number `IntSet.member` valueDoubts book || keyKeeping key == MayLose -> Possible
      | otherwise -> Stale (named key <> "it is " <> show number <> ", written was " <> show (valueDone book))

-- | Elements of a list with one caller that pushes and one that pops.
data ListBook = ListBook
  { listPushed :: IntSet,
    listDoubts :: IntSet,
    listRefused :: IntSet,
    listPopped :: IntSet,
    -- | Pops in doubt: each may have taken one element.
    listLostPops :: Int
  }
  deriving stock (Eq, Show)

-- | Adds up what two callers know about a list.
instance Semigroup ListBook where
  ListBook pushed doubts refused popped lost <> ListBook pushed' doubts' refused' popped' lost' =
    ListBook (pushed <> pushed') (doubts <> doubts') (refused <> refused') (popped <> popped') (lost + lost')

instance Monoid ListBook where
  mempty = ListBook IntSet.empty IntSet.empty IntSet.empty IntSet.empty 0

-- | Adds the push of the n-th element.
push :: Int -> Outcome () -> ListBook -> ListBook
push number outcome book = case effectOf outcome of
  Done () -> book {listPushed = IntSet.insert number (listPushed book)}
  Doubt -> book {listDoubts = IntSet.insert number (listDoubts book)}
  NotDone -> book {listRefused = IntSet.insert number (listRefused book)}

-- | Adds a pop: the list that it was from, and the element.
pop :: Key -> Outcome (Maybe (ByteString, ByteString)) -> ListBook -> (ListBook, [String])
pop key outcome book = case effectOf outcome of
  NotDone -> (book, [])
  Doubt -> (book {listLostPops = listLostPops book + 1}, [])
  Done Nothing -> (book, [])
  Done (Just (from, element)) -> case numberIn key element of
    Just number
      | from == keyName key ->
        ( book {listPopped = IntSet.insert number (listPopped book)},
          [named key <> "popped twice: " <> show number | number `IntSet.member` listPopped book]
        )
    _ -> (book, [named key <> "popped " <> show element <> " of " <> show from])

-- | Whether a list has possible contents, given the elements left in it.
listHolds :: Key -> ListBook -> [ByteString] -> [String]
listHolds key book elements =
  [named key <> "left in the list: wrong element " <> show element | element <- elements, isNothing (numberIn key element)]
    <> [named key <> "twice in the list: " <> show left | length left /= IntSet.size leftSet]
    <> complaint "popped, and left" (IntSet.intersection leftSet (listPopped book))
    <> complaint "refused, and there" (IntSet.intersection found (listRefused book))
    <> complaint "never pushed" (found IntSet.\\ IntSet.unions [listPushed book, listDoubts book, listRefused book])
    <> [ named key <> "lost elements " <> show (take 10 (IntSet.toList lost)) <> ", pops in doubt " <> show (listLostPops book)
         | keyKeeping key == Kept,
           IntSet.size lost > listLostPops book
       ]
  where
    left = mapMaybe (numberIn key) elements
    leftSet = IntSet.fromList left
    found = leftSet <> listPopped book
    lost = listPushed book IntSet.\\ found
    complaint what numbers = [named key <> what <> ": " <> show (take 10 (IntSet.toList numbers)) | not (IntSet.null numbers)]

named :: Key -> String
named key = Char8.unpack (keyName key) <> ": "

-- | The numbers of the entries that were added to a stream, and of those that its workers handled.
data StreamBook = StreamBook
  { -- | The last number that was tried.
    streamTried :: Int,
    streamAdded :: IntSet,
    streamRefused :: IntSet,
    streamHandled :: IntSet
  }
  deriving stock (Eq, Show)

instance Semigroup StreamBook where
  StreamBook tried yes no seen <> StreamBook tried' yes' no' seen' = StreamBook (max tried tried') (yes <> yes') (no <> no') (seen <> seen')

instance Monoid StreamBook where
  mempty = StreamBook 0 mempty mempty mempty

-- | The number for the next entry.
nextEntry :: StreamBook -> (Int, StreamBook)
nextEntry book = let number = streamTried book + 1 in (number, book {streamTried = number})

-- | Adds the outcome of adding an entry.
added :: Int -> Outcome () -> StreamBook -> StreamBook
added number outcome book = case effectOf outcome of
  Done () -> book {streamAdded = IntSet.insert number (streamAdded book)}
  Doubt -> book
  _ -> book {streamRefused = IntSet.insert number (streamRefused book)}

-- | Notes that a worker's handler has returned.
handled :: Int -> StreamBook -> StreamBook
handled number book = book {streamHandled = IntSet.insert number (streamHandled book)}

-- | The entries that were acknowledged and that no worker has handled.
unhandled :: StreamBook -> IntSet
unhandled book = streamAdded book `IntSet.difference` streamHandled book

-- | The violations at the end, when the workers have had their time. Each acknowledged entry was
-- handled at least once; no entry was handled that was not added.
streamHolds :: ByteString -> StreamBook -> [String]
streamHolds name book =
  [complaint "never handled" lost | let lost = unhandled book, not (IntSet.null lost)]
    <> [complaint "handled, and refused" ghosts | let ghosts = IntSet.intersection (streamHandled book) (streamRefused book), not (IntSet.null ghosts)]
    <> [complaint "handled, and never added" more | let more = snd (IntSet.split (streamTried book) (streamHandled book)), not (IntSet.null more)]
  where
    complaint what numbers = Char8.unpack name <> ": " <> show (IntSet.size numbers) <> " entries " <> what <> ", the first " <> show (IntSet.findMin numbers)
