-- | A worker's requests to the server: each is one command, or several at once.
module Redis.Patterns.Worker.Group
  ( Place,
    placeClient,
    placeSettings,
    placeConsumer,
    newPlace,
    ensureGroup,
    takeNext,
    Taken (..),
    awaitNext,
    lookAtPending,
    takeOver,
    sayInHand,
    acknowledge,
    rest,
    handBack,
    readEntry,
    bury,
    Letter (..),
    sweep,
    isGroupLost,
    isLasting,
    isPassing,
  )
where

import Control.Exception (throwIO)
import Control.Monad (void, when)
import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Data.Either (partitionEithers)
import Data.IORef (IORef, newIORef, readIORef, writeIORef)
import Data.Int (Int64)
import Data.List.NonEmpty qualified as NonEmpty
import Data.Maybe (listToMaybe)
import Redis
import Redis.Commands (StreamEntry (..), StreamId (..))
import Redis.Commands qualified as Redis
import Redis.Decode qualified as Decode
import Redis.Duration (inMilliseconds)
import Redis.Patterns.Internal.Token (number)
import Redis.Patterns.Worker.Pending (letterFields, resting)
import Redis.Patterns.Worker.Settings
import Redis.Script
import Redis.Transaction

-- | A worker, as a consumer of its group.
data Place = Place
  { placeClient :: Client,
    placeSettings :: Worker,
    placeConsumer :: ByteString,
    placeDeletion :: IORef Deletion
  }

-- | What becomes of an entry that is acknowledged.
data Deletion
  = Kept
  | -- | XDEL deletes it, whatever other groups need.
    DeletedBeside
  | -- | XACKDEL does both, and deletes it once all groups of the stream have acknowledged it.
    DeletedWithin

-- | A worker with this name as a consumer.
newPlace :: Client -> Worker -> ByteString -> IO Place
newPlace client settings name = Place client settings name <$> newIORef (if workerDelete settings then DeletedBeside else Kept)

group :: Place -> ByteString
group = workerGroup . placeSettings

consumer :: Place -> Redis.Consumer
consumer place = Redis.Consumer (group place) (placeConsumer place)

-- | Creates the group in each stream, and the streams, if they do not exist; and asks how their server
-- deletes entries, if the worker does that.
ensureGroup :: Place -> IO ()
ensureGroup place = do
  mapM_ one (workerStreams (placeSettings place))
  when (workerDelete (placeSettings place)) (learnDeletion place)
  where
    one stream =
      tryRun (placeClient place) (idempotent (create stream)) >>= \case
        Left (ReplyError ServerError {serverErrorCode = "BUSYGROUP"}) -> pure ()
        other -> either throwIO pure other
    create stream = Redis.xgroupCreateWith making stream (group place) (workerFrom (placeSettings place))
    making = Redis.xgroupCreateDefaults {Redis.xgroupCreateMkstream = True}

-- | Tries XACKDEL with an id that no entry has. So the server of the streams answers, not any node of the
-- cluster, and a user without the right to the command is no worse off than on a server without it.
learnDeletion :: Place -> IO ()
learnDeletion place@Place {placeClient, placeSettings = Worker {workerStreams = stream :| _}, placeDeletion} =
  tryRun placeClient (acknowledgeAndDelete place stream (StreamId 0 0)) >>= \case
    Left failed | isPassing failed -> throwIO failed
    answer -> writeIORef placeDeletion (either (const DeletedBeside) (const DeletedWithin) answer)

acknowledgeAndDelete :: Place -> ByteString -> StreamId -> Command [Redis.EntryDeletion]
acknowledgeAndDelete place stream entry = idempotent (Redis.xackdel stream (group place) Redis.OnlyAcknowledged (entry :| []))

-- | The answer to a request for entries. What was taken must be handled, also if the request then
-- failed for another stream or entry: the server counts it as delivered.
data Taken
  = Taken [Entry] (Maybe Error)
  | -- | Nothing; how far the group has read each stream.
    NothingBeyond (NonEmpty (ByteString, StreamId))
  | NothingYet

