#!/usr/bin/env bash
# Finds the Python that has redis-py; see compare/PROTOCOL.md for what it prints.
set -euo pipefail
cd "$(dirname "$0")"

python=../../../build/newer-clients/python/python
if version="$("$python" peer.py --version 2>/dev/null)"; then
  row() { # row, how callers are made
    echo '{"row": "'"$1"'", "version": "'"$version"'", "origin": "Debian", "run": ["'"$python"'", "peer.py", "'"$2"'"], "cluster": true, "styles": ["wait", "batch"], "language": "Python"}'
  }
else
  row() {
    echo '{"row": "'"$1"'", "absent": "needs Python with redis, hiredis and uvloop from Debian'"'"'s unstable suite: scripts/setup.sh peers"}'
  }
fi
row redis-py threads
row "redis-py asyncio" asyncio
