#!/usr/bin/env bash
# redis-client beside StackExchange.Redis: SET, GET and mixed, equally many
# commands in flight, in five turns of which each begins with another client. Says
# first how long that takes (six minutes by default), prints a table with medians
# and ranges, and ends with 0 if and only if redis-client has at least 90 % of the
# throughput of the fastest version in each, by the median of the turns.
#
#   compare/run-comparison.sh [--host HOST --port PORT --password PASSWORD --tls
#     --cluster --iterations 5 --duration 3.5 --key-size 16 --value-size 256
#     --connections 1 --in-flight 64 --output FILE]
#
# It begins once no other program keeps the machine busy (scripts/quiet.sh); BUSY=1
# measures all the same.
#
# Results go to a folder under compare/results that is named by the time, so that
# none is overwritten: comparison.json, what it was measured with
# (comparison.manifest.json) and what was printed (output.txt). With --output only
# the first two, beside FILE.
#
# Without --host it starts a server (with --cluster five primaries) of its own for
# each turn.
set -euo pipefail
cd "$(dirname "$0")/.."
. compare/keep.sh
measure pair comparison "$@"
