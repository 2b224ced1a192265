#!/usr/bin/env bash
# A load with faults on private servers, and the audit of what its callers were told
# (lab/soak/src/Soak/Run.hs says what is promised): MINUTES of it (20), by the seed
# SEED (the time, if there is none). Its report is printed, and written as JSON to OUT
# (results/soak). Status 1: the audit failed; 2: it could not be run.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/cabal-env.sh

minutes="${MINUTES:-20}"
seed="${SEED:-$(date +%s)}"
out="${OUT:-results/soak/$(date +%Y%m%d-%H%M%S)-seed-$seed.json}"

cabal build -v1 exe:soak || exit 2
exec "$(cabal list-bin -v0 exe:soak)" "$minutes" "$seed" "$out"
