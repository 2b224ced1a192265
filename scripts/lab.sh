#!/usr/bin/env bash
# Makes one of the measurements below lab/: NAME, then the options of lab/NAME/NAME.py, which says
# what it measures (--help). After the build it waits until no other program keeps the machine busy
# (scripts/quiet.sh); BUSY=1 measures all the same.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/cabal-env.sh

exec "lab/$1/$1.py" "${@:2}"
