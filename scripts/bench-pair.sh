#!/usr/bin/env bash
# Measures the working tree against another revision, in pairs: lab/pair/pair.py,
# whose options these are.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/cabal-env.sh

exec lab/pair/pair.py "$@"
