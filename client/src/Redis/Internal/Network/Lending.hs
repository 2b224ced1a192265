-- | Who has which of a node's dedicated connections, as a step function.
--
-- A caller asks for a connection and gets a turn: one that lies idle, or leave to
-- open one while there are fewer than the limit. Otherwise it waits, and turns
-- are given in the order in which callers came: whoever gives a connection back
-- hands it to the first, not to all. A caller that leaves gives up its place; one
-- whose turn had come already hands it on.
--
-- So while anybody waits, nothing lies idle and all connections are in hands.
--
-- Callers and connections are what the driver takes for them
-- ("Redis.Internal.Network.Dedicated").
module Redis.Internal.Network.Lending
  ( Lending,
    newLending,
    Event (..),
    Turn (..),
    Action (..),
    step,

    -- * Looking
    Counts (..),
    counts,
    lentOut,
    waiting,
    longestIdle,
    isClosed,
  )
where

import Data.Foldable (toList)
import Data.List qualified as List
import Data.Sequence (Seq, ViewL (EmptyL, (:<)), (|>))
import Data.Sequence qualified as Seq
import Data.Set (Set)
import Data.Set qualified as Set
import Redis.Internal.Network.Clock (Nanos)

-- | The state, given the types of callers and of connections.
data Lending caller connection = Lending
  { lendingLimit :: Int,
    -- | Since when each lies idle, the most recently used first.
    lendingIdle :: [(Nanos, connection)],
    lendingLent :: Set connection,
    -- | How many callers are opening one.
    lendingOpening :: Int,
    -- | Who came first is first.
    lendingQueue :: Seq caller,
    lendingClosed :: Bool
  }
  deriving stock (Eq, Ord, Show)

-- | Nothing is open, and at most so many connections ever are.
newLending :: Int -> Lending caller connection
newLending limit =
  Lending
    { lendingLimit = limit,
      lendingIdle = [],
      lendingLent = Set.empty,
      lendingOpening = 0,
      lendingQueue = Seq.empty,
      lendingClosed = False
    }

-- | What happens.
data Event caller connection
  = -- | A caller wants a connection.
    Asked caller
  | -- | One that waits does not want it any more.
    GaveUp caller
  | -- | Who had leave to open one has one now.
    Opened connection
  | -- | Who had leave to open one has none.
    NotOpened
  | -- | A connection is as it was, at this time.
    GaveBack Nanos connection
  | -- | A connection is no use any more.
    Lost connection
  | -- | The same, and who has it has leave to open another: 'Opened' or 'NotOpened'
    -- follows.
    Replacing connection
  | -- | Those that lie idle since before this time may go.
    IdleSince Nanos
  | -- | All that lie idle may go.
    IdleUseless
  | -- | Nobody gets one any more.
    Closed
  deriving stock (Eq, Show)

-- | What a caller gets.
data Turn connection
  = -- | This connection.
    Use connection
  | -- | Leave to open one: 'Opened' or 'NotOpened' follows.
    Open
  | -- | Nothing: no more are lent.
    NoMore
  deriving stock (Eq, Ord, Show)

-- | What is to be done.
data Action caller connection
  = Give caller (Turn connection)
  | -- | Nobody has it any more.
    Close connection
  deriving stock (Eq, Show)

-- | One step. \(O(\log n)\) in the connections; for 'GaveUp' linear in those who
-- wait, and for what goes through the idle ones in their number.
step :: (Eq caller, Ord connection) => Event caller connection -> Lending caller connection -> (Lending caller connection, [Action caller connection])
step event state = case event of
  Asked caller
    | lendingClosed state -> (state, [Give caller NoMore])
    | (_, connection) : idle <- lendingIdle state -> use caller connection state {lendingIdle = idle}
    | inHands < lendingLimit state -> open caller state
    | otherwise -> (state {lendingQueue = lendingQueue state |> caller}, [])
  GaveUp caller -> (state {lendingQueue = Seq.filter (/= caller) (lendingQueue state)}, [])
  Opened connection
    | lendingClosed state -> (opened, [Close connection])
    | otherwise -> (lend connection opened, [])
  NotOpened -> offer opened
  GaveBack now connection
    | lendingClosed state -> (back, [Close connection])
    | caller :< queue <- Seq.viewl (lendingQueue state) -> use caller connection back {lendingQueue = queue}
    | otherwise -> (back {lendingIdle = (now, connection) : lendingIdle state}, [])
    where
      back = without connection
  Lost connection -> (Close connection :) <$> offer (without connection)
  Replacing connection -> ((without connection) {lendingOpening = lendingOpening state + 1}, [Close connection])
  IdleSince before -> dropping ((< before) . fst)
  IdleUseless -> dropping (const True)
  Closed ->
    ( state {lendingIdle = [], lendingQueue = Seq.empty, lendingClosed = True},
      [Give caller NoMore | caller <- toList (lendingQueue state)] <> map (Close . snd) (lendingIdle state)
    )
  where
    inHands = lendingOpening state + Set.size (lendingLent state)
    opened = state {lendingOpening = lendingOpening state - 1}
    without connection = state {lendingLent = Set.delete connection (lendingLent state)}
    lend connection given = given {lendingLent = Set.insert connection (lendingLent given)}
    use caller connection given = (lend connection given, [Give caller (Use connection)])
    open caller given = (given {lendingOpening = lendingOpening given + 1}, [Give caller Open])

    -- There is room for one more.
    offer given = case Seq.viewl (lendingQueue given) of
      caller :< queue -> open caller given {lendingQueue = queue}
      EmptyL -> (given, [])

    dropping useless =
      let (gone, kept) = List.partition useless (lendingIdle state)
       in (state {lendingIdle = kept}, map (Close . snd) gone)

-- | How many connections there are.
data Counts = Counts
  { countLent :: Int,
    countIdle :: Int,
    countOpening :: Int,
    countWaiting :: Int
  }
  deriving stock (Eq, Show)

-- | \(O(n)\) in the idle ones.
counts :: Lending caller connection -> Counts
counts state =
  Counts
    { countLent = Set.size (lendingLent state),
      countIdle = length (lendingIdle state),
      countOpening = lendingOpening state,
      countWaiting = Seq.length (lendingQueue state)
    }

-- | The connections that callers have. \(O(n)\).
lentOut :: Lending caller connection -> [connection]
lentOut = Set.toList . lendingLent

-- | The callers that wait, the first of them first. \(O(n)\).
waiting :: Lending caller connection -> [caller]
waiting = toList . lendingQueue

-- | Since when the one that has been idle longest is. \(O(n)\) in the idle ones.
longestIdle :: Lending caller connection -> Maybe Nanos
longestIdle state = case lendingIdle state of
  [] -> Nothing
  idle -> Just (minimum (map fst idle))

-- | Whether no more are lent.
isClosed :: Lending caller connection -> Bool
isClosed = lendingClosed
