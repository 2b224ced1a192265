#!/usr/bin/env bash
# Measures a walk over ten million keys beside redis-cli --scan: lab/scan/scan.py,
# whose options these are.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/cabal-env.sh

exec lab/scan/scan.py "$@"
