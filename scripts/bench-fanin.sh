#!/usr/bin/env bash
# Measures how fast messages are taken on one connection, beside hiredis:
# lab/fanin/fanin.py, whose options these are.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/cabal-env.sh

exec lab/fanin/fanin.py "$@"