-- | Takes at most this many new entries, those of earlier streams first. With one stream it waits
-- for entries. With several it does not: a blocking read has a limit for each stream, not for all
-- together.
takeNext :: Place -> Duration -> Int -> IO Taken
takeNext place limit count = case workerStreams (placeSettings place) of
  stream :| [] -> do
    got <- run (placeClient place) (Redis.xreadgroupWith options (consumer place) (stream :| []))
    pure $ case [fresh name found | (name, entries) <- got, found <- entries] of
      [] -> NothingYet
      entries -> Taken entries Nothing
  streams -> run (placeClient place) (evalScript takeScript (NonEmpty.toList streams) words' `decodedBy` taken streams)
  where
    words' = [group place, placeConsumer place, number count]
    options =
      Redis.xreadgroupDefaults
        { Redis.xreadgroupCount = Just (fromIntegral count),
          Redis.xreadgroupBlock = if limit > mempty then Redis.WaitFor limit else Redis.DoNotWait
        }

taken :: NonEmpty ByteString -> Decode.Decoder Taken
taken streams reply = do
  (lists, ends, failure) <- Decode.triple (Decode.list (Decode.list entry)) (Decode.list streamId) (Decode.nullable Decode.bytes) reply
  pure $ case ([fresh name found | (name, entries) <- zip (NonEmpty.toList streams) lists, found <- entries], failure) of
    ([], Nothing) -> maybe NothingYet NothingBeyond (NonEmpty.nonEmpty (zip (NonEmpty.toList streams) ends))
    (entries, _) -> Taken entries (ReplyError . serverErrorFromText <$> failure)
  where
    entry = fmap (uncurry StreamEntry) . Decode.pair streamId (Decode.pairs Decode.bytes Decode.bytes)
    streamId found = do
      word <- Decode.bytes found
      let (one, other) = Char8.break (== '-') word
      case (Char8.readInteger one, Char8.readInteger (Char8.drop 1 other)) of
        (Just (time, ""), Just (count, "")) -> Right (StreamId (fromInteger time) (fromInteger count))
        _ -> Decode.mismatch "the id of an entry" found

fresh :: ByteString -> StreamEntry -> Entry
fresh stream StreamEntry {streamEntryId, streamEntryFields} =
  Entry {entryStream = stream, entryId = streamEntryId, entryFields = streamEntryFields, entryDeliveries = 1}

-- A stream may have lost its group, or be no stream. That must not raise an error: what was read
-- from the others is delivered, and only the reply tells the worker of it.
takeScript :: Script
takeScript =
  script
    "local left, got, ends, failure = tonumber(ARGV[3]), {}, {}, false\n\
    \local total = left\n\
    \for i = 1, #KEYS do\n\
    \  got[i] = {}\n\
    \  if left > 0 then\n\
    \    local found = redis.pcall('XREADGROUP', 'GROUP', ARGV[1], ARGV[2], 'COUNT', left, 'STREAMS', KEYS[i], '>')\n\
    \    if found and found.err then failure = failure or found.err\n\
    \    elseif found then got[i] = found[1][2]; left = left - #got[i] end\n\
    \  end\n\
    \end\n\
    \if left < total or failure then return {got, ends, failure} end\n\
    \for i = 1, #KEYS do\n\
    \  for _, one in ipairs(redis.call('XINFO', 'GROUPS', KEYS[i])) do\n\
    \    local at = {}\n\
    \    for f = 1, #one, 2 do at[one[f]] = one[f + 1] end\n\
    \    if at['name'] == ARGV[1] then ends[i] = at['last-delivered-id'] end\n\
    \  end\n\
    \end\n\
    \return {got, ends, failure}"

-- | Waits until there is a new entry in one of the streams. Takes nothing.
awaitNext :: Place -> Duration -> NonEmpty (ByteString, StreamId) -> IO ()
awaitNext place limit ends = void (run (placeClient place) (Redis.xreadWith options (fmap (fmap Redis.ReadAfter) ends)))
  where
    options = Redis.xreadDefaults {Redis.xreadCount = Just 1, Redis.xreadBlock = Redis.WaitFor limit}

-- | The pending entries that nobody has touched for this long, of each of these streams at most so many
-- from there on. One round trip. At the primary: a replica that has lost it does not know the group, or
-- what others have taken.
lookAtPending :: Traversable t => Place -> Duration -> Int64 -> t (ByteString, Redis.StreamBound) -> IO (t [Redis.PendingEntry])
lookAtPending place idle count = runPipeline (placeClient place) . traverse (pipelined . one)
  where
    one (stream, start) = readFrom ReadPrimary (Redis.xpendingRangeWith (from start) stream (group place) count)
    from start = Redis.xpendingRangeDefaults {Redis.xpendingRangeIdle = Just idle, Redis.xpendingRangeStart = start}

-- | Takes over these entries, each only if nobody has touched it for its time. Returns the entries
-- that were taken over, with their fields, and the first error of the others.
takeOver :: Place -> ByteString -> [(Redis.PendingEntry, Duration)] -> IO ([Entry], Maybe Error)
takeOver place stream wanted = do
  (failures, entries) <- partitionEithers <$> runPipeline (placeClient place) (traverse one wanted)
  pure (concat entries, listToMaybe failures)
  where
    one (Redis.PendingEntry {Redis.pendingEntryId, Redis.pendingEntryDeliveries}, idle) =
      fmap (map (again pendingEntryDeliveries)) <$> tryPipelined (Redis.xclaim stream (consumer place) idle (pendingEntryId :| []))
    again deliveries entry = (fresh stream entry) {entryDeliveries = deliveries + 1}

-- | Reports to the server that these entries are still in hand, as far as no other worker has taken them over.
sayInHand :: Place -> ByteString -> NonEmpty StreamId -> IO ()
sayInHand place stream ids = run (placeClient place) (claimOwn place stream (placeConsumer place) [] ids)

-- | Gives entries to a consumer, with options of XCLAIM; but none that this worker does not have any more. One script looks and gives: a
-- worker that was frozen does not know who has its entries now.
claimOwn :: Place -> ByteString -> ByteString -> [ByteString] -> NonEmpty StreamId -> Command ()
claimOwn place stream owner options ids =
  idempotent (evalScript claimScript [stream] ([group place, placeConsumer place, owner, number (length options)] <> options <> map idWord (NonEmpty.toList ids)) `decodedBy` Decode.ignored)

claimScript :: Script
claimScript =
  script
    "local first = 5 + ARGV[4]\n\
    \for at = first, #ARGV do\n\
    \  if #redis.call('XPENDING', KEYS[1], ARGV[1], ARGV[at], ARGV[at], 1, ARGV[2]) > 0 then\n\
    \    redis.call('XCLAIM', KEYS[1], ARGV[1], ARGV[3], 0, ARGV[at], 'JUSTID', unpack(ARGV, 5, first - 1))\n\
    \  end\n\
    \end\n\
    \return 1"

idWord :: StreamId -> ByteString
idWord entry = number (streamIdMilliseconds entry) <> "-" <> number (streamIdSequence entry)

-- | Acknowledges an entry.
acknowledge :: Place -> Entry -> IO ()
acknowledge place@Place {placeClient, placeDeletion} Entry {entryStream, entryId} =
  readIORef placeDeletion >>= \case
    Kept -> void (run placeClient ack)
    DeletedWithin -> void (run placeClient (acknowledgeAndDelete place entryStream entryId))
    DeletedBeside -> void (runTransaction placeClient ((,) <$> queued ack <*> queued (Redis.xdel entryStream (entryId :| []))))
  where
    ack = idempotent (Redis.xack entryStream (group place) (entryId :| []))

-- | Gives an entry to the consumer of resting entries, so that no worker has it until its rest is
-- over.
rest :: Place -> Entry -> IO ()
rest place Entry {entryStream, entryId} =
  run (placeClient place) (claimOwn place entryStream resting [] (entryId :| []))

-- | Hands back an entry whose handler was interrupted: others may take it at once, and this
-- delivery does not count.
handBack :: Place -> Entry -> IO ()
handBack place Entry {entryStream, entryId, entryDeliveries} =
  run (placeClient place) (timeLimit (seconds 1) (claimOwn place entryStream (placeConsumer place) options (entryId :| [])))
  where
    options = ["IDLE", number (inMilliseconds (workerClaimAfter (placeSettings place))), "RETRYCOUNT", number (entryDeliveries - 1)]

-- | The fields of an entry, if it is still in the stream. At the primary: what a replica does not have
-- yet would be lost.
readEntry :: Place -> ByteString -> StreamId -> IO (Maybe [(ByteString, ByteString)])
readEntry place stream entry =
  fmap streamEntryFields . listToMaybe <$> run (placeClient place) (readFrom ReadPrimary (Redis.xrange stream (Redis.IncludingId entry) (Redis.IncludingId entry)))

-- | An entry that becomes a dead letter, with the reason.
data Letter = Letter
  { letterEntry :: Entry,
    letterReason :: ByteString,
    -- | The letter is made only if nobody has touched the entry for this long.
    letterIdle :: Duration
  }

-- | Makes a dead letter of an entry, in one step; returns whether this worker did it. A second run
-- changes nothing. It finds the letter of the first and returns the same, unless a hundred letters
-- were added in between. If the server refuses the letter, the entry stays pending.
--
-- A script cannot give more than some 8000 words to one command. So the worker sends the letter
-- itself, and a script after it, in the same transaction, decides whether it stays.
bury :: Place -> Letter -> IO Bool
bury place@Place {placeClient, placeSettings, placeConsumer, placeDeletion} Letter {letterEntry, letterReason, letterIdle} = do
  letter <- either throwIO pure (letterFields facts (entryFields letterEntry))
  deletion <- readIORef placeDeletion
  snd <$> runTransaction placeClient ((,) <$> queued (idempotent (Redis.xadd dead letter)) <*> queued (idempotent (settle deletion)))
  where
    Entry {entryStream, entryId, entryDeliveries} = letterEntry
    dead = deadLettersOf placeSettings entryStream
    facts =
      ("dead:reason", letterReason)
        :| [ ("dead:deliveries", Char8.pack (show entryDeliveries)),
             ("dead:stream", entryStream),
             ("dead:group", group place),
             ("dead:id", idWord entryId),
             ("dead:worker", placeConsumer)
           ]
    settle deletion = evalScript buryScript [entryStream, dead] (arguments deletion <> concat [[name, content] | (name, content) <- NonEmpty.toList facts]) `decodedBy` Decode.boolean
    arguments deletion =
      [ group place,
        idWord entryId,
        maybe "" number (workerDeadLimit placeSettings),
        case deletion of
          Kept -> ""
          DeletedBeside -> "XDEL"
          DeletedWithin -> "XACKDEL",
        number (inMilliseconds letterIdle)
      ]

-- If the newest letter is not this one, it was refused, and XADD has said why. A script that fails
-- keeps what it has done, so the acknowledgement comes last.
buryScript :: Script
buryScript =
  script
    "local function isThis(letter)\n\
    \  local before = letter and #letter[2] - (#ARGV - 5)\n\
    \  for at = 6, #ARGV do\n\
    \    if not before or letter[2][before + at - 5] ~= ARGV[at] then return false end\n\
    \  end\n\
    \  return true\n\
    \end\n\
    \local newest = redis.call('XREVRANGE', KEYS[2], '+', '-', 'COUNT', 1)[1]\n\
    \if not isThis(newest) then return 0 end\n\
    \local pending = redis.pcall('XPENDING', KEYS[1], ARGV[1], 'IDLE', ARGV[5], ARGV[2], ARGV[2], 1)\n\
    \if pending.err or #pending == 0 then\n\
    \  redis.call('XDEL', KEYS[2], newest[1])\n\
    \  if pending.err then return pending end\n\
    \  for _, letter in ipairs(redis.call('XREVRANGE', KEYS[2], '+', '-', 'COUNT', 100)) do\n\
    \    if isThis(letter) then return 1 end\n\
    \  end\n\
    \  return 0\n\
    \end\n\
    \if ARGV[3] ~= '' then redis.call('XTRIM', KEYS[2], 'MAXLEN', '~', ARGV[3]) end\n\
    \if ARGV[4] == 'XACKDEL' then\n\
    \  redis.call('XACKDEL', KEYS[1], ARGV[1], 'ACKED', 'IDS', 1, ARGV[2])\n\
    \  return 1\n\
    \end\n\
    \if ARGV[4] == 'XDEL' then redis.call('XDEL', KEYS[1], ARGV[2]) end\n\
    \redis.call('XACK', KEYS[1], ARGV[1], ARGV[2])\n\
    \return 1"

-- | Removes consumers that have no entries: those that have been idle for this long, or, for a worker that
-- leaves, its own. One script looks and removes: removing a consumer would also remove its entries from the
-- list of pending ones.
sweep :: Place -> ByteString -> Maybe Duration -> IO ()
sweep place stream idle =
  run (placeClient place) (timeLimit (seconds 1) (evalScript sweepScript [stream] [group place, placeConsumer place, maybe "" (number . inMilliseconds) idle]) `decodedBy` Decode.ignored)

-- Before 7.2 a consumer counts as idle although it reads, unless it finds an entry or reads its pending ones. So
-- a worker that stays reads those after the last id but one, where there are none.
sweepScript :: Script
sweepScript =
  script
    "local idle = tonumber(ARGV[3])\n\
    \if idle then redis.call('XREADGROUP', 'GROUP', ARGV[1], ARGV[2], 'STREAMS', KEYS[1], '18446744073709551615-18446744073709551614') end\n\
    \for _, one in ipairs(redis.call('XINFO', 'CONSUMERS', KEYS[1], ARGV[1])) do\n\
    \  local at = {}\n\
    \  for f = 1, #one, 2 do at[one[f]] = one[f + 1] end\n\
    \  local isGone = idle and at['idle'] >= idle or not idle and at['name'] == ARGV[2]\n\
    \  if isGone and at['pending'] == 0 then redis.call('XGROUP', 'DELCONSUMER', KEYS[1], ARGV[1], at['name']) end\n\
    \end\n\
    \return 1"

-- | Whether the error says that the group, or the stream, is gone.
isGroupLost :: Error -> Bool
isGroupLost = \case
  ReplyError ServerError {serverErrorCode, serverErrorMessage} ->
    serverErrorCode `elem` ["NOGROUP", "UNBLOCKED"]
      || any (`Char8.isInfixOf` serverErrorMessage) ["no such key", "no longer exists"]
  _ -> False

-- | Whether the same request may succeed later though nobody changes anything for its sake: it says
-- something of the connection, the server or the cluster, and nothing of the request. An error that
-- is not known counts as one that comes again: a worker that waited for its end could wait for ever.
isPassing :: Error -> Bool
isPassing = \case
  ConnectionError _ -> True
  TimeoutError _ -> True
  RoutingError _ -> True
  ReplyError ServerError {serverErrorCode} ->
    serverErrorCode `elem` Char8.words "ASK BUSY CLUSTERDOWN LOADING MASTERDOWN MISCONF MOVED NOAUTH NOREPLICAS OOM READONLY REDIRECT TRYAGAIN"
  _ -> False

-- | Whether the error would come again for every request until somebody changes something.
isLasting :: Error -> Bool
isLasting = \case
  ClientClosed -> True
  RefusedError _ -> True
  ReplyError ServerError {serverErrorCode} -> serverErrorCode `elem` ["WRONGTYPE", "NOPERM", "CROSSSLOT"]
  _ -> False
