#!/usr/bin/env bash
# Compares code in the documentation with the programs that are compiled and run in its place: the
# first program of README.md with examples/Hello.hs, the quick start of client/README.md and of
# docs/guide/quickstart.md with examples/Quickstart.hs, the JSON of docs/guide/commands.md with
# examples/JsonValues.hs, and blocks of other guides with the programs of their names: for production, of
# one's own types, of errors, pipelining, workers, scripts, tests and others. On the page it is the first
# block of Haskell behind the tag, in the program what stands between the markers. Says how they
# differ; fails if they do, or if one of them is missing.
set -euo pipefail
cd "$(dirname "$0")/.."

status=0

# check TAG MARKER PROGRAM PAGE...
check() {
  local tag="$1" marker="$2" program="$3" compiled shown page
  shift 3
  compiled="$(awk -v end="-- $marker ends" -v begin="-- $marker begins" '$0 == end { exit } inside; $0 == begin { inside = 1 }' "$program")"
  for page in "$@"; do
    shown="$(awk -v tag="<!-- $tag -->" '$0 == tag { here = 1 } here && /^```$/ { exit } inside; here && /^```haskell$/ { inside = 1 }' "$page")"
    if [ -z "$shown" ] || [ -z "$compiled" ]; then
      echo "the code '$tag' is missing from $page or $program"
      exit 1
    fi
    diff --label "$page" --label "$program" -u <(printf '%s\n' "$shown") <(printf '%s\n' "$compiled") || status=1
  done
}

check hello FIRST examples/Hello.hs README.md
check quickstart README examples/Quickstart.hs client/README.md docs/guide/quickstart.md
check json SHOWN examples/JsonValues.hs docs/guide/commands.md
for tag in newtypes keys reader; do check "$tag" "${tag^^}" examples/OwnTypes.hs docs/guide/your-own-types.md; done
for tag in tls mtls; do check "$tag" "${tag^^}" examples/Production.hs docs/guide/tls.md; done
for tag in ready stopping mapping; do check "$tag" "${tag^^}" examples/Production.hs docs/guide/kubernetes.md; done
check passing PASSING examples/ErrorsAndRetries.hs docs/guide/errors-and-retries.md
check load LOAD examples/Pipelining.hs docs/guide/pipelining.md
check revive REVIVE examples/Worker.hs docs/guide/workers.md
check settings SETTINGS examples/Production.hs docs/guide/production.md
check fields FIELDS examples/Scripts.hs docs/guide/scripts.md
check lost LOST examples/Testing.hs docs/guide/testing.md
check drill DRILL examples/Testing.hs docs/guide/production.md
check tokens TOKENS examples/Production.hs docs/guide/managed.md
for tag in indexed searched brute; do check "$tag" "${tag^^}" examples/Vectors.hs docs/guide/vectors.md; done
for tag in repeated counted queued; do check "$tag" "${tag^^}" examples/InDoubt.hs docs/guide/troubleshooting.md; done
exit "$status"
