-- | A queue of jobs, its keys, the options of a job, and the scripts that change a queue.
--
-- Each change is one script, so that nothing comes in between
-- and a queue is never half changed. Times are the server's.
--
-- A job is a hash. A job that waits or runs has an entry in the stream of its priority, and the
-- hash names that entry. A job that is due later has its id in a sorted set, and a job that failed
-- for good in another. The worker that acknowledges the entry decides how the job ends, and only
-- one worker can: so a script that is sent twice, or two workers that had the same job, settle it
-- once.
--
-- A script names all keys that it uses: while the slot moves, a server refuses a script if it lacks
-- one of its keys, but a script that used another one could fail half-way. For the same reason a script
-- reads a key before it writes the first one, if a write to it could fail.
module Redis.Patterns.Jobs.Queue
  ( Queue (..),
    JobId (..),
    Priority (..),
    Due (..),
    Unique (..),
    JobOptions (..),
    jobDefaults,

    -- * Keys
    fixedKeys,
    readyStreams,
    priorityOf,
    jobKey,
    uniqueKeyOf,
    scheduleKey,
    jobGroup,

    -- * Scripts
    callScript,
    callScriptWith,
    enqueueScript,
    dueScript,
    readyScript,
    tickScript,
    beginScript,
    doneScript,
    failedScript,
    progressScript,
    cancelScript,
    retryScript,
    scheduleScript,
    unscheduleScript,
    failuresScript,
    stateScript,
  )
where

import Data.ByteString (ByteString)
import Data.List (find)
import Data.List.NonEmpty (NonEmpty ((:|)))
import Data.Time.Clock (UTCTime)
import Redis (Command, Duration, Value)
import Redis.Duration (days, hours)
import Redis.Script

-- | A queue, given by its name, which must not be empty or contain braces. All its keys begin with
-- the name in braces, so in a cluster one queue is on one node, and several queues spread over several.
newtype Queue = Queue {queueName :: ByteString}
  deriving stock (Eq, Ord, Show)

-- | The name of a job. A job without a given name gets a random one.
newtype JobId = JobId {jobIdBytes :: ByteString}
  deriving stock (Eq, Ord, Show)

-- | Which jobs are taken first. Within one priority, the jobs that have waited longest come first.
data Priority = Urgent | Normal | Later
  deriving stock (Eq, Ord, Show, Enum, Bounded)

-- | When a job may run, by the server's clock.
data Due
  = -- | At once.
    DueNow
  | -- | After this time.
    DueIn Duration
  | -- | From this time on.
    DueAt UTCTime
  deriving stock (Eq, Show)

-- | A key that only one job may have: for this long after a job was put into the queue, no other
-- job with the same key is put there.
data Unique = Unique
  { uniqueKey :: ByteString,
    uniqueFor :: Duration
  }
  deriving stock (Eq, Show)

-- | The options of a job, besides its payload. Change the fields of 'jobDefaults'.
data JobOptions = JobOptions
  { -- | The job's name. If a job of that name exists, it stays as it is, and no new one is created.
    jobId :: Maybe JobId,
    jobDue :: Due,
    jobPriority :: Priority,
    -- | How often the job is tried in total.
    jobMaxAttempts :: Int,
    jobUnique :: Maybe Unique,
    -- | How long the job and its result are kept after it is done or cancelled.
    jobRetention :: Duration,
    -- | How long the job is kept after it has failed for good.
    jobFailedRetention :: Duration
  }
  deriving stock (Eq, Show)

-- | Due at once, 'Normal', five tries, kept for an hour when done and for 30 days when failed.
jobDefaults :: JobOptions
jobDefaults =
  JobOptions
    { jobId = Nothing,
      jobDue = DueNow,
      jobPriority = Normal,
      jobMaxAttempts = 5,
      jobUnique = Nothing,
      jobRetention = hours 1,
      jobFailedRetention = days 30
    }

keyBase :: Queue -> ByteString
keyBase Queue {queueName} = "{" <> queueName <> "}:jobs"

readyStream :: Queue -> Priority -> ByteString
readyStream queue = \case
  Urgent -> keyBase queue <> ":urgent"
  Normal -> keyBase queue <> ":normal"
  Later -> keyBase queue <> ":later"

readyStreams :: Queue -> NonEmpty ByteString
readyStreams queue = fmap (readyStream queue) (Urgent :| [Normal, Later])

