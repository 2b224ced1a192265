#!/usr/bin/env bash
# Builds the C peer; see compare/PROTOCOL.md for what it prints.
set -euo pipefail
cd "$(dirname "$0")"

if ! command -v gcc >/dev/null || ! printf '#include <hiredis/hiredis.h>\n' | gcc -E -x c - >/dev/null 2>&1; then
  echo '{"row": "hiredis", "absent": "needs a C compiler and hiredis: apt-get install gcc libhiredis-dev"}'
  exit 0
fi
mkdir -p build
for program in peer; do
  if [ ! -e "build/$program" ] || [ -n "$(find . -maxdepth 1 -name '*.[ch]' -newer "build/$program")" ]; then
    gcc -O3 -march=native -std=gnu11 -Wall -Wextra -o "build/$program" "$program.c" load.c -lhiredis -lm >&2
  fi
done
version="$(printf '#include <hiredis/hiredis.h>\nHIREDIS_MAJOR.HIREDIS_MINOR.HIREDIS_PATCH\n' | gcc -E -P -x c - | tail -n 1 | tr -d ' ')"
echo '{"row": "hiredis", "version": "'"$version"'", "origin": "Debian", "run": ["build/peer"], "cluster": true, "styles": ["wait", "batch"], "limit": true, "language": "C"}'
