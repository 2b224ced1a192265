#!/usr/bin/env bash
# Runs the program's benchmark: "suite" (default) measures GET, SET and mixed
# against a server and a cluster of its own; "gate" holds the speed against
# what is demanded and fails where it is certainly missed; "differential" holds our figures against
# those of redis-benchmark; "campaign" varies persistence, sizes, callers and more. Further arguments are handed on.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/cabal-env.sh

mode="${1:-suite}"
[ "$#" -eq 0 ] || shift
mkdir -p results
case "$mode" in
suite) set -- --json results/bench.json "$@" ;;
differential) set -- --json results/differential.json "$@" ;;
gate | campaign) ;;
*)
  echo "bench: unknown mode '$mode': suite, gate, differential or campaign" >&2
  exit 2
  ;;
esac

cabal build -v1 exe:redis-client
exec "$(cabal list-bin -v0 exe:redis-client)" bench "$mode" "$@"
