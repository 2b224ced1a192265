#!/usr/bin/env bash
# Builds the C peers, with the newer hiredis where that was fetched; see
# compare/PROTOCOL.md for what it prints.
set -euo pipefail
cd "$(dirname "$0")"

# Linked statically, so that it needs nothing where it runs.
newer=../../../build/newer-clients/hiredis
flags=() library=(-lhiredis) sources=(.)
if [ -e "$newer" ]; then
  flags=(-I"$newer/files/usr/include")
  library=("$newer"/files/usr/lib/*/libhiredis.a)
  sources+=("$newer/versions")
fi
if ! command -v gcc >/dev/null || ! printf '#include <hiredis/hiredis.h>\n' | gcc "${flags[@]}" -E -x c - >/dev/null 2>&1; then
  for name in hiredis "hiredis async"; do
    echo '{"row": "'"$name"'", "absent": "needs a C compiler and hiredis: apt-get install gcc libhiredis-dev"}'
  done
  exit 0
fi
mkdir -p build
make_program() { # name, libraries...
  local name="$1"
  shift
  if [ ! -e "build/$name" ] || [ -n "$(find "${sources[@]}" -maxdepth 1 -type f -newer "build/$name")" ]; then
    gcc -O3 -march=native -std=gnu11 -Wall -Wextra "${flags[@]}" -o "build/$name" "$name.c" load.c nodes.c "${library[@]}" "$@" -lm >&2
  fi
}
version="$(printf '#include <hiredis/hiredis.h>\nHIREDIS_MAJOR.HIREDIS_MINOR.HIREDIS_PATCH\n' | gcc "${flags[@]}" -E -P -x c - | tail -n 1 | tr -d ' ')"
row() { # row, program
  echo '{"row": "'"$1"'", "version": "'"$version"'", "origin": "Debian", "run": ["build/'"$2"'"], "cluster": true, "styles": ["wait", "batch"], "limit": true, "language": "C"}'
}

make_program peer
row hiredis peer
if printf '#include <ev.h>\n' | gcc -E -x c - >/dev/null 2>&1; then
  make_program async -lev
  row "hiredis async" async
else
  echo '{"row": "hiredis async", "absent": "needs libev: apt-get install libev-dev"}'
fi
