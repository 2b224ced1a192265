-- | An election of a leader: one of several processes leads, and if it dies, another takes over.
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
-- While one primary keeps its data, at most one candidate believes that it leads ('leadership'
-- returns a term): a leader stops believing it before its lease is over on the server, also when it
-- cannot reach the server. Terms of later leaders are greater. If a leader dies, another takes over
-- after about a lease; if it resigns, after about 50 ms.
--
-- == What is not promised
--
-- That a former leader stops working. Work that it has begun continues, and a process that stood
-- still acts on what it believed before. So everything that a leader writes should carry its term,
-- to a resource that refuses smaller terms. Nor that there is a leader at every moment.
--
-- == When a reply is lost
--
-- The lock finds out whether the candidate was elected by asking again with the same token. Other
-- implementations make the candidate stand against itself, and there is no leader for a lease.
module Redis.Patterns.Election
  ( Election (electionName, electionLease, electionCandidate),
    election,

    -- * Candidates
    Candidate,
    withCandidate,
    leadership,
    Term (..),
    resign,
    whileLeading,

    -- * Inspection
    currentLeader,
    Leader (..),
  )
where

import Control.Concurrent.Async (asyncWithUnmask, waitCatchSTM)
import Control.Concurrent.STM
import Control.Exception (SomeException, bracket, finally, throwIO, try)
import Control.Monad (void, when)
import Data.ByteString (ByteString)
import Data.Int (Int64)
import Redis
import Redis.Patterns.Internal.Time
import Redis.Patterns.Lock

-- | An election's name and settings, with the candidate's own name. Made by 'election', and changed
-- by its fields.
data Election = Election
  { -- | The name. The keys are those of the lock @election:NAME@.
    electionName :: ByteString,
    -- | The lease: how long there is no leader after a leader died, at most. Default: 10 s.
    electionLease :: Duration,
    -- | What 'currentLeader' reports about this candidate. Default: empty.
    electionCandidate :: ByteString
  }
  deriving stock (Eq, Show)

-- | The election of this name, with the default settings.
election :: ByteString -> Election
election name = Election {electionName = name, electionLease = seconds 10, electionCandidate = ""}

-- | A period in which one candidate leads. Later terms are greater.
newtype Term = Term Int64
  deriving stock (Eq, Ord, Show)

-- | A candidate of an election.
data Candidate = Candidate
  { candidateTerm :: TVar (Maybe (Term, Lease)),
    -- | The last term that the candidate gave up, if it did.
    candidateResigned :: TVar (Maybe Term)
  }

-- | Stands for election while the action runs, again and again: after it lost the leadership, or
-- resigned, the candidate waits for one lease and then stands again. When the action ends, this
-- gives up the leadership and waits until that is done: if the server is silent, for the rest of the
-- lease. A thread stands for election and renews the lease; while the server cannot be reached, it
-- keeps trying.
withCandidate :: Client -> Election -> (Candidate -> IO a) -> IO a
withCandidate client which action = do
  candidate <- Candidate <$> newTVarIO Nothing <*> newTVarIO Nothing
  done <- newTVarIO False
  let begin = asyncWithUnmask (\unmask -> named "redis candidate" >> unmask (standFor client which candidate done))
      end standing = do
        atomically (writeTVar done True)
        -- The thread's current round ends soon: each round is short.
        atomically (void (waitCatchSTM standing))
  bracket begin end (const (action candidate))

standFor :: Client -> Election -> Candidate -> TVar Bool -> IO ()
standFor client Election {electionName, electionLease, electionCandidate} Candidate {candidateTerm, candidateResigned} done = round'
  where
    seat = (lock ("election:" <> electionName)) {lockLease = electionLease, lockTimeout = Just mempty, lockOwner = electionCandidate}
    over = readTVar done >>= check
    round' = do
      led <- try (withLock client seat serve)
      rest <- case led :: Either Error (Maybe ()) of
        Right (Just ()) -> pure electionLease
        _ -> jittered (milliseconds 50)
      ended <- waitFor rest over
      maybe round' pure ended
    serve hold = do
      let term = Term (lockFence hold)
      atomically (writeTVar candidateTerm (Just (term, grantLease hold)))
      atomically (awaitLeaseLost (grantLease hold) `orElse` over `orElse` (readTVar candidateResigned >>= check . (== Just term)))
        `finally` atomically (writeTVar candidateTerm Nothing)

-- | The term for which the candidate leads, if it does. 'retry' waits for a change.
--
-- It becomes 'Nothing' as soon as the leadership may be lost, or as soon after that as the thread
-- that watches the lease gets to run: if the machine was suspended, after up to a third of a lease.
-- 'whileLeading' also compares with the clock.
leadership :: Candidate -> STM (Maybe Term)
leadership Candidate {candidateTerm} = fmap fst <$> readTVar candidateTerm

-- | Gives up the leadership, and does not stand again for one lease, so that another candidate can
-- take over. Does not wait for the server. Does nothing if the candidate does not lead.
resign :: Candidate -> IO ()
resign candidate@Candidate {candidateResigned} = atomically $ leadership candidate >>= mapM_ (writeTVar candidateResigned . Just)

-- | Waits for leadership, and runs the action once for each term. The action gets its term and an
-- 'IO' action that returns whether the candidate still leads at this moment. The action is not
-- interrupted, and should return soon after that is 'False'. If it returns while the candidate
-- leads, the leadership is given up. 'whileLeading' does not return; an exception of the action
-- ends it.
whileLeading :: Candidate -> (Term -> IO Bool -> IO ()) -> IO a
whileLeading candidate@Candidate {candidateTerm} action = do
  (term, held) <- atomically (readTVar candidateTerm >>= maybe retry pure)
  ended <- try (action term (isHeld held))
  leading <- (== Just term) <$> atomically (leadership candidate)
  when leading (resign candidate)
  either (throwIO :: SomeException -> IO a) pure ended
  atomically (leadership candidate >>= check . (/= Just term))
  whileLeading candidate action

-- | The leader of an election.
data Leader = Leader
  { -- | The leader's 'electionCandidate'.
    leaderCandidate :: ByteString,
    leaderTerm :: Term
  }
  deriving stock (Eq, Show)

-- | Looks up the leader that the server knows, if there is one. One round trip. The leader may have
-- changed by the time the caller reads the result.
currentLeader :: Election -> Command (Maybe Leader)
currentLeader Election {electionName} = fmap leader <$> lockHolder ("election:" <> electionName)
  where
    leader LockHolder {holderOwner, holderFence} = Leader {leaderCandidate = holderOwner, leaderTerm = Term holderFence}
