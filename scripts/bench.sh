#!/usr/bin/env bash
# Runs what this project measures itself with (lab/bench): "suite" (default) measures GET,
# SET and mixed against a server and a cluster of its own; "gate" holds the speed against
# what is demanded, and what the program itself costs against its bounds, and fails where
# one is certainly missed; "differential" holds our figures against those of
# redis-benchmark; "moving" counts the reads at replicas that miss a key while its slot
# moves. And the program's "campaign", which varies persistence, sizes, callers and more.
# Further arguments are handed on. All but "suite", which is a first look and keeps nothing, and "moving",
# which only counts, wait until no other program keeps the machine busy (scripts/quiet.sh).
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/cabal-env.sh

mode="${1:-suite}"
[ "$#" -eq 0 ] || shift
mkdir -p results
program=redis-client-lab
case "$mode" in
suite) set -- suite --json results/bench.json "$@" ;;
differential) set -- differential --json results/differential.json "$@" ;;
moving) set -- moving --json results/moving.json "$@" ;;
gate) set -- gate "$@" ;;
campaign)
  program=redis-client
  set -- bench campaign "$@"
  ;;
*)
  echo "bench: unknown mode '$mode': suite, gate, differential, moving or campaign" >&2
  exit 2
  ;;
esac

cabal build -v1 "exe:$program"
if [ "$mode" != suite ] && [ "$mode" != moving ]; then
  QUIET_IDLE="$(scripts/quiet.sh "$@")"
  export QUIET_IDLE
fi
exec "$(cabal list-bin -v0 "exe:$program")" "$@"
