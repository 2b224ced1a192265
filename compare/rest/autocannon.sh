#!/usr/bin/env bash
# Every scenario by autocannon (npm), for those who have older numbers that were taken
# with it: autocannon.sh FOLDER WARMUP SECONDS ROUNDS NAME=PROGRAM... Services take
# turns; every second round goes backwards; each measurement has a fresh database
# and a fresh Redis. A line for each in FOLDER/autocannon.jsonl, which the report
# shows; what autocannon printed is in FOLDER/autocannon. What a folder has is not
# measured again. Its one thread is busier than the service; see README.md before
# quoting it.
set -euo pipefail
out="$(realpath "$1")"
cd "$(dirname "$0")"
. ../../scripts/free-port.sh

warmup="$2"
seconds="$3"
rounds="$4"
shift 4
# What is continued must be measured as it was begun: its rounds are taken together.
settings="$seconds s after $warmup s of warm-up"
if [ -e "$out/autocannon/settings" ] && [ "$(cat "$out/autocannon/settings")" != "$settings" ]; then
  echo "autocannon: the folder has measurements of $(cat "$out/autocannon/settings"), not of $settings; name another one (OUT)" >&2
  exit 2
fi
command -v npm >/dev/null || { echo "autocannon: npm is missing; its rows are absent" >&2; exit 3; }
(cd autocannon && npm ci --no-audit --no-fund >/dev/null) || { echo "autocannon: npm could not install it; its rows are absent" >&2; exit 3; }

mkdir -p "$out/autocannon"
touch "$out/autocannon.jsonl"
echo "$settings" >"$out/autocannon/settings"

work="$(mktemp -d)"
pids=()
finish() {
  [ "${#pids[@]}" -eq 0 ] || kill "${pids[@]}" 2>/dev/null || true
  wait
  rm -rf "$work"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

next_id() { python3 -c 'import sqlite3, sys; print(sqlite3.connect(sys.argv[1], timeout=10).execute("SELECT max(id) + 1 FROM users").fetchone()[0])' "$work/users.db"; }

measure() { # NAME PROGRAM SCENARIO CONNECTIONS ROUND
  local name="$1" program="$2" scenario="$3" connections="$4" round="$5" redis port file
  file="$out/autocannon/$name-$scenario-$connections-$round.json"
  [ ! -s "$file" ] || return 0
  redis="$(free_port)"
  port="$(free_port)"
  rm -f "$work"/users.db*
  "$SEED_PROGRAM" shared/statements.sql "$work/users.db" >/dev/null
  taskset -c 0 redis-server --bind 127.0.0.1 --port "$redis" --save "" --dir "$work" >"$work/redis.log" 2>&1 &
  pids=("$!")
  PORT="$port" REDIS_PORT="$redis" SQLITE_DB="$work/users.db" SQL_FILE=shared/statements.sql \
    DOTNET_ReadyToRun=0 DOTNET_HillClimbing_Disable=1 DOTNET_GCDynamicAdaptationMode=0 DOTNET_TieredPGO=1 \
    taskset -c 1 "$program" >"$work/service.log" 2>&1 &
  pids+=("$!")
  for _ in $(seq 300); do
    grep -q '^listening' "$work/service.log" && break
    kill -0 "${pids[1]}" 2>/dev/null || break
    sleep 0.1
  done
  grep -q '^listening' "$work/service.log" || {
    echo "autocannon: $name does not listen: $(tail -n 1 "$work/service.log")" >&2
    exit 2
  }
  # It draws a table on standard error.
  [ "$warmup" -eq 0 ] || taskset -c 0 node autocannon/run.js "$port" "$warmup" "$connections" "$scenario" "$(next_id)" warm >/dev/null 2>&1 || true
  taskset -c 0 node autocannon/run.js "$port" "$seconds" "$connections" "$scenario" "$(next_id)" run 2>"$work/autocannon.log" >"$work/result.json" || {
    echo "autocannon: $name failed requests of $scenario, or it failed itself: $(tail -n 1 "$work/autocannon.log")" >&2
    exit 2
  }
  python3 - "$name" "$scenario" "$connections" "$round" "$work/result.json" >>"$out/autocannon.jsonl" <<'PY'
import json, sys
name, scenario, connections, number = sys.argv[1:5]
result = json.load(open(sys.argv[5]))
print(json.dumps({
    "row": name, "scenario": scenario, "connections": int(connections), "iteration": int(number),
    "perSecond": sum(result["statuses"].values()) / result["duration"],
    "p50": result["responseTimesMs"]["p50"], "p95": result["responseTimesMs"]["p95"], "p99": result["responseTimesMs"]["p99"],
    "statuses": result["statuses"], "generatorBusy": result["generatorBusy"],
}))
PY
  mv "$work/result.json" "$file"
  tail -n 1 "$out/autocannon.jsonl"
  kill "${pids[@]}"
  wait "${pids[@]}" 2>/dev/null || true
  pids=()
}

for round in $(seq "$rounds"); do
  for cell in "single 100" "single 10" "list 100" "post 10" "post 100" "mixed 20"; do
    read -r scenario connections <<<"$cell"
    entries=("$@")
    for place in "${!entries[@]}"; do
      [ $((round % 2)) -eq 1 ] || place=$((${#entries[@]} - 1 - place))
      measure "${entries[$place]%%=*}" "${entries[$place]#*=}" "$scenario" "$connections" "$round"
    done
  done
done
