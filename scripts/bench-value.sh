#!/usr/bin/env bash
# Measures one GET of a large value beside hiredis: lab/value/value.py, whose options
# these are.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/cabal-env.sh

exec lab/value/value.py "$@"
