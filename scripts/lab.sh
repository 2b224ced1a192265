#!/usr/bin/env bash
# Makes one of the measurements below lab/: NAME, then the options of lab/NAME/NAME.py, which says
# what it measures (--help).
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/cabal-env.sh

exec "lab/$1/$1.py" "${@:2}"
