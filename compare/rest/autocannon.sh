#!/usr/bin/env bash
# A row by autocannon (npm), for who compares with numbers that were taken with
# it: autocannon.sh FOLDER WARMUP SECONDS NAME=PROGRAM... Its latency is in whole milliseconds,
# and its one thread is busier than the service; see README.md before quoting it.
set -euo pipefail
cd "$(dirname "$0")"

out="$(realpath "$1")"
warmup="$2"
seconds="$3"
shift 3
command -v npm >/dev/null || { echo "autocannon: npm is missing; the row is absent" >&2; exit 3; }
(cd autocannon && npm ci --no-audit --no-fund >/dev/null) || { echo "autocannon: npm could not install it; the row is absent" >&2; exit 3; }

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

free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }

for entry in "$@"; do
  name="${entry%%=*}"
  program="${entry#*=}"
  redis="$(free_port)"
  port="$(free_port)"
  rm -f "$work"/users.db*
  "$SEED_PROGRAM" shared/statements.sql "$work/users.db"
  taskset -c 0 redis-server --bind 127.0.0.1 --port "$redis" --save "" --dir "$work" >"$work/redis.log" 2>&1 &
  pids=("$!")
  PORT="$port" REDIS_PORT="$redis" SQLITE_DB="$work/users.db" SQL_FILE=shared/statements.sql \
    DOTNET_ReadyToRun=0 DOTNET_HillClimbing_Disable=1 DOTNET_GCDynamicAdaptationMode=0 \
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
  echo "autocannon: $name, $((warmup + seconds)) s"
  # It draws a table on standard error.
  [ "$warmup" -eq 0 ] || taskset -c 0 node autocannon/run.js "$port" "$warmup" 100 >/dev/null 2>&1 || true
  taskset -c 0 node autocannon/run.js "$port" "$seconds" 100 2>"$work/autocannon.log" >"$out/autocannon-$name.json" || {
    echo "autocannon: $name failed requests, or it failed itself: $(tail -n 1 "$work/autocannon.log")" >&2
    exit 2
  }
  python3 - "$name" "$out/autocannon-$name.json" <<'PY'
import json, sys
result = json.load(open(sys.argv[2]))
print(f"autocannon, GET one, 100 connections: {sys.argv[1]:16} {result['requests']['average']:9.0f}/s, "
      f"p50 {result['latency']['p50']} ms, p97.5 {result['latency']['p97_5']} ms, p99 {result['latency']['p99']} ms, "
      f"generator busy {100 * result['generatorBusy']:.0f} %")
PY
  kill "${pids[@]}"
  wait "${pids[@]}" 2>/dev/null || true
  pids=()
done
