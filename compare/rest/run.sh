#!/usr/bin/env bash
# The REST comparison: builds both services, holds both to the contract, measures
# and reports. "QUICK=1" is a form of at most six minutes with the same rules.
#
#   compare/rest/run.sh [PART] [FLAG...]
#
#   standalone   one Redis, a core each: the goals and the naive design (default)
#   free         the same goals with both cores for all
#   cluster      a cluster of five (run-cluster.sh)
#   study        the runtime, the HTTP layer, JSON (run-gc-tuning.sh)
#   autocannon   one row by autocannon, for who compares with old numbers
#   all          all but the last, one after the other
#
# Flags of the runner follow the part: --plan only says what would be measured and
# how long it takes; --iterations 5, --seconds 4, --open-seconds 4, --warmup 15
# (of C#) are what there is by default.
#
# OUT=FOLDER continues a folder of results; only what it lacks is measured.
# SE_REDIS_DIR=FOLDER (several, with colons between) holds the assemblies of a
# version of StackExchange.Redis: each is a row more where Redis is asked.
# CONFORMANCE=0 leaves out the contract, for who has just held the services to it.
#
# Ends with the goals as ratios. Exit codes: 0 all met, 1 some missed, 2 the run
# or a service broke its rules, 3 something is not installed.
set -euo pipefail
cd "$(dirname "$0")/../.."
. scripts/cabal-env.sh

part=standalone
case "${1:-}" in
"" | --*) ;;
*)
  part="$1"
  shift
  ;;
esac
flags=()
plan=""
for flag in "$@"; do
  if [ "$flag" = --plan ]; then
    plan=1
    flags+=(--plan yes)
  else
    flags+=("$flag")
  fi
done
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
if [ "${CONFORMANCE:-1}" = 1 ] && [ -z "$plan" ]; then
  held=""
  for row in "${rows[@]}"; do
    [ "$row" = --dotnet ] && continue
    hold "${row#*=}"
    held=1
    [ -z "$quick" ] || break
  done
  [ -n "$held" ] || hold
fi

measure() { # the flags that come first win
  "$compare" run "${flags[@]}" --out "$out" --haskell "$service" --generator "$generator" \
    --sql compare/rest/shared/statements.sql --scripts compare/rest/wrk "${rows[@]}" "$@" || exit 2
}

if [ -n "$quick" ]; then
  part=quick
fi
case "$part" in
quick) measure --what quick --iterations 2 --seconds 2 --open-seconds 2 --warmup 5 ;;
all)
  measure --what goals --what naive --only standalone-pinned --only standalone-free --only cluster-pinned
  measure --what study
  ;;
standalone) measure --what goals --what naive --only standalone-pinned ;;
free) measure --what goals --only standalone-free ;;
cluster) measure --what goals --only cluster-pinned ;;
study) measure --what study ;;
autocannon)
  entries=("haskell=$service")
  for row in "${rows[@]}"; do
    [ "$row" = --dotnet ] || entries+=("$row")
  done
  cabal build -v1 exe:rest-seed
  SEED_PROGRAM="$(cabal list-bin -v0 exe:rest-seed)" compare/rest/autocannon.sh "$out" "${entries[@]}"
  exit
  ;;
*)
  echo "compare-rest: unknown part '$part'" >&2
  exit 2
  ;;
esac
if [ -z "$plan" ]; then
  "$compare" report --out "$out"
fi
