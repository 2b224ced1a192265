-- | The lending of a node's dedicated connections, as a pure step function.
--
-- A caller that asks for a connection gets a turn: an idle connection, or permission to open one
-- while there are fewer than the limit. Otherwise it waits. Turns are given in the order in which
-- callers asked: a connection that comes back goes to the first caller, and the others go on
-- waiting. A caller that stops waiting gives up its place. If its turn has come already, it passes
-- the turn on.
--
-- So while a caller waits, no connection is idle: all are lent or are being opened.
--
-- The driver ("Redis.Internal.Network.Dedicated") chooses the types of callers and connections.
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

-- | The state of the lending.
data Lending caller connection = Lending
  { lendingLimit :: Int,
    -- | Idle connections, each with the time since which it is idle, the most recently used first.
    lendingIdle :: [(Nanos, connection)],
    lendingLent :: Set connection,
    -- | The number of callers that are opening a connection.
    lendingOpening :: Int,
    -- | Waiting callers, in the order in which they asked.
    lendingQueue :: Seq caller,
    lendingClosed :: Bool
  }
  deriving stock (Eq, Ord, Show)

-- | A state without connections. The argument is the largest number of connections.
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

-- | An event.
data Event caller connection
  = -- | A caller wants a connection.
    Asked caller
  | -- | A waiting caller does not want a connection any more.
    GaveUp caller
  | -- | A caller with permission to open a connection has opened this one.
    Opened connection
  | -- | A caller with permission to open a connection has not opened one.
    NotOpened
  | -- | A connection came back as it was lent, at this time.
    GaveBack Nanos connection
  | -- | A lent connection cannot be used any more.
    Lost connection
  | -- | Like 'Lost', and its caller has permission to open another connection: 'Opened' or
    -- 'NotOpened' follows.
    Replacing connection
  | -- | Connections that became idle before this time are to be closed.
    IdleSince Nanos
  | -- | All idle connections are to be closed.
    IdleUseless
  | -- | No more connections are lent.
    Closed
  deriving stock (Eq, Show)

-- | A caller's turn.
data Turn connection
  = -- | The caller gets this connection.
    Use connection
  | -- | Permission to open a connection: 'Opened' or 'NotOpened' follows.
    Open
  | -- | No connection: no more are lent.
    NoMore
  deriving stock (Eq, Ord, Show)

-- | An action for the driver.
data Action caller connection
  = Give caller (Turn connection)
  | -- | Close a connection that nobody has any more.
    Close connection
  deriving stock (Eq, Show)

-- | Takes one step. \(O(\log n)\) in the connections; linear in the waiting callers for 'GaveUp',
-- in the idle connections for 'IdleSince' and 'IdleUseless', and in both for 'Closed'.
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

    -- There is room for one more connection.
    offer given = case Seq.viewl (lendingQueue given) of
      caller :< queue -> open caller given {lendingQueue = queue}
      EmptyL -> (given, [])

    dropping useless =
      let (gone, kept) = List.partition useless (lendingIdle state)
       in (state {lendingIdle = kept}, map (Close . snd) gone)

-- | The numbers of connections and of waiting callers.
data Counts = Counts
  { countLent :: Int,
    countIdle :: Int,
    countOpening :: Int,
    countWaiting :: Int
  }
  deriving stock (Eq, Show)

-- | Counts connections and waiting callers. \(O(n)\) in the idle connections.
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

-- | The waiting callers, in the order in which they asked. \(O(n)\).
waiting :: Lending caller connection -> [caller]
waiting = toList . lendingQueue

-- | When the longest idle connection became idle. \(O(n)\) in the idle connections.
longestIdle :: Lending caller connection -> Maybe Nanos
longestIdle state = case lendingIdle state of
  [] -> Nothing
  idle -> Just (minimum (map fst idle))

-- | Whether no more connections are lent.
isClosed :: Lending caller connection -> Bool
isClosed = lendingClosed
