#!/usr/bin/env bash
# Compares the README's quick start with the program that is compiled and run
# in its place: examples/Quickstart.hs, between its markers. Says how they
# differ; fails if they do, or if one of them is missing.
set -euo pipefail
cd "$(dirname "$0")/.."

shown="$(awk '/^<!-- quickstart -->$/ { here = 1 } here && /^```$/ { exit } inside; here && /^```haskell$/ { inside = 1 }' README.md)"
compiled="$(awk '/^-- README ends$/ { exit } inside; /^-- README begins$/ { inside = 1 }' examples/Quickstart.hs)"

if [ -z "$shown" ] || [ -z "$compiled" ]; then
  echo "the quick start is missing from README.md or examples/Quickstart.hs"
  exit 1
fi
diff --label README.md --label examples/Quickstart.hs -u <(printf '%s\n' "$shown") <(printf '%s\n' "$compiled")
