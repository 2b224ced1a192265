#!/usr/bin/env bash
# Checks that scripts/counting.sh counts each suite once, when it ends, though another job of the
# same shell has ended before. The suites are made up here: each ends once the one before it was
# counted.
set -euo pipefail
cd "$(dirname "$0")/.."
LANES=2
. scripts/counting.sh
folder="$(mktemp -d)"
trap 'jobs -p | xargs -r kill 2>/dev/null || true; rm -rf "$folder" "$wrong"' EXIT

run_suite() {
  until [ -e "$folder/before-$1" ]; do sleep 0.01; done
}

count_suite() {
  counted+=("$1")
  touch "$folder/before-$(($1 + 1))"
}

counted=()
true &
while kill -0 "$!" 2>/dev/null; do sleep 0.01; done
touch "$folder/before-1"
run_suites 1 2 3 4 >/dev/null
if [ "${counted[*]}" != "1 2 3 4" ]; then
  echo "scripts/counting.sh counted the suites 1 2 3 4 as: ${counted[*]}"
  exit 1
fi
