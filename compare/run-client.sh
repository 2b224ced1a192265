#!/usr/bin/env bash
# Compares the client libraries alone: builds the peers that this machine can
# have, measures all of them in turns, and writes the report.
#
#   compare/run-client.sh [FLAG...]      flags of the runner: --help lists them
#   compare/run-client.sh --plan         only say what that is, and how long it takes
#   QUICK=1 compare/run-client.sh        a few cells, within six minutes
#   FULL=1 compare/run-client.sh         the whole grid, most of a day
#   CHECK=1 compare/run-client.sh        holds every peer to the protocol first
#   BUSY=1 compare/run-client.sh         measures beside other programs (scripts/quiet.sh)
#   SE_REDIS_DIR=DIR[:DIR...]            more versions of StackExchange.Redis
#
# Exit status: 0 every goal reached, 1 goals missed (each is named in the last
# lines), 2 it could not be measured, or other programs kept the machine busy.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/cabal-env.sh

workloads=(one-server cluster crowd operations values free)
# Nothing is overwritten: the second run of a day has its time in its name, too.
output="compare/results/$(date +%F)-client"
[ ! -e "$output" ] || output="compare/results/$(date +%F-%H%M)-client"
flags=(--warmup 0.5 --duration 0.7)
if [ -n "${QUICK:-}" ]; then
  workloads=(quick quick-operations)
  flags=(--iterations 2 --warmup 0.5 --duration 0.5)
  output="compare/results/quick-client"
elif [ -n "${FULL:-}" ]; then
  workloads=(full free)
  flags=(--warmup 1.5 --duration 2)
fi
for workload in "${workloads[@]}"; do
  flags+=(--workload "compare/workloads/$workload.json")
done

# That all do the same work, by provoking each thing that can be wrong: minutes, so
# only if asked for. The runner checks every run in any case, so a failure here is
# told and does not stop the measuring.
if [ -n "${CHECK:-}" ]; then
  compare/peers/check.sh >&2 || echo "compare: a peer does not keep to the protocol; see above" >&2
fi

cabal build -v1 exe:redis-client-compare >&2
exec "$(cabal list-bin -v0 exe:redis-client-compare)" client --output "$output" "${flags[@]}" "$@"
