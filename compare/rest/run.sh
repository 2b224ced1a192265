#!/usr/bin/env bash
# The REST comparison: builds both services, holds both to the contract, measures
# and reports. "QUICK=1" is a form of at most six minutes with the same rules.
#
#   compare/rest/run.sh                 everything, about an hour and a half
#   compare/rest/run.sh standalone      one Redis only (run-standalone.sh)
#   compare/rest/run.sh cluster         the cluster of five only (run-cluster.sh)
#   compare/rest/run.sh study           the runtime, the HTTP layer, JSON (run-gc-tuning.sh)
#   compare/rest/run.sh autocannon      one row by autocannon, for who compares with old numbers
#
# OUT=FOLDER continues a folder of results; only what it lacks is measured.
# SE_REDIS_DIR=FOLDER (several, with colons between) holds the assemblies of a
# version of StackExchange.Redis: each is a row more. HOLD=COMMAND is put before
# each part of the measurement (each takes minutes), for who shares a machine.
#
# Ends with the goals as ratios. Exit codes: 0 all met, 1 some missed, 2 the run
# or a service broke its rules, 3 something is not installed.
set -euo pipefail
cd "$(dirname "$0")/../.."
. scripts/cabal-env.sh

part="${1:-all}"
quick="${QUICK:-}"
out="${OUT:-compare/results/$(date +%F)-rest${quick:+-quick}}"
mkdir -p "$out" build/rest

for program in wrk redis-server taskset; do
  command -v "$program" >/dev/null || {
    echo "compare-rest: $program is missing; make setup installs it (Debian: wrk, redis-server, util-linux)" >&2
    exit 3
  }
done

cabal build -v1 exe:rest-service exe:rest-load exe:rest-compare test:conformance
service="$(cabal list-bin -v0 exe:rest-service)"
compare="$(cabal list-bin -v0 exe:rest-compare)"
generator="$(cabal list-bin -v0 exe:rest-load)"
conformance="$(cabal list-bin -v0 redis-client-rest-compare:test:conformance)"

# The C# rows: the version that every registry has, and those of SE_REDIS_DIR.
rows=()
publish() { # NAME, then variables for the build
  local name="$1" folder
  shift
  folder="$PWD/build/rest/$name"
  if env "$@" dotnet publish compare/rest/dotnet -c Release -o "$folder" --artifacts-path "$folder.artifacts" >"$folder.log" 2>&1; then
    rows+=(--dotnet "$name=$folder/rest-service")
  else
    echo "compare-rest: $name could not be built, its row is absent: $(grep -m 1 -E 'error' "$folder.log" || tail -n 1 "$folder.log")" >&2
  fi
}
if command -v dotnet >/dev/null; then
  publish dotnet-1.2.6 SE_REDIS_DIR=
  if [ -n "${SE_REDIS_DIR:-}" ]; then
    IFS=: read -r -a folders <<<"$SE_REDIS_DIR"
    for folder in "${folders[@]}"; do
      publish "dotnet-$(basename "$folder")" SE_REDIS_DIR="$(realpath "$folder")"
    done
  fi
else
  echo "compare-rest: the .NET SDK 10 is not installed (https://dotnet.microsoft.com/download); the C# rows are absent" >&2
fi

# The contract first: on the Haskell service and on every row in C#.
hold() {
  local programs=("$service") label
  REST_HASKELL="$service" SQL_FILE="$PWD/compare/rest/shared/statements.sql" \
    REST_DOTNET="${1:-}" "$conformance" --format=failed-examples >"$out/conformance.log" 2>&1 || {
    tail -n 40 "$out/conformance.log" >&2
    echo "compare-rest: the contract is broken; nothing is measured" >&2
    exit 2
  }
  label="$(tail -n 1 "$out/conformance.log")"
  echo "contract: ${programs[*]##*/} ${1:+and $(basename "$(dirname "$1")") }$label"
}
if [ "${CONFORMANCE:-1}" = 1 ]; then
  held=""
  for row in "${rows[@]}"; do
    [ "$row" = --dotnet ] && continue
    hold "${row#*=}"
    held=1
    [ -z "$quick" ] || break
  done
  [ -n "$held" ] || hold
fi

measure() {
  ${HOLD:-} "$compare" run --out "$out" --haskell "$service" --generator "$generator" \
    --sql compare/rest/shared/statements.sql --scripts compare/rest/wrk "${rows[@]}" "$@" || exit 2
}

only() { # TOPOLOGY-LAYOUT: its groups, each a part of the measurement
  local scenario
  for scenario in single-100 single-10 list-100 post-100 post-10 mixed-20; do
    measure --what goals --only "$1-$scenario"
  done
}

naive() {
  local scenario
  for scenario in post-100 post-10 single-100 list-100 mixed-20; do
    measure --what naive --only "standalone-pinned-$scenario" --warmup 4
  done
}

if [ -n "$quick" ]; then
  measure --what quick --iterations 2 --seconds 2 --open-seconds 2 --warmup 5
else
  case "$part" in
  all)
    only standalone-pinned
    naive
    only standalone-free
    only cluster-pinned
    measure --what study --only standalone-pinned-single
    measure --what study --only standalone-pinned-list
    ;;
  standalone) only standalone-pinned && naive && only standalone-free ;;
  cluster) only cluster-pinned ;;
  study)
    measure --what study --only standalone-pinned-single
    measure --what study --only standalone-pinned-list
    ;;
  autocannon)
    entries=("haskell=$service")
    for row in "${rows[@]}"; do
      [ "$row" = --dotnet ] || entries+=("$row")
    done
    cabal build -v1 exe:rest-seed
    SEED_PROGRAM="$(cabal list-bin -v0 exe:rest-seed)" ${HOLD:-} compare/rest/autocannon.sh "$out" "${entries[@]}"
    exit
    ;;
  *)
    echo "compare-rest: unknown part '$part'" >&2
    exit 2
    ;;
  esac
fi
"$compare" report --out "$out"
