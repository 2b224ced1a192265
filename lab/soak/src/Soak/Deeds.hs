-- | The operations of a caller, on its own keys and on those that it shares.
module Soak.Deeds
  ( anything,
    handsOver,
    takesOver,
  )
where

import Control.Concurrent (threadDelay)
import Control.Exception (try)
import Control.Monad (forM_)
import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Data.IORef
import Data.IntSet qualified as IntSet
import Data.List.NonEmpty qualified as NonEmpty
import Data.Map.Strict qualified as Map
import GHC.Clock (getMonotonicTime)
import Redis
import Redis.Cache
import Redis.Commands qualified as Redis
import Redis.Transaction hiding (WatchResult (Abandoned))
import Redis.Value (Value (..))
import Soak.Audit
import Soak.Book
import Soak.Caller
import Soak.Lag
import Soak.Places

anything :: Caller -> IO ()
anything caller = do
  chance <- dice caller (1, 100)
  case () of
    _
      | chance <= 20 -> increments
      | chance <= 30 -> incrementsShared
      | chance <= 45 -> writes
      | chance <= 60 -> someKey >>= readsBack caller
      | chance <= 68 -> writesMany
      | chance <= 74 -> readsMany
      | chance <= 82 -> pipelines caller
      | chance <= 84 -> transacts caller
      | chance <= 87 -> transactsAtOnce
      | chance <= 89 -> watches
      | chance <= 90 -> asksEveryNode
      | chance <= 91 -> readsCached
      | chance <= 93 -> readsFar
      | chance <= 97 -> givesUpWaiting
      | otherwise -> isKilled
  where
    someKey = dice caller (0, keyCount - 1) >>= valueKey caller
    someKeys = do
      first <- dice caller (0, keyCount - 1)
      size <- dice caller (2, 8)
      mapM (\offset -> valueKey caller ((first + offset) `mod` keyCount)) [1 .. size]

    increments = do
      counter <- keyOf caller "c" <$> dice caller (0, counterCount - 1)
      outcome <- plainly caller (Redis.incr (keyName counter))
      note caller (Counted counter [outcome])

    incrementsShared = do
      counter <- sharedOf caller <$> dice caller (0, counterCount - 1)
      outcome <- plainly caller (Redis.incr (keyName counter))
      note caller (CountedShared counter (mapped (> 0) outcome))

    writes = do
      key <- someKey
      number <- nextWrite caller key
      outcome <- plainly caller (Redis.set (keyName key) (valueFor key number))
      note caller (Wrote key number outcome)

    writesMany = do
      keys <- someKeys
      numbers <- mapM (nextWrite caller) keys
      forM_ (NonEmpty.nonEmpty (zip keys numbers)) $ \numbered -> do
        outcome <- plainly caller (Redis.mset (fmap (\(key, number) -> (keyName key, valueFor key number)) numbered))
        forM_ numbered $ \(key, number) -> note caller (Wrote key number outcome)

    readsMany = do
      keys <- someKeys
      forM_ (NonEmpty.nonEmpty keys) $ \some ->
        plainly caller (Redis.mget (fmap keyName some)) >>= \case
          Answered values
            | length values == length keys -> forM_ (zip keys values) $ uncurry (sees caller)
            | otherwise -> note caller (Wrong ("MGET of " <> show (length keys) <> " keys answers with " <> show (length values)))
          _ -> pure ()

    readsFar = forM_ (placeFar (callerPlace caller)) $ \far -> do
      key <- someKey
      let patient = caller {callerSpeaker = (callerSpeaker caller) {speakerTimeout = commandTimeout True}}
      calling patient "GET from a replica" 0 (tryRun far (Redis.get (keyName key))) >>= \case
        Answered value -> note caller (ReadFar key value)
        _ -> pure ()

    -- From the cache or from the server. The value may lack the caller's last writes, but not those
    -- that were acknowledged before the allowed age.
    readsCached = do
      key <- someKey
      began <- getMonotonicTime
      lagBefore <- lagSoFar (callerLag caller)
      calling caller "GET from the cache" 0 (tryRunCached (clientOf caller) (seconds cacheAge) (Redis.get (keyName key))) >>= \case
        Answered value -> do
          note caller (ReadFar key value)
          lag <- subtract lagBefore <$> lagSoFar (callerLag caller)
          old <- lastAcknowledgedBefore caller key (began - cacheAge - lag - 0.1)
          book <- Map.findWithDefault mempty key . ledgerValues <$> readIORef (callerLedger caller)
          let number = value >>= numberIn key
              tooOld = any (\least -> maybe True (< least) number) old
          -- A write in doubt may have run after all others.
          case judge key book value of
            Stale _ | tooOld -> note caller (Wrong ("kept too long: " <> show value <> ", and write " <> show old <> " was acknowledged more than " <> show cacheAge <> " s before"))
            _ -> pure ()
        _ -> pure ()

    asksEveryNode = do
      token <- (\number -> callerName caller <> "?" <> Char8.pack (show number)) <$> dice caller (1, 1000000)
      calling caller "ECHO on every primary" 0 (tryRun (clientOf caller) (onEvery Primaries (Redis.echo token))) >>= \case
        Answered echoes
          | null echoes -> note caller (Wrong "no node was asked")
          | otherwise -> forM_ echoes (note caller . Echoed token)
        _ -> pure ()

    -- A counter and a key of one slot: both change, or neither.
    transactsAtOnce = do
      number <- dice caller (0, counterCount - 1)
      let counter = keyOf caller "c" number
      key <- valueKey caller number
      write' <- nextWrite caller key
      let both = (,) <$> queued (Redis.incr (keyName counter)) <*> queued (Redis.set (keyName key) (valueFor key write'))
      outcome <- calling caller "transaction" 0 (tryRunTransaction (clientOf caller) both)
      note caller (Counted counter [mapped fst outcome])
      note caller (Wrote key write' (mapped snd outcome))

    -- On the same counter as 'transacts', whose callers it competes with.
    watches = do
      counter <- watchedOf caller
      let name = keyName counter
          options = watchDefaults {watchAttempts = 2}
          -- Time to get a dedicated connection, to watch, to read and to run, twice.
          extra = 7 * speakerTimeout (callerSpeaker caller)
      outcome <- calling caller "watching" extra . try $
        watchingWith options (clientOf caller) (pure name) $ \connection -> do
          held <- runOn connection (Redis.get name)
          pure (Commit (queued (Redis.set name (Char8.pack (show (maybe 0 fst (held >>= Char8.readInt) + 1))))))
      note caller (CountedShared counter (mapped (== Committed ()) outcome))

    givesUpWaiting = do
      micros <- dice caller (1, 20000)
      counter <- keyOf caller "c" <$> dice caller (0, counterCount - 1)
      outcome <- givingUp caller micros (Redis.incr (keyName counter))
      note caller (Counted counter [outcome])

    isKilled = do
      micros <- dice caller (1, 3000)
      key <- someKey
      number <- nextWrite caller key
      outcome <- killed caller micros (Redis.set (keyName key) (valueFor key number))
      note caller (Wrote key number outcome)

-- | The largest allowed age of a cached value, in seconds.
cacheAge :: Double
cacheAge = 1

-- | Reads a key that the caller writes.
readsBack :: Caller -> Key -> IO ()
readsBack caller key =
  plainly caller (Redis.get (keyName key)) >>= \case
    Answered value -> sees caller key value
    _ -> pure ()

-- | Notes a value that was read. If it may come from a node that was just replaced, reads again
-- until it is certain.
sees :: Caller -> Key -> Maybe ByteString -> IO ()
sees caller key seen = do
  book <- Map.findWithDefault mempty key . ledgerValues <$> readIORef (callerLedger caller)
  note caller (Read key False seen)
  case judge key book seen of
    Stale _ -> again (20 :: Int)
    _ -> pure ()
  where
    again tries = do
      threadDelay 500000
      plainly caller (Redis.get (keyName key)) >>= \case
        Answered value -> do
          book <- Map.findWithDefault mempty key . ledgerValues <$> readIORef (callerLedger caller)
          case judge key book value of
            Stale _ | tries > 0 -> again (tries - 1)
            _ -> note caller (Read key True value)
        _ | tries > 0 -> again (tries - 1)
        _ -> pure ()

-- | Echoes, increments of one counter, writes, and reads of other keys, all under way at the same
-- time.
pipelines :: Caller -> IO ()
pipelines caller = do
  size <- dice caller (2, 6)
  counter <- keyOf caller "c" <$> dice caller (0, counterCount - 1)
  written <- mapM (valueKey caller) [0 .. size - 1]
  numbers <- mapM (nextWrite caller) written
  readKeys <- mapM (valueKey caller) [keyCount - size .. keyCount - 1]
  let tokens = [callerName caller <> "!" <> Char8.pack (show number) | number <- take size numbers]
      each token key number readKey =
        (,,,)
          <$> tryPipelined (Redis.echo token)
          <*> tryPipelined (Redis.incr (keyName counter))
          <*> tryPipelined (Redis.set (keyName key) (valueFor key number))
          <*> tryPipelined (Redis.get (keyName readKey))
      commands = sequenceA [each token key number readKey | (token, (key, number), readKey) <- zip3 tokens (zip written numbers) readKeys]
  -- It may have to open a connection to each node, one after the other.
  outcome <- calling caller "pipeline" 0 (tryRunPipeline (clientOf caller) commands)
  case outcome of
    Answered results -> do
      note caller (Counted counter [either Failed Answered counted | (_, counted, _, _) <- results])
      forM_ (zip (zip3 tokens (zip written numbers) readKeys) results) $ \((token, (key, number), readKey), (echoed, _, set, got)) -> do
        mapM_ (note caller . Echoed token) echoed
        note caller (Wrote key number (either Failed Answered set))
        mapM_ (sees caller readKey) got
    _ -> note caller (Wrong "a pipeline failed whose commands fail alone")

-- | Increments a shared counter by WATCH, GET, MULTI, SET and EXEC on a dedicated connection.
transacts :: Caller -> IO ()
transacts caller = do
  transactional <- watchedOf caller
  let name = keyName transactional
      timeouts = speakerTimeout (callerSpeaker caller)
  ended <- beginning caller "lend"
  result <- try $
    withDedicated (clientOf caller) (AtKey name) $ \connection -> do
      ended timeouts Nothing
      let step kind command = calling caller kind 0 (tryRunOn connection command)
      step "WATCH" (raw ["WATCH", name]) >>= \case
        Answered _ ->
          step "GET while watched" (Redis.get name) >>= \case
            Answered held -> do
              let next = maybe 0 fst (held >>= Char8.readInt) + 1
              begun <- step "MULTI" (raw ["MULTI"])
              inQueue <- step "SET in MULTI" (raw ["SET", name, Char8.pack (show next)])
              case (begun, inQueue) of
                (Answered _, Answered (SimpleString "QUEUED")) -> do
                  executed <- step "EXEC" (raw ["EXEC"])
                  note caller (CountedShared transactional (mapped happened executed))
                (Answered _, Answered other) -> note caller (Wrong ("SET in MULTI answers with " <> show other))
                _ -> pure ()
            _ -> pure ()
        _ -> pure ()
  either (ended timeouts . Just) pure result
  where
    happened = \case
      Array _ -> True
      _ -> False

-- | Pushes the next element of a list that another caller pops from.
handsOver :: Caller -> IO ()
handsOver caller = do
  number <- (+ 1) . maybe 0 pushes . Map.lookup list . ledgerLists <$> readIORef (callerLedger caller)
  outcome <- plainly caller (Redis.rpush (keyName list) (pure (valueFor list number)))
  note caller (Pushed list number (mapped (const ()) outcome))
  where
    list = listOf caller
    pushes ListBook {listPushed, listDoubts, listRefused} =
      maximum (0 : [fst greatest | Just greatest <- map IntSet.maxView [listPushed, listDoubts, listRefused]])

-- | Waits for an element, 300 ms on the server, and sometimes gives up.
takesOver :: Caller -> IO ()
takesOver caller = do
  chance <- dice caller (1, 20)
  let blpop = Redis.blpop (pure (keyName list)) (Just (milliseconds 300))
  outcome <-
    if chance == 1
      then dice caller (1, 400000) >>= \micros -> givingUp caller micros blpop
      else calling caller "BLPOP" 0.3 (tryRun (clientOf caller) blpop)
  note caller (Popped list outcome)
  where
    list = listOf caller

-- | The list of the pair, in a slot that keeps what it has acknowledged.
listOf :: Caller -> Key
listOf caller = keyOf caller "l" 0
