#!/usr/bin/env bash
# Builds the peer around hedis; see compare/PROTOCOL.md for what it prints.
set -euo pipefail
cd "$(dirname "$0")"
. ../../../scripts/cabal-env.sh

absent() {
  echo '{"row": "hedis", "absent": "needs GHC, cabal and hedis: apt-get install ghc cabal-install libghc-hedis-dev"}'
  exit 0
}
command -v ghc >/dev/null && command -v cabal >/dev/null || absent
mkdir -p build
sources=(.)
[ ! -e ../../../build/newer-clients/hedis ] || sources+=(../../../build/newer-clients/hedis)
# Built when something changed: cabal itself takes a second to see that nothing did.
if [ ! -e build/hedis-peer ] || [ -n "$(find "${sources[@]}" -path ./build -prune -o -newer build/hedis-peer -print)" ]; then
  cabal build -v0 --dry-run --builddir=build/dist exe:hedis-peer >&2 || absent
  cabal build -v1 --builddir=build/dist exe:hedis-peer >&2
  cp "$(cabal list-bin -v0 --builddir=build/dist exe:hedis-peer)" build/hedis-peer
fi
echo '{"row": "hedis", "version": "'"$(build/hedis-peer --version)"'", "origin": "Debian", "run": ["build/hedis-peer"], "cluster": false, "styles": ["wait", "batch"], "language": "Haskell"}'
