#!/usr/bin/env bash
# Measures when callers that wait are back while their server is frozen:
# lab/frozen/frozen.py, whose options these are.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/cabal-env.sh

exec lab/frozen/frozen.py "$@"
