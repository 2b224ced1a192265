-- What the scripts of wrk share: seeded threads, a random id, and the summary
-- as one line of JSON. SEED, RUN, THREADS and NEXT_ID come from the environment:
-- RUN makes the e-mail addresses of one run differ from those of another, and the
-- first user that it creates gets the number NEXT_ID.

local seed = tonumber(os.getenv("SEED") or "1")
local run = os.getenv("RUN") or "0"
local threads = tonumber(os.getenv("THREADS") or "1")
local next_id = tonumber(os.getenv("NEXT_ID") or "10001")
local all_threads = {}

function setup(thread)
  table.insert(all_threads, thread)
  thread:set("thread_number", #all_threads)
end

function begin()
  math.randomseed(seed * 1000 + thread_number)
  -- The first draws of some generators are alike for seeds that are alike.
  for _ = 1, 100 do math.random() end
end

function random_id()
  return math.random(10000)
end

-- The oldest user that this run has created and not deleted, as far as one thread
-- can know: it takes its part of the numbers.
local deleted = 0
function oldest_new_id()
  deleted = deleted + 1
  return next_id + (deleted - 1) * threads + thread_number - 1
end

local count = 0
function new_email()
  count = count + 1
  return "bench_" .. run .. "_" .. thread_number .. "_" .. count .. "@test.example"
end

function body()
  return '{"name":"Bench User","email":"' .. new_email() .. '","bio":"Written by the load generator"}'
end

-- Of the answers with an error status, how many were 404; 0 where a script does
-- not count them.
local function not_found()
  local sum = 0
  for _, thread in ipairs(all_threads) do sum = sum + (thread:get("missing") or 0) end
  return sum
end

function done(summary, latency, requests)
  io.write(string.format(
    '\nJSON {"requests":%d,"duration_us":%d,"bytes":%d,"status_errors":%d,"not_found":%d,"connect_errors":%d,"read_errors":%d,"write_errors":%d,"timeouts":%d,"latency_us":{"p50":%d,"p90":%d,"p99":%d,"p99_9":%d,"max":%d}}\n',
    summary.requests, summary.duration, summary.bytes, summary.errors.status, not_found(), summary.errors.connect,
    summary.errors.read, summary.errors.write, summary.errors.timeout,
    latency:percentile(50), latency:percentile(90), latency:percentile(99), latency:percentile(99.9), latency.max))
end
