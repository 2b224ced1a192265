-- | One of several processes leads, and another does when it dies.
--
-- > withCandidate client (election "scheduler") {electionCandidate = "host 7"} $ \candidate -> do
-- >   term <- atomically (leadership candidate >>= maybe retry pure)
-- >   …
--
-- An election is a lock ("Redis.Patterns.Lock") that each candidate tries to hold for as long as it
-- can. A term is the lock's fencing token.
--
-- == What is promised
--
-- While one primary keeps its data, a candidate that believes to lead ('leadership' has a term) is the
-- only one: it stops believing it before its lease is over on the server, also when it cannot
-- reach the server. Terms of later leaders are greater. When a leader dies, another follows within
-- about a lease; when it resigns, within some 50 ms.
--
-- == What is not
--
-- That an old leader does nothing any more. What it had begun goes on, and a process that
-- stood still acts on what it believed before. So what a leader writes carries its term, to
-- where smaller ones are refused. Nor that there is a leader at every time.
--
-- == When a reply is lost
--
-- Whether a candidate was elected by a request whose reply is lost, the lock finds out
-- by asking again with the same word. Others stand for election against
-- themselves, and nobody leads for a lease.
module Redis.Patterns.Election
  ( Election (electionName, electionLease, electionCandidate),
    election,

    -- * Standing
    Candidate,
    withCandidate,
    leadership,
    Term (..),
    resign,
    whileLeading,

    -- * Looking
    currentLeader,
    Leader (..),
  )
where

import Control.Concurrent.Async (async, waitCatchSTM)
import Control.Concurrent.STM
import Control.Exception (SomeException, finally, throwIO, try)
import Control.Monad (void, when)
import Data.ByteString (ByteString)
import Data.Int (Int64)
import Redis
import Redis.Patterns.Internal.Time
import Redis.Patterns.Lock

-- | An election, and who stands for it. Made by 'election', and changed by its fields.
--
-- @since 0.1.0.0
data Election = Election
  { -- | Its name. Its keys are those of the lock @election:NAME@.
    electionName :: ByteString,
    -- | For how long nobody leads after a leader died, at most: 10 s unless said otherwise.
    electionLease :: Duration,
    -- | What 'currentLeader' tells of this candidate. Empty unless said otherwise.
    electionCandidate :: ByteString
  }
  deriving stock (Eq, Show)

-- | The election of this name.
--
-- @since 0.1.0.0
election :: ByteString -> Election
election name = Election {electionName = name, electionLease = seconds 10, electionCandidate = ""}

-- | A time for which one candidate leads. Later terms are greater.
--
-- @since 0.1.0.0
newtype Term = Term Int64
  deriving stock (Eq, Ord, Show)

-- | Somebody who stands for election.
--
-- @since 0.1.0.0
data Candidate = Candidate
  { candidateTerm :: TVar (Maybe (Term, Held)),
    -- | The term that was given up, if one was.
    candidateResigned :: TVar (Maybe Term)
  }

-- | Stands for election while the action runs, again and again: who has lost its
-- leadership, or resigned, stands again after a lease. When the action ends the leadership is given up,
-- which is waited for. A thread stands and renews. While the server
-- cannot be reached it goes on trying.
--
-- @since 0.1.0.0
withCandidate :: Client -> Election -> (Candidate -> IO a) -> IO a
withCandidate client which action = do
  candidate <- Candidate <$> newTVarIO Nothing <*> newTVarIO Nothing
  done <- newTVarIO False
  standing <- async (named "redis candidate" >> standFor client which candidate done)
  action candidate `finally` do
    atomically (writeTVar done True)
    -- The round that it is in ends in time: each is short.
    atomically (void (waitCatchSTM standing))

standFor :: Client -> Election -> Candidate -> TVar Bool -> IO ()
standFor client Election {electionName, electionLease, electionCandidate} Candidate {candidateTerm, candidateResigned} done = round'
  where
    seat = (lock ("election:" <> electionName)) {lockLease = electionLease, lockPatience = Just mempty, lockOwner = electionCandidate}
    over = readTVar done >>= check
    round' = do
      led <- try (withLock client seat serve)
      rest <- case led of
        Right (Just ()) -> pure electionLease
        Right Nothing -> jittered (milliseconds 50)
        Left (_ :: Error) -> jittered (milliseconds 50)
      ended <- waitFor rest over
      maybe round' pure ended
    serve hold = do
      let term = Term (lockFence hold)
      atomically (writeTVar candidateTerm (Just (term, holdLease hold)))
      atomically (awaitLost (holdLease hold) `orElse` over `orElse` (readTVar candidateResigned >>= check . (== Just term)))
        `finally` atomically (writeTVar candidateTerm Nothing)

-- | The term for which the candidate leads, if it does. 'retry' waits for a change.
--
-- It is nothing as soon as the leadership may be lost. As exact as the thread that looks
-- after it is punctual; 'whileLeading' looks at the clock, too.
--
-- @since 0.1.0.0
leadership :: Candidate -> STM (Maybe Term)
leadership Candidate {candidateTerm} = fmap fst <$> readTVar candidateTerm

-- | Gives the leadership up, and does not stand again for a lease, so that another can
-- follow. Does not wait for the server. Nothing happens if the candidate does not lead.
--
-- @since 0.1.0.0
resign :: Candidate -> IO ()
resign candidate@Candidate {candidateResigned} = atomically $ leadership candidate >>= mapM_ (writeTVar candidateResigned . Just)

-- | Waits for leadership and runs the action for each term. The action is given its term and a
-- question, whether it still leads at this moment; it is not interrupted, and should return soon
-- after the answer is no. When it returns while it leads, the leadership is given up. Does not
-- return by itself; an exception of the action ends it.
--
-- @since 0.1.0.0
whileLeading :: Candidate -> (Term -> IO Bool -> IO ()) -> IO a
whileLeading candidate@Candidate {candidateTerm} action = do
  (term, held) <- atomically (readTVar candidateTerm >>= maybe retry pure)
  ended <- try (action term (stillHeld held))
  leading <- (== Just term) <$> atomically (leadership candidate)
  when leading (resign candidate)
  either (throwIO :: SomeException -> IO a) pure ended
  atomically (leadership candidate >>= check . (/= Just term))
  whileLeading candidate action

-- | Who leads.
--
-- @since 0.1.0.0
data Leader = Leader
  { -- | What it has said of itself, 'electionCandidate'.
    leaderCandidate :: ByteString,
    leaderTerm :: Term
  }
  deriving stock (Eq, Show)

-- | Who leads, as the server knows it. One round trip. It may have changed when it is
-- read.
--
-- @since 0.1.0.0
currentLeader :: Election -> Command (Maybe Leader)
currentLeader Election {electionName} = fmap leader <$> lockHolder ("election:" <> electionName)
  where
    leader Holder {holderOwner, holderFence} = Leader {leaderCandidate = holderOwner, leaderTerm = Term holderFence}
