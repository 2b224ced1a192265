#!/usr/bin/env bash
# Checks style and pages. Every check is a program of its own in dev/, and says there what it
# checks.
#
#   scripts/lint.sh            everything
#   scripts/lint.sh quick      what takes seconds; HLint and the formatter for what has changed
#                              since the branch that this one follows
#   scripts/lint.sh --fix      formats instead of complaining
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/cabal-env.sh

case "${1:-}" in
"" | quick | --fix) ;;
*)
  echo "lint: there is no '$1' (quick or --fix)" >&2
  exit 2
  ;;
esac

every_source() {
  find . \( -name dist-newstyle -o -name build -o -name node_modules \) -prune -o -name '*.hs' -print | sed 's|^\./||' | sort
}

# What is new beside the upstream branch, or beside the last commit where there is none; with a
# sdist, which has no history, everything.
changed_sources() {
  local base
  if ! git rev-parse --git-dir >/dev/null 2>&1; then
    every_source
    return
  fi
  base="$(git merge-base HEAD '@{upstream}' 2>/dev/null || git rev-parse HEAD)"
  { git diff --name-only --diff-filter=d "$base" -- '*.hs'; git ls-files --others --exclude-standard -- '*.hs'; } | sort -u
}

if [ "${1:-}" = quick ]; then
  mapfile -t sources < <(changed_sources)
else
  mapfile -t sources < <(every_source)
fi
mapfile -t library < <(printf '%s\n' "${sources[@]}" | grep -E '/(src|app)/' || true)
mapfile -t tests < <(printf '%s\n' "${sources[@]}" | grep -E '\.hs$' | grep -vE '/(src|app)/' || true)

# -e: with the extensions that the cabal files turn on.
formatter() {
  printf '%s\0' "${sources[@]}" | xargs -0 -r -n 40 -P "$(nproc)" ormolu -e --mode "$1"
}

if [ "${1:-}" = --fix ]; then
  formatter inplace
  exit 0
fi

status=0
step() { # NAME COMMAND...
  local begun=$SECONDS
  echo "== $1"
  "${@:2}" || status=1
  [ "$((SECONDS - begun))" -lt 5 ] || echo "   $((SECONDS - begun)) s"
}

[ "${#sources[@]}" -eq 0 ] || step ormolu formatter check
[ "${#library[@]}" -eq 0 ] || step "hlint" hlint -j --hint=.hlint.yaml "${library[@]}"
[ "${#tests[@]}" -eq 0 ] || step "hlint of tests" hlint -j --hint=dev/hlint-tests.yaml "${tests[@]}"
step "layers" dev/check-layers.sh
step "parameters" dev/check-parameters.py
step "counting" timeout 60 dev/check-counting.sh
step "quiet" timeout 60 dev/check-quiet.sh
step "code in pages" dev/check-code.py
step "commands in pages" dev/check-commands.py
step "tests of figures" dev/figures-test.py -q
step "figures" dev/figures.py check
step "measured figures" dev/check-measured.py
step "links" dev/check-links.py
step "guide from hedis" dev/check-hedis-guide.sh
step "lists in guides" dev/check-guides.py
step "command table" dev/command-table.py check
step "page of commands" cabal run -v0 redis-client:test:coverage -- check docs/commands.md
if [ "${1:-}" != quick ]; then
  step "documentation" scripts/doc.sh
fi
exit "$status"
