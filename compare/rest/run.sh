#!/usr/bin/env bash
# The REST comparison: builds both services, holds both to the contract, measures
# and reports. "QUICK=1" is a form of at most six minutes with the same rules, of a
# part of the cells with a core each. It has rates and no ratios: in five seconds of
# warm-up .NET is not yet as fast as it gets. --warmup 12 gives it the time, and the
# ratios.
#
#   compare/rest/run.sh [PART] [FLAG...]
#
#   goals        the next two into one report: all goals, in an hour (default)
#   standalone   one Redis, a core each: the goals, and the naive design in turns with them
#   free         the same goals with both cores for all
#   cluster      a cluster of five (run-cluster.sh)
#   study        the runtime, the HTTP layer, JSON (run-gc-tuning.sh)
#   autocannon   each service and scenario by autocannon, for those who have old numbers
#   all          all but autocannon, one after the other; the study in a folder study of its own
#
# Flags follow the part: --plan only says what would be measured and how long that
# takes; --iterations 5, --seconds 4, --open-seconds 4, --warmup 12 are what there
# is by default (autocannon: 3, 10, -, 10); --only TEXT (several) takes the groups of
# the part whose names begin so, such as standalone-pinned-post (--plan lists them).
#
# Results go to a folder that is named by the time, so that none is overwritten.
# OUT=FOLDER continues one; only what it lacks is measured, and nothing with other
# seconds than what it has of the same group.
# SE_REDIS_DIR=FOLDER (several, with colons between) holds the assemblies of a
# version of StackExchange.Redis: each is a row more where Redis is asked.
# CONFORMANCE=0 leaves out the contract, for those who have just held the services to it.
# BUSY=1 measures although other programs keep the machine busy (scripts/quiet.sh).
#
# Ends with the goals as ratios. Exit codes: 0 all met or none judged, 1 some missed, 2 the run
# or a service broke its rules or the machine did not become quiet, 3 something is not installed.
set -euo pipefail
cd "$(dirname "$0")/../.."
. scripts/cabal-env.sh

wrong() {
  echo "compare-rest: $1 (try --help)" >&2
  exit 2
}

part=""
case "${1:-}" in
-h | --help)
  sed -n -e '/^set /q' -e '2,$s/^# \{0,1\}//p' compare/rest/run.sh
  exit
  ;;
"" | --*) ;;
*)
  part="$1"
  shift
  ;;
esac
quick="${QUICK:-}"
case "$part" in
"" | goals | standalone | free | cluster | study | autocannon | all) ;;
*) wrong "there is no part '$part'" ;;
esac
# It is no other part in short, and must not pass for one.
if [ -n "$quick" ]; then
  case "$part" in
  "" | standalone) part=quick ;;
  *) wrong "QUICK=1 has no short form of the part '$part'" ;;
  esac
fi
part="${part:-goals}"
flags=()
plan=""
# Those of autocannon, which has no runner.
rounds=3
seconds=10
warmup=10
while [ $# -gt 0 ]; do
  case "$1" in
  --plan)
    plan=1
    flags+=(--plan yes)
    shift
    continue
    ;;
  --iterations | --seconds) pattern='^[1-9][0-9]*$' ;;
  --open-seconds | --warmup) pattern='^[0-9]+(\.[0-9]+)?$' ;;
  --only) pattern=. ;;
  *) wrong "there is no flag '$1'" ;;
  esac
  [[ "${2:-}" =~ $pattern ]] || wrong "$1 cannot be '${2:-}'"
  flags+=("$1" "$2")
  case "$1" in
  --iterations) rounds="$2" ;;
  --seconds) seconds="$2" ;;
  --warmup) warmup="${2%.*}" ;;
  esac
  shift 2
done
case "$part" in
goals) suffix="" ;;
*) suffix="-$part" ;;
esac
out="${OUT:-compare/results/$(date +%F-%H%M%S)-rest$suffix}"

for program in wrk redis-server taskset; do
  command -v "$program" >/dev/null || {
    echo "compare-rest: $program is missing; make setup installs it (Debian: wrk, redis-server, util-linux)" >&2
    exit 3
  }
done

# Ctrl-C ends all of it, whatever a program makes of the signal that it gets, too.
trap 'exit 130' INT
trap 'exit 143' TERM

mkdir -p build/rest
cabal build -v1 exe:rest-service exe:rest-load exe:rest-compare test:conformance
service="$(cabal list-bin -v0 exe:rest-service)"
compare="$(cabal list-bin -v0 exe:rest-compare)"
generator="$(cabal list-bin -v0 exe:rest-load)"
conformance="$(cabal list-bin -v0 redis-client-rest-compare:test:conformance)"

