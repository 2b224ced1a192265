#!/usr/bin/env bash
# Compares the quick start of README.md and of client/README.md with the program that is
# compiled and run in its place: examples/Quickstart.hs, between its markers. Says how they
# differ; fails if they do, or if one of them is missing.
set -euo pipefail
cd "$(dirname "$0")/.."

compiled="$(awk '/^-- README ends$/ { exit } inside; /^-- README begins$/ { inside = 1 }' examples/Quickstart.hs)"
status=0
for page in README.md client/README.md; do
  shown="$(awk '/^<!-- quickstart -->$/ { here = 1 } here && /^```$/ { exit } inside; here && /^```haskell$/ { inside = 1 }' "$page")"
  if [ -z "$shown" ] || [ -z "$compiled" ]; then
    echo "the quick start is missing from $page or examples/Quickstart.hs"
    exit 1
  fi
  diff --label "$page" --label examples/Quickstart.hs -u <(printf '%s\n' "$shown") <(printf '%s\n' "$compiled") || status=1
done
exit "$status"
