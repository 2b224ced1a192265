#!/usr/bin/env bash
# How many callers and connections suit redis-client here: SET, GET and mixed
# with {1, 2, 4, 8, 16, 32, 64} waiting threads and {1, 2, 4} connections. Prints
# each, then the best; writes concurrency-tuning.json.
#
#   compare/run-concurrency-tuning.sh [--host HOST --port PORT --password PASSWORD
#     --tls --cluster --duration 10 --key-size 16 --value-size 256 --output FILE]
#
# Without --host it starts a server (with --cluster five masters) of its own.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/cabal-env.sh

cabal build -v1 exe:redis-client-compare >&2
exec "$(cabal list-bin -v0 exe:redis-client-compare)" sweep "$@"
