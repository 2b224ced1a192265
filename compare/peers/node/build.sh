#!/usr/bin/env bash
# Installs the clients for Node; see compare/PROTOCOL.md for what it prints.
set -euo pipefail
cd "$(dirname "$0")"

clients=(ioredis iovalkey node-redis valkey-glide)
absent() { # row, why
  echo '{"row": "'"$1"'", "absent": "'"$2"'"}'
}
if ! command -v node >/dev/null || ! command -v npm >/dev/null || [ "$(node -p 'process.versions.node.split(".")[0]')" -lt 20 ]; then
  for client in "${clients[@]}"; do absent "$client" "needs npm and Node 20 or later (Debian 12 has 18): install nodejs and npm"; done
  exit 0
fi
if [ ! -e node_modules/.installed ] || [ package-lock.json -nt node_modules/.installed ]; then
  if npm ci --ignore-scripts --no-audit --no-fund >&2; then
    touch node_modules/.installed
  fi
fi
# V8 compiles while it runs, as .NET does: the same warm-up for both.
for client in "${clients[@]}"; do
  if version="$(node -e 'import("./clients/'"$client"'.js").then((client) => { console.log(client.version); process.exit(0); })' 2>/dev/null)"; then
    echo '{"row": "'"$client"'", "version": "'"$version"'", "origin": "npm", "run": ["node", "peer.js", "'"$client"'"], "warmup": 2.5, "cluster": true, "styles": ["wait", "batch"], "language": "JavaScript"}'
  else
    absent "$client" "npm did not install it, or it has no binary for this machine: npm ci in compare/peers/node"
  fi
done
