#!/usr/bin/env bash
# Where the time goes: builds with profiling and prints, for two loads of the
# client and two of the REST service, the cost centres that take most, as the
# tables in docs/lab/2026-11-23-tuning.md.
#
# Cost centres are the exported functions of this repository, and those that the
# libraries were built with; a system call and what is written in C stand with
# whoever calls it. They keep the compiler from inlining, so a profile says where to
# look, not how fast anything is. Profiles stay in results/profile.
#
#   scripts/profile.sh [SECONDS]      of each load (default: 5)
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/cabal-env.sh
. scripts/free-port.sh

seconds="${1:-5}"
out="$PWD/results/profile"
build=(--builddir=dist-profile --enable-profiling --disable-library-vanilla --profiling-detail=exported-functions)
mkdir -p "$out"

echo "building with profiling: minutes, the first time" >&2
cabal build -v1 "${build[@]}" exe:redis-client exe:rest-service >&2
cabal build -v1 exe:rest-seed >&2
bench="$(cabal list-bin -v0 "${build[@]}" exe:redis-client)"
service="$(cabal list-bin -v0 "${build[@]}" exe:rest-service)"
seed="$(cabal list-bin -v0 exe:rest-seed)"

place="$(mktemp -d)"
running=()
finish() {
  local process
  for process in "${running[@]}"; do
    kill "$process" 2>/dev/null || true
    wait "$process" 2>/dev/null || true
  done
  running=()
}
trap 'finish; rm -rf "$place"' EXIT

table() { # NAME TITLE
  printf '\n%s\n\n| cost centre | module | time %% | allocation %% |\n|---|---|--:|--:|\n' "$2"
  awk '/^COST CENTRE/ { tables++; next }
       tables == 1 && NF >= 5 && $(NF - 1) + 0 >= 1.5 && rows < 12 {
         rows++; printf "| `%s` | `%s` | %s | %s |\n", $1, $2, $(NF - 1), $NF }' "$out/$1.prof"
}

client() { # NAME TITLE FLAG...
  local name="$1" title="$2"
  shift 2
  "$bench" bench --operation get --duration "$seconds" --warmup 1 --brief --no-sampling --allow saturation,little "$@" \
    +RTS -p "-po$out/$name" >"$out/$name.txt"
  table "$name" "$title"
}

rest() { # NAME TITLE SCRIPT
  local redis_port port
  redis_port="$(free_port)"
  port="$(free_port)"
  rm -f "$place"/users.db*
  "$seed" compare/rest/shared/statements.sql "$place/users.db"
  redis-server --port "$redis_port" --bind 127.0.0.1 --save '' --appendonly no --dir "$place" >"$place/redis.log" &
  running+=("$!")
  SQLITE_DB="$place/users.db" REDIS_PORT="$redis_port" PORT="$port" \
    "$service" +RTS -N1 -p "-po$out/$1" -RTS >"$place/service.log" 2>&1 &
  running+=("$!")
  timeout 20 bash -c "until grep -q listening '$place/service.log'; do sleep 0.1; done"
  SEED=1 RUN=1 THREADS=1 wrk -t1 -c100 "-d$seconds" -s "compare/rest/wrk/$3.lua" "http://127.0.0.1:$port/" >"$out/$1.txt"
  # The service writes its profile when it ends.
  kill "${running[1]}"
  wait "${running[1]}" || true
  finish
  table "$1" "$2"
}

client batches "GET, 16 threads × 64" -n 16 --batch 64
client waiting "GET, 256 callers waiting" -n 256 --batch 1
rest one "REST, GET one, 100 connections" single
rest list "REST, GET list, 100 connections" list