priorityOf :: Queue -> ByteString -> Maybe Priority
priorityOf queue stream = find ((== stream) . readyStream queue) [minBound ..]

jobKey :: Queue -> JobId -> ByteString
jobKey queue (JobId name) = keyBase queue <> ":job:" <> name

-- | The consumer group of all workers of a queue.
jobGroup :: ByteString
jobGroup = "workers"

uniqueKeyOf :: Queue -> ByteString -> ByteString
uniqueKeyOf queue name = keyBase queue <> ":unique:" <> name

scheduleKey :: Queue -> ByteString -> ByteString
scheduleKey queue name = keyBase queue <> ":schedule:" <> name

-- | The keys that every script gets, in this order: the three streams, the delayed jobs, the failed
-- jobs, the schedules, and the number of jobs done.
fixedKeys :: Queue -> [ByteString]
fixedKeys queue =
  map (readyStream queue) [minBound ..] <> map (keyBase queue <>) [":delayed", ":failed", ":schedules", ":done"]

-- | Calls a script that uses only the queue's keys.
callScript :: Queue -> Script -> [ByteString] -> Command Value
callScript queue text = callScriptWith queue text []

-- | Calls a script that also uses these keys: a job's, and sometimes one more.
callScriptWith :: Queue -> Script -> [ByteString] -> [ByteString] -> Command Value
callScriptWith queue text others = evalScript text (fixedKeys queue <> others)

-- | A script with names for the keys and the functions that scripts share. The job's key is the
-- eighth. @intact@ raises an error if a key of the queue is not of its type.
withPrelude :: ByteString -> Script
withPrelude text =
  script $
    "local delayed, failed, schedules, done, job, beside = KEYS[4], KEYS[5], KEYS[6], KEYS[7], KEYS[8], KEYS[9]\n\
    \local time = redis.call('TIME')\n\
    \local now = time[1] * 1000 + math.floor(time[2] / 1000)\n\
    \local function intact(priority)\n\
    \  redis.call('XLEN', KEYS[tonumber(priority)])\n\
    \  redis.call('ZCARD', delayed)\n\
    \  redis.call('ZCARD', failed)\n\
    \end\n\
    \local function ready(id, priority)\n\
    \  local entry = redis.call('XADD', KEYS[tonumber(priority)], '*', 'job', id)\n\
    \  redis.call('HSET', job, 'state', 'waiting', 'entry', entry)\n\
    \end\n\
    \local function delay(id, due)\n\
    \  redis.call('ZADD', delayed, due, id)\n\
    \  redis.call('HSET', job, 'state', 'delayed', 'due', due)\n\
    \end\n\
    \local function keep(name)\n\
    \  local kept = tonumber(redis.call('HGET', job, name) or 0)\n\
    \  if kept > 0 then redis.call('PEXPIRE', job, kept) else redis.call('DEL', job) end\n\
    \end\n\
    \local function cancelled()\n\
    \  redis.call('HSET', job, 'state', 'cancelled', 'ended', now)\n\
    \  keep('keep')\n\
    \end\n\
    \local function fail(id, why)\n\
    \  local kept = tonumber(redis.call('HGET', job, 'keepfailed'))\n\
    \  redis.call('HSET', job, 'state', 'failed', 'error', why, 'ended', now)\n\
    \  redis.call('ZADD', failed, now + kept, id)\n\
    \  redis.call('ZREMRANGEBYSCORE', failed, '-inf', now)\n\
    \  keep('keepfailed')\n\
    \end\n"
      <> text

-- | Keys: the job's and, if there is one, the unique key. Arguments:
-- @id due|delay time priority tries keep keepfailed uniquetime payload call@. Returns the id, and
-- whether this call created the job: one that is sent twice finds its own name at the job. A millisecond has
-- begun already, so a delay ends in the one after its last.
enqueueScript :: Script
enqueueScript =
  withPrelude
    "local id = ARGV[1]\n\
    \local mine = redis.call('HGET', job, 'call') == ARGV[10] and 1 or 0\n\
    \if beside then\n\
    \  local present = redis.call('GET', beside)\n\
    \  if present then return {present, present == id and mine or 0} end\n\
    \end\n\
    \if redis.call('EXISTS', job) == 1 then return {id, mine} end\n\
    \intact(ARGV[4])\n\
    \if beside then redis.call('SET', beside, id, 'PX', ARGV[8]) end\n\
    \redis.call('HSET', job, 'payload', ARGV[9], 'priority', ARGV[4], 'tries', ARGV[5], 'keep', ARGV[6],\n\
    \  'keepfailed', ARGV[7], 'created', now, 'attempts', 0, 'call', ARGV[10])\n\
    \local due = tonumber(ARGV[3])\n\
    \if ARGV[2] == 'delay' and due > 0 then due = now + 1 + due end\n\
    \if due > now then delay(id, due) else ready(id, ARGV[4]) end\n\
    \return {id, 1}"