# The C# rows: the last 1.x and the newest, each the fastest somewhere; and those of
# SE_REDIS_DIR.
rows=()
publish() { # NAME, then variables for the build
  local name="$1" folder
  shift
  folder="$PWD/build/rest/$name"
  if [ -n "$plan" ]; then
    rows+=(--dotnet "$name=$folder/rest-service")
    return
  fi
  echo "publishing $name"
  if env "$@" dotnet publish compare/rest/dotnet -c Release -o "$folder" --artifacts-path "$folder.artifacts" >"$folder.log" 2>&1; then
    rows+=(--dotnet "$name=$folder/rest-service")
  else
    echo "compare-rest: $name could not be built, its row is absent: $(grep -m 1 -E 'error' "$folder.log" || tail -n 1 "$folder.log")" >&2
  fi
}
if command -v dotnet >/dev/null; then
  publish dotnet-1.2.6 SE_REDIS_DIR= SeRedisVersion=1.2.6
  [ -n "$quick" ] || publish dotnet-3.4.35 SE_REDIS_DIR= SeRedisVersion=3.4.35
  if [ -n "${SE_REDIS_DIR:-}" ]; then
    IFS=: read -r -a folders <<<"$SE_REDIS_DIR"
    for folder in "${folders[@]}"; do
      publish "dotnet-$(basename "$folder")" SE_REDIS_DIR="$(realpath "$folder")"
    done
  fi
else
  echo "compare-rest: the .NET SDK 10 is not installed (https://dotnet.microsoft.com/download); the C# rows are absent" >&2
fi

[ -n "$plan" ] || mkdir -p "$out"

# The contract first: on the Haskell service and on every row in C#.
hold() {
  echo "contract: holding haskell ${1:+and $(basename "$(dirname "$1")") }to it, about a minute"
  local label
  REST_HASKELL="$service" SQL_FILE="$PWD/compare/rest/shared/statements.sql" \
    REST_DOTNET="${1:-}" "$conformance" --format=failed-examples >>"$out/conformance.log" 2>&1 || {
    tail -n 40 "$out/conformance.log" >&2
    echo "compare-rest: the contract is broken; nothing is measured" >&2
    exit 2
  }
  label="$(tail -n 1 "$out/conformance.log")"
  echo "contract: haskell ${1:+and $(basename "$(dirname "$1")") }$label"
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

quiet() {
  [ -z "$plan" ] || return 0
  QUIET_IDLE="$(scripts/quiet.sh)"
  export QUIET_IDLE
}

measure() { # a flag of the user's comes before the part's own, and wins
  quiet
  "$compare" run "${flags[@]}" --out "$out" --haskell "$service" --generator "$generator" \
    --sql compare/rest/shared/statements.sql --scripts compare/rest/wrk "${rows[@]}" "$@" || exit 2
}

case "$part" in
quick) measure --what quick --iterations 2 --seconds 2 --open-seconds 2 --warmup 5 ;;
all)
  measure --what goals
  # Its rows take turns with each other, and with none that was measured an hour before.
  goals="$out"
  out="$goals/study"
  measure --what study --warmup 4
  [ -n "$plan" ] || "$compare" report --out "$out" || failed=$?
  out="$goals"
  ;;
goals) measure --what goals --place standalone-pinned --place standalone-free ;;
standalone) measure --what goals --place standalone-pinned ;;
free) measure --what goals --place standalone-free ;;
cluster) measure --what goals --place cluster-pinned ;;
study) measure --what study --warmup 4 ;; # nothing of it compiles while it runs
autocannon)
  entries=("haskell=$service")
  for row in "${rows[@]}"; do
    [ "$row" = --dotnet ] || entries+=("$row")
  done
  if [ -n "$plan" ]; then
    # Six scenarios.
    count=$((6 * rounds * ${#entries[@]}))
    echo "$count measurements of $seconds s, each after $warmup s of warm-up: about $(((count * (seconds + warmup + 3) + 59) / 60)) min"
    exit
  fi
  cabal build -v1 exe:rest-seed
  quiet
  "$compare" manifest --out "$out" "${rows[@]}"
  SEED_PROGRAM="$(cabal list-bin -v0 exe:rest-seed)" compare/rest/autocannon.sh "$out" "$warmup" "$seconds" "$rounds" "${entries[@]}"
  ;;
esac
if [ -z "$plan" ]; then
  "$compare" report --out "$out"
fi
exit "${failed:-0}"
