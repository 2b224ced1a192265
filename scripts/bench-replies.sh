#!/usr/bin/env bash
# Measures large replies beside hiredis, and typed commands beside raw ones:
# lab/replies/replies.py, whose options these are.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/cabal-env.sh

exec lab/replies/replies.py "$@"