-- | Arguments: @count@. Returns the jobs that are due, and the schedules that are due with their
-- times, at most that many of each; and the number of milliseconds until the next one is due, -1 if
-- there is none.
dueScript :: Script
dueScript =
  withPrelude
    "local wait = -1\n\
    \for _, set in ipairs({delayed, schedules}) do\n\
    \  local first = redis.call('ZRANGEBYSCORE', set, string.format('(%.0f', now), '+inf', 'WITHSCORES', 'LIMIT', 0, 1)\n\
    \  if first[2] then\n\
    \    local left = math.max(0, tonumber(first[2]) - now)\n\
    \    if wait < 0 or left < wait then wait = left end\n\
    \  end\n\
    \end\n\
    \local ticks = redis.call('ZRANGEBYSCORE', schedules, '-inf', now, 'WITHSCORES', 'LIMIT', 0, ARGV[1])\n\
    \return {redis.call('ZRANGEBYSCORE', delayed, '-inf', now, 'LIMIT', 0, ARGV[1]), ticks, wait}"

-- | Key: the job's. Arguments: @id@. Moves a job that is due into the queue, unless another call
-- has.
readyScript :: Script
readyScript =
  withPrelude
    "local due = redis.call('ZSCORE', delayed, ARGV[1])\n\
    \if not due or tonumber(due) > now then return 0 end\n\
    \local priority = redis.call('HGET', job, 'priority')\n\
    \if priority then intact(priority) end\n\
    \redis.call('ZREM', delayed, ARGV[1])\n\
    \if priority then ready(ARGV[1], priority) end\n\
    \return 1"

-- | Keys: the job's and the schedule's. Arguments: @name due id@. Puts a schedule's job into the
-- queue, unless another call has.
tickScript :: Script
tickScript =
  withPrelude
    "local name, due = ARGV[1], tonumber(ARGV[2])\n\
    \local at = redis.call('ZSCORE', schedules, name)\n\
    \if not at or tonumber(at) ~= due or due > now then return 0 end\n\
    \local plan = redis.call('HMGET', beside, 'every', 'payload', 'priority', 'tries', 'keep', 'keepfailed')\n\
    \local every = tonumber(plan[1] or 0)\n\
    \if every < 1 then return redis.call('ZREM', schedules, name) end\n\
    \intact(plan[3])\n\
    \redis.call('ZADD', schedules, due + every * (math.floor((now - due) / every) + 1), name)\n\
    \if redis.call('EXISTS', job) == 1 then return 0 end\n\
    \redis.call('HSET', job, 'payload', plan[2], 'priority', plan[3], 'tries', plan[4], 'keep', plan[5],\n\
    \  'keepfailed', plan[6], 'created', now, 'attempts', 0)\n\
    \ready(ARGV[3], plan[3])\n\
    \return 1"

-- | A script that may settle an entry for the worker that has it. Key: the job's.
-- Arguments: @id entry priority group …@. A worker that was frozen is overtaken if its entry was given out
-- again, which the count of its deliveries tells.
settling :: ByteString -> Script
settling text =
  withPrelude $
    "local id, entry, stream, group = ARGV[1], ARGV[2], KEYS[tonumber(ARGV[3])], ARGV[4]\n\
    \local function settle()\n\
    \  local mine = redis.call('XACK', stream, group, entry)\n\
    \  if mine == 1 then redis.call('XDEL', stream, entry) end\n\
    \  return mine == 1\n\
    \end\n\
    \local function overtaken(deliveries)\n\
    \  local pending = redis.pcall('XPENDING', stream, group, entry, entry, 1)[1]\n\
    \  return pending and pending[4] ~= tonumber(deliveries)\n\
    \end\n"
      <> text

