#!/usr/bin/env bash
# What everybody runs before a commit: compiles what the quick suites need, runs them, several
# at a time, and the quick part of the lint. Ends with "N passed, N failed"; fails if
# anything did, or if no test ran. scripts/verify.sh runs the rest. "--no-lint" leaves out
# the lint, for systems whose formatter is another one.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/cabal-env.sh
. scripts/counting.sh

targets=()
for suite in "${quick_suites[@]}"; do
  targets+=("$(target_of "$suite")")
done
begun=$SECONDS
cabal build -v1 "${targets[@]}"
echo "== compiled: $((SECONDS - begun)) s"

run_suites "${quick_suites[@]}"
[ "${1:-}" = --no-lint ] || check "lint, the quick part" scripts/lint.sh quick
finish
