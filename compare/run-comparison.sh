#!/usr/bin/env bash
# redis-client beside StackExchange.Redis: SET, GET and mixed, equally many
# commands in flight. Prints a table, writes comparison.json, and ends with 0 if
# and only if redis-client has at least 90 % of the other's throughput in each.
#
#   compare/run-comparison.sh [--host HOST --port PORT --password PASSWORD --tls
#     --cluster --duration 30 --key-size 16 --value-size 256 --connections 1
#     --in-flight 64 --output FILE]
#
# Without --host it starts a server (with --cluster five masters) of its own.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/cabal-env.sh

cabal build -v1 exe:redis-client-compare >&2
exec "$(cabal list-bin -v0 exe:redis-client-compare)" pair "$@"
