#!/usr/bin/env bash
# Writes the pages of the library, as Hackage takes them. Fails if something that is
# exported for users has no documentation, or if a page refers to what there is not.
# What is exposed for the tests alone has no page.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/cabal-env.sh

log="$(mktemp)"
trap 'rm -f "$log"' EXIT
mapfile -t hidden < <(grep -oP '^    \KRedis\.Internal\.[\w.]+$' client/redis-client.cabal | sed 's/^/--haddock-option=--hide=/')
if ! cabal haddock -v1 --haddock-for-hackage "${hidden[@]}" redis-client:lib:redis-client >"$log" 2>&1; then
  cat "$log" >&2
  exit 1
fi

# What lacks documentation follows the coverage of its module. Names of other packages, which
# stand there without a place in the sources, have it in theirs.
awk '
  /out of scope|is ambiguous|is not exported|parse error/ { print; bad = 1 }
  /^ +[0-9]+% \(/ { modules += 1; module = $NF }
  (/^ +Module header$/ || /^ +[^ ]+ \(src\/.*\)$/) && module !~ /Redis\.Internal/ { print "not documented in " module ":" $0; bad = 1 }
  END {
    if (modules < 50) { print "haddock told of " modules + 0 " modules only"; bad = 1 }
    exit bad
  }
' "$log" >&2

grep -A 1 "tarball created" "$log" | tail -n 1
