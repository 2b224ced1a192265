#!/usr/bin/env bash
# redis-client beside StackExchange.Redis: SET, GET and mixed, equally many
# commands in flight. Says first how long that takes (five minutes by default),
# prints a table, and ends with 0 if and only if redis-client has at least 90 % of
# the other's throughput in each.
#
#   compare/run-comparison.sh [--host HOST --port PORT --password PASSWORD --tls
#     --cluster --duration 30 --key-size 16 --value-size 256 --connections 1
#     --in-flight 64 --output FILE]
#
# Results go to a folder under compare/results that is named by the time, so that
# none is overwritten: comparison.json, what it was measured with
# (comparison.manifest.json) and what was printed (output.txt). With --output only
# the first two, beside FILE.
#
# Without --host it starts a server (with --cluster five primaries) of its own.
set -euo pipefail
cd "$(dirname "$0")/.."
. compare/keep.sh
measure pair comparison "$@"
