#!/usr/bin/env bash
# Measures what the setting reply_checks costs: lab/checks/checks.py, whose options these are.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/cabal-env.sh

exec lab/checks/checks.py "$@"
