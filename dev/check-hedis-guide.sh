#!/usr/bin/env bash
# Looks up what docs/guide/from-hedis.md says of this library: each name in the second
# column of its tables, and each Redis.name anywhere. A name with that prefix must be one
# of Redis.Commands, or a module; any other one of the other public modules. Export lists
# decide, and the declarations of types, whose constructors a list only implies by (..).
# Says every name that is none; fails if there is one.
set -euo pipefail
cd "$(dirname "$0")/.."

page=docs/guide/from-hedis.md
src=client/src/Redis
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT

# What modules export, and the constructors and fields of types.
names() {
  awk '
    FNR == 1 { list = 0; type = 0 }
    { sub(/--.*/, "") }
    /^module / { list = 1; next }
    list && /^ *(\) )?where/ { list = 0 }
    list { gsub(/[^A-Za-z0-9_.\047]+/, "\n"); print; next }
    /^[^ ]/ { type = /^(data|newtype) / ; sub(/^[^=]*/, "") }
    type && match($0, /^ *[={,|]? *[A-Za-z0-9_]+/) { name = $0; sub(/^[ ={,|]*/, "", name); sub(/[^A-Za-z0-9_].*/, "", name); print name }
  ' "$@" | sort -u
}

mapfile -t others < <(find client/src -name '*.hs' -not -path "$src/Internal/*" -not -path "$src/Commands/*")
names "$src"/Commands/*.hs "$src"/Internal/Command/*.hs >"$work/commands"
names "${others[@]}" "$src"/Commands/Raw.hs "$src"/Internal/Config.hs "$src"/Internal/Hooks.hs >"$work/others"

# Between backticks in the second column; with the prefix anywhere.
awk -F'|' '
  /^\| hedis \| here / { table = 1; next }
  !/^\|/ { table = 0 }
  table { n = split($3, part, "`"); for (i = 2; i <= n; i += 2) print part[i] }
' "$page" >"$work/column"
grep -oE '(Database\.)?Redis\.[A-Za-z0-9_.]*[A-Za-z0-9_]' "$page" | grep -v '^Database' >"$work/anywhere" || true
if [ ! -s "$work/column" ] || [ ! -s "$work/anywhere" ]; then
  echo "$page has no names"
  exit 1
fi

status=0
while read -r name; do
  case "$name" in
    Redis) continue ;;
    Redis.*)
      bare="${name#Redis.}"
      [ -e "$src/${bare//.//}.hs" ] || grep -qxF -- "$bare" "$work/commands" || { echo "$page: $name is not of Redis.Commands"; status=1; } ;;
    *) grep -qxF -- "$name" "$work/others" || { echo "$page: $name is of no public module"; status=1; } ;;
  esac
done < <(sort -u "$work/column" "$work/anywhere")
exit "$status"
