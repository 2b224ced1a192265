#!/usr/bin/env bash
# How many callers and connections suit redis-client here: SET, GET and mixed
# with {1, 2, 4, 8, 16, 32, 64} waiting threads and {1, 2, 4} connections. Says
# first how long that takes (a quarter of an hour by default), prints each, then
# the best.
#
#   compare/run-concurrency-tuning.sh [--host HOST --port PORT --password PASSWORD
#     --tls --cluster --duration 10 --key-size 16 --value-size 256 --output FILE]
#
# Results go to a folder under compare/results that is named by the time, so that
# none is overwritten: concurrency-tuning.json, what it was measured with
# (concurrency-tuning.manifest.json) and what was printed (output.txt). With
# --output only the first two, beside FILE.
#
# Without --host it starts a server (with --cluster five primaries) of its own.
set -euo pipefail
cd "$(dirname "$0")/.."
. compare/keep.sh
measure sweep concurrency-tuning "$@"
