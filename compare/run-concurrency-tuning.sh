#!/usr/bin/env bash
# How many callers and connections suit redis-client here: SET, GET and mixed
# with 1, 2, 4 … 4096 waiting threads and 1, 2, 4 and 8 connections, in five turns
# of which each begins at another part of that grid. Says first how long that takes
# (half an hour by default), prints the median and the range of each, then the
# best, with a warning where that lies at the edge of the grid.
#
#   compare/run-concurrency-tuning.sh [--host HOST --port PORT --password PASSWORD
#     --tls --cluster --iterations 5 --duration 1.2 --key-size 16 --value-size 256
#     --output FILE]
#
# It begins once no other program keeps the machine busy (scripts/quiet.sh); BUSY=1
# measures all the same.
#
# Results go to a folder under compare/results that is named by the time, so that
# none is overwritten: concurrency-tuning.json, what it was measured with
# (concurrency-tuning.manifest.json) and what was printed (output.txt). With
# --output only the first two, beside FILE.
#
# Without --host it starts a server (with --cluster five primaries) of its own for
# each turn.
set -euo pipefail
cd "$(dirname "$0")/.."
. compare/keep.sh
measure sweep concurrency-tuning "$@"
