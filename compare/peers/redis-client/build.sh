#!/usr/bin/env bash
# This project's own library: the program is in compare/runner/peer.
set -euo pipefail
cd "$(dirname "$0")/../../.."
. scripts/cabal-env.sh

cabal build -v1 exe:redis-client-peer >&2
version="$(awk '$1 == "version:" { print $2 }' client/redis-client.cabal)"
printf '{"row": "redis-client", "version": "%s", "origin": "this repository", "language": "Haskell", "run": ["%s"], "cluster": true, "styles": ["wait", "batch"]}\n' \
  "$version" "$(cabal list-bin -v0 exe:redis-client-peer)"
