#!/usr/bin/env bash
# Checks style: HLint, the formatter, the rules of dev/check-layers.sh, that the
# README shows the quick start that is compiled (dev/check-readme.sh), that the commands which
# pages name exist (dev/check-commands.py), and that the
# command table is what dev/command-table.py makes of dev/commands, and docs/commands.md
# what "make coverage" writes. No function of the library or the tool has more than five parameters
# (dev/check-parameters.py). What docs/guide/from-hedis.md names is there
# (dev/check-hedis-guide.sh), and so is what pages link to (dev/check-links.py). Tables and
# pictures of what was measured are what the raw data say (dev/figures.py), and what the README and
# the guides say besides names its run (dev/check-measured.py). Everything that is exported for
# users is documented, and what it refers to exists (scripts/doc.sh).
# "scripts/lint.sh --fix" formats instead of complaining.
set -euo pipefail
cd "$(dirname "$0")/.."

mapfile -t all < <(find . \( -name dist-newstyle -o -name build -o -name node_modules \) -prune -o -name '*.hs' -print | sed 's|^\./||' | sort)
mapfile -t library < <(printf '%s\n' "${all[@]}" | grep -E '/(src|app)/' || true)
mapfile -t tests < <(printf '%s\n' "${all[@]}" | grep -vE '/(src|app)/' || true)

# -e: with the extensions that the cabal files turn on.
if [ "${1:-}" = --fix ]; then
  ormolu -e --mode inplace "${all[@]}"
  exit 0
fi

status=0
echo "== ormolu"
ormolu -e --mode check "${all[@]}" || status=1
echo "== hlint"
[ "${#library[@]}" -eq 0 ] || hlint -j --hint=.hlint.yaml "${library[@]}" || status=1
[ "${#tests[@]}" -eq 0 ] || hlint -j --hint=dev/hlint-tests.yaml "${tests[@]}" || status=1
echo "== layers"
dev/check-layers.sh || status=1
echo "== parameters"
dev/check-parameters.py || status=1
echo "== readme"
dev/check-readme.sh || status=1
dev/check-commands.py || status=1
echo "== figures"
dev/figures.py check || status=1
dev/check-measured.py || status=1
echo "== links"
dev/check-links.py || status=1
echo "== guide from hedis"
dev/check-hedis-guide.sh || status=1
echo "== command table"
dev/command-table.py check || status=1
echo "== documentation"
scripts/doc.sh >/dev/null || status=1
echo "== commands"
. scripts/cabal-env.sh
cabal run -v0 redis-client:test:coverage -- check docs/commands.md || status=1
exit "$status"