-- | Arguments: @… deliveries@. Returns the payload, the number of this try and the number of all
-- tries; or nothing, if the job should not run; or only the reason, if it has failed for good by that.
-- A job that was cancelled while another worker had it ends here. A delivery that no worker began (its reply
-- was lost, say) is no try. One that has the number of the last begun one is no other: this was sent twice, or the
-- entry was handed back.
beginScript :: Script
beginScript =
  settling
    "if overtaken(ARGV[5]) then return false end\n\
    \local at = redis.call('HMGET', job, 'state', 'entry', 'attempts', 'tries', 'payload', 'cancel', 'try', 'turn')\n\
    \if (at[1] ~= 'waiting' and at[1] ~= 'running') or at[2] ~= entry then\n\
    \  settle()\n\
    \  return false\n\
    \end\n\
    \if at[6] then\n\
    \  if settle() then cancelled() end\n\
    \  return false\n\
    \end\n\
    \local attempt = at[1] == 'waiting' and at[3] + 1 or at[8] == ARGV[5] and tonumber(at[7]) or at[7] + 1\n\
    \if attempt > tonumber(at[4]) then\n\
    \  intact(ARGV[3])\n\
    \  if not settle() then return false end\n\
    \  local why = 'its worker did not come back'\n\
    \  fail(id, why)\n\
    \  return {why}\n\
    \end\n\
    \redis.call('HSET', job, 'state', 'running', 'started', now, 'try', attempt, 'turn', ARGV[5])\n\
    \return {at[5], attempt, tonumber(at[4])}"

-- | Arguments: @… result@. Returns whether this call settled the entry. What is only counted may fail: the
-- job is done.
doneScript :: Script
doneScript =
  settling
    "if not settle() then return 0 end\n\
    \redis.call('HSET', job, 'state', 'done', 'result', ARGV[5], 'ended', now)\n\
    \keep('keep')\n\
    \redis.pcall('INCR', done)\n\
    \return 1"

-- | Arguments: @… attempt rest why deliveries@. Returns whether the job is tried again, by this worker's doing
-- or, if another one has the entry or has settled it, by that one's.
failedScript :: Script
failedScript =
  settling
    "intact(ARGV[3])\n\
    \if not overtaken(ARGV[8]) and settle() then\n\
    \  local at = redis.call('HMGET', job, 'tries', 'cancel')\n\
    \  if at[2] then\n\
    \    redis.call('HSET', job, 'error', ARGV[7])\n\
    \    cancelled()\n\
    \  elseif at[1] then\n\
    \    redis.call('HSET', job, 'attempts', ARGV[5], 'error', ARGV[7])\n\
    \    if tonumber(ARGV[5]) >= tonumber(at[1]) then fail(id, ARGV[7]) else delay(id, now + tonumber(ARGV[6])) end\n\
    \  end\n\
    \end\n\
    \local state = redis.call('HGET', job, 'state')\n\
    \return (state == 'delayed' or state == 'waiting' or state == 'running') and 1 or 0"

-- | Key: the job's. Arguments: @progress note entry@. Returns whether the job should go on.
progressScript :: Script
progressScript =
  withPrelude
    "local state = redis.call('HMGET', job, 'state', 'cancel', 'entry')\n\
    \if state[1] ~= 'running' or state[3] ~= ARGV[3] then return 0 end\n\
    \redis.call('HSET', job, 'progress', ARGV[1], 'note', ARGV[2])\n\
    \if state[2] then return 0 else return 1 end"

-- | Key: the job's. Arguments: @id group@. Returns the previous state, if there is such a job. A
-- worker that has the entry of a waiting job has not begun the job, and will not.
cancelScript :: Script
cancelScript =
  withPrelude
    "local at = redis.call('HMGET', job, 'state', 'entry', 'priority')\n\
    \if at[1] == 'running' then redis.call('HSET', job, 'cancel', 1) end\n\
    \if at[1] == 'delayed' or at[1] == 'waiting' then\n\
    \  redis.call('ZREM', delayed, ARGV[1])\n\
    \  if at[1] == 'waiting' then\n\
    \    redis.call('XACK', KEYS[tonumber(at[3])], ARGV[2], at[2])\n\
    \    redis.call('XDEL', KEYS[tonumber(at[3])], at[2])\n\
    \  end\n\
    \  cancelled()\n\
    \end\n\
    \return at[1]"

