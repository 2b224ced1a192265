#!/usr/bin/env bash
# What the commands cost to compile: seconds and bytes of each module below
# Redis.Commands, of each command in it, and of 400 such commands. Prints tables for
# docs/measurements.md.
#
#   dev/compile-cost.sh [REVISION]      of a revision; of the working tree if none is named
#   RUNS=5 dev/compile-cost.sh          compile so often (default: 3) and take the least
#
# Seconds are the compiler's own per module (-ddump-timings): processor time, with
# code generation and without the assembler, least of all runs. Allocation is that of
# the compiler, and hardly differs from run to run. The object's file is what a
# build writes; code and data are what a program takes of it. Commands are the exported
# names whose result is a Command.
set -euo pipefail
cd "$(dirname "$0")/.."

place="$(mktemp -d)"
tree="$PWD"
what="the working tree at $(git describe --always --dirty)"
finish() {
  [ "$tree" = "$PWD" ] || git worktree remove --force "$tree"
  rm -rf "$place"
}
trap finish EXIT
if [ -n "${1:-}" ]; then
  git worktree add --quiet --detach "$place/tree" "$1"
  tree="$place/tree"
  what="$(git rev-parse --short=12 "$1^{commit}")"
fi

level="$(awk '$1 == "optimization:" { print $2 }' "$tree/cabal.project")"
# The extensions that the library is compiled with.
mapfile -t extensions < <(awk '
  /^ *default-extensions:/ { inside = 1; next }
  inside && /:/ { exit }
  inside && NF { print "-X" $1 }' "$tree/client/redis-client.cabal")

ghc_here() { # FOLDER FLAG...
  (cd "$tree/client" && ghc -v0 -XHaskell2010 "${extensions[@]}" -isrc -outputdir "$place/$1" "${@:2}")
}

# It says each phase on its outputs too.
compile() {
  ghc_here out "-O$level" -ddump-timings -ddump-to-file -dumpdir "$place/out/" Redis.Commands >"$place/log" 2>&1 ||
    { grep -vE '^\*\*\*|^ {10}|: alloc=' "$place/log" >&2; return 1; }
}

runs="${RUNS:-3}"
for ((run = 1; run <= runs; run++)); do
  rm -rf "$place/out"
  compile
  # MODULE milliseconds bytes
  find "$place/out/src" -name '*.dump-timings' -path '*/Redis/Commands*' | while read -r file; do
    module="$(sed "s|^$place/out/src/||; s|\.dump-timings$||; s|/|.|g" <<<"$file")"
    awk -v module="$module" '
      { for (i = 1; i <= NF; i++) {
          if ($i ~ /^time=/) time += substr($i, 6)
          if ($i ~ /^alloc=/) alloc += substr($i, 7) } }
      END { print module, time, alloc }' "$file"
  done
done >"$place/timings"

# MODULE commands
mapfile -t modules < <(awk '{ print $1 }' "$place/timings" | sort -u)
for module in "${modules[@]}"; do
  printf '%s ' "$module"
  ghc_here browsed -O0 -fobject-code -dppr-cols=100000 -e ":browse $module" Redis.Commands |
    awk '/^[a-z][^ ]* :: / { sub(/.*(->|=>|::) */, ""); if ($1 ~ /^(.*[.])?Command$/) commands++ } END { print commands + 0 }'
done >"$place/commands"

# MODULE file text+data
for module in "${modules[@]}"; do
  object="$place/out/${module//.//}.o"
  echo "$module $(stat -c %s "$object") $(size "$object" | awk 'NR == 2 { print $1 + $2 }')"
done >"$place/objects"

echo "$what; $(ghc --version | sed 's/.*version /GHC /') -O$level; $(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -n 1), $(nproc) cores; $(date +%F); least of $runs"
echo
echo "| module | commands | s | MB allocated | object, bytes | code and data | s per command | object per command |"
echo "|---|--:|--:|--:|--:|--:|--:|--:|"
awk '
  function each(amount, format) { return commands[$1] > 0 ? sprintf(format, amount / commands[$1]) : "" }
  FILENAME ~ /timings$/ {
    if (!($1 in time) || $2 < time[$1]) time[$1] = $2
    if (!($1 in alloc) || $3 < alloc[$1]) alloc[$1] = $3
    next
  }
  FILENAME ~ /commands$/ { commands[$1] = $2; next }
  {
    # The module that only exports the others again has no commands of its own.
    if ($1 == "Redis.Commands") commands[$1] = 0
    printf "| `%s` | %d | %.2f | %.0f | %d | %d | %s | %s |\n", $1, commands[$1], time[$1] / 1e3, alloc[$1] / 1e6, $2, $3,
      each(time[$1] / 1e3, "%.3f"), each($2, "%.0f")
    all += commands[$1]; seconds += time[$1] / 1e3; megabytes += alloc[$1] / 1e6; file += $2; code += $3
  }
  END {
    if (all == 0) { print "no commands found" > "/dev/stderr"; exit 1 }
    printf "| all | %d | %.2f | %.0f | %d | %d | %.3f | %.0f |\n", all, seconds, megabytes, file, code, seconds / all, file / all
    printf "| 400 at this mean | 400 | %.1f | %.0f | %d | %d | | |\n", seconds / all * 400, megabytes / all * 400, file / all * 400, code / all * 400
  }' "$place/timings" "$place/commands" "$place/objects"
