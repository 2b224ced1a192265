#!/usr/bin/env bash
# Enforces what no compiler does: the library's modules import downwards only
# (dev/layers), nobody else imports its internal ones, none of those is exposed that no
# test imports, and no source has tabs or trailing blanks. Says every violation; fails if
# there is one.
set -euo pipefail
cd "$(dirname "$0")/.."

mapfile -t sources < <(find . \( -name dist-newstyle -o -name build -o -name node_modules \) -prune -o -name '*.hs' -print | sed 's|^\./||' | sort)
status=0

awk '
  function layer_of(name,    prefix, found) {
    if (name in exact) return exact[name]
    prefix = name
    while (sub(/\.[^.]*$/, "", prefix))
      if (prefix in below) return below[prefix]
    return ""
  }
  FILENAME == "dev/layers" {
    if ($1 == "" || $1 ~ /^#/) next
    if (!($1 in rank)) rank[$1] = ++ranks
    for (i = 2; i <= NF; i++)
      if (sub(/\.\*$/, "", $i)) below[$i] = $1
      else exact[$i] = $1
    next
  }
  FNR == 1 {
    name = FILENAME
    sub(/^client\/src\//, "", name); sub(/\.hs$/, "", name); gsub("/", ".", name)
    own = layer_of(name)
    if (own == "") { print FILENAME ": " name " has no layer in dev/layers"; bad = 1 }
  }
  /^import / {
    imported = ($2 == "qualified" || $2 == "safe" || $2 == "{-#") ? $3 : $2
    if (imported !~ /^Redis(\.|$)/ || own == "") next
    theirs = layer_of(imported)
    if (theirs == "")
      { print FILENAME ":" FNR ": " imported " has no layer in dev/layers"; bad = 1 }
    else if (rank[theirs] > rank[own])
      { print FILENAME ":" FNR ": " name " (" own ") imports " imported " (" theirs ")"; bad = 1 }
  }
  END { exit bad }
' dev/layers $(printf '%s\n' "${sources[@]}" | grep '^client/src/') || status=1

# The tool, the examples, the comparison and the measurements are users.
if printf '%s\n' "${sources[@]}" | grep -v '^client/' | xargs grep -nE '^import +(qualified +)?Redis\.Internal'; then
  echo "Redis.Internal is imported outside of client/"
  status=1
fi

if comm -23 \
  <(sed -n '/^  exposed-modules:/,/^  other-modules:/p;/^  other-modules:/q' client/redis-client.cabal | grep -oP 'Redis\.Internal\.[\w.]+' | sort) \
  <(grep -rhoP --include='*.hs' '^import +(qualified +)?\KRedis\.Internal\.[\w.]+' client/test client/bench | sort -u) | grep .; then
  echo "exposed, though no test imports it: a line of other-modules in client/redis-client.cabal"
  status=1
fi

if grep -nP '\t|[ \r]+$' -- "${sources[@]}"; then
  echo "tabs or trailing blanks"
  status=1
fi
exit "$status"