-- | Key: the job's. Arguments: @id@. Returns whether the job had failed or been cancelled, and now
-- waits again, with all its tries.
retryScript :: Script
retryScript =
  withPrelude
    "local at = redis.call('HMGET', job, 'state', 'priority')\n\
    \if at[1] ~= 'failed' and at[1] ~= 'cancelled' then return 0 end\n\
    \intact(at[2])\n\
    \redis.call('ZREM', failed, ARGV[1])\n\
    \redis.call('PERSIST', job)\n\
    \redis.call('HDEL', job, 'cancel', 'ended', 'error', 'progress', 'note')\n\
    \redis.call('HSET', job, 'attempts', 0)\n\
    \ready(ARGV[1], at[2])\n\
    \return 1"

-- | Key: the schedule's. Arguments: @name every first priority tries keep keepfailed payload@. A
-- schedule that exists keeps its next time if that is one of the new plan's times, and otherwise
-- continues at the new plan's next time: so whatever has run does not run again.
scheduleScript :: Script
scheduleScript =
  withPrelude
    "local name, plan, every, first = ARGV[1], KEYS[8], tonumber(ARGV[2]), tonumber(ARGV[3])\n\
    \local at = tonumber(redis.call('ZSCORE', schedules, name) or '')\n\
    \local same = at and redis.call('HGET', plan, 'every') == ARGV[2]\n\
    \redis.call('HSET', plan, 'every', ARGV[2], 'priority', ARGV[4], 'tries', ARGV[5], 'keep', ARGV[6],\n\
    \  'keepfailed', ARGV[7], 'payload', ARGV[8])\n\
    \local due = first or now + every\n\
    \if same and not first then due = at\n\
    \elseif same and (at - first) % every == 0 then due = math.max(at, first)\n\
    \elseif at and first and first < now then due = first + every * math.ceil((now - first) / every) end\n\
    \redis.call('ZADD', schedules, due, name)\n\
    \return 1"

-- | Key: the schedule's. Arguments: @name@. Returns whether there was a schedule.
unscheduleScript :: Script
unscheduleScript =
  withPrelude
    "local found = redis.call('ZREM', schedules, ARGV[1])\n\
    \redis.call('DEL', KEYS[8])\n\
    \return found"

-- | Arguments: @count@. Returns the ids of the failed jobs that are still kept. An id stays in the
-- set when its job is deleted, until another job fails.
failuresScript :: Script
failuresScript =
  withPrelude
    "return redis.call('ZRANGEBYSCORE', failed, string.format('(%.0f', now), '+inf', 'LIMIT', 0, ARGV[1])"

-- | Arguments: @group recent@. Returns for each priority how many jobs wait, how many run, and for
-- how long the first has waited (-1 if none waits); then the numbers of delayed, failed and done
-- jobs, of schedules, and of workers that were active recently.
stateScript :: Script
stateScript =
  withPrelude
    "local page, heard = {}, {}\n\
    \for p = 1, 3 do\n\
    \  local waiting, running, oldest, from = redis.call('XLEN', KEYS[p]), 0, -1, '-'\n\
    \  if redis.call('EXISTS', KEYS[p]) == 1 then\n\
    \    for _, one in ipairs(redis.call('XINFO', 'GROUPS', KEYS[p])) do\n\
    \      local at = {}\n\
    \      for f = 1, #one, 2 do at[one[f]] = one[f + 1] end\n\
    \      if at['name'] == ARGV[1] then\n\
    \        running = at['pending']\n\
    \        from = '(' .. at['last-delivered-id']\n\
    \        for _, c in ipairs(redis.call('XINFO', 'CONSUMERS', KEYS[p], ARGV[1])) do\n\
    \          local it = {}\n\
    \          for f = 1, #c, 2 do it[c[f]] = c[f + 1] end\n\
    \          if it['idle'] < tonumber(ARGV[2]) and it['name'] ~= '(resting)' then heard[it['name']] = true end\n\
    \        end\n\
    \      end\n\
    \    end\n\
    \    local first = redis.call('XRANGE', KEYS[p], from, '+', 'COUNT', 1)\n\
    \    if first[1] then oldest = math.max(0, now - tonumber(string.match(first[1][1], '^%d+'))) end\n\
    \  end\n\
    \  page[p] = {math.max(0, waiting - running), running, oldest}\n\
    \end\n\
    \local workers = 0\n\
    \for _ in pairs(heard) do workers = workers + 1 end\n\
    \page[4] = redis.call('ZCARD', delayed)\n\
    \page[5] = redis.call('ZCOUNT', failed, now, '+inf')\n\
    \page[6] = tonumber(redis.call('GET', done) or 0)\n\
    \page[7] = redis.call('ZCARD', schedules)\n\
    \page[8] = workers\n\
    \return page"
