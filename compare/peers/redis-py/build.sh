#!/usr/bin/env bash
# Finds the Python that has redis-py; see compare/PROTOCOL.md for what it prints.
set -euo pipefail
cd "$(dirname "$0")"

row() { # row, how callers are made, python, version
  echo '{"row": "'"$1"'", "version": "'"$4"'", "origin": "Debian", "run": ["'"$3"'", "peer.py", "'"$2"'"], "cluster": true, "styles": ["wait", "batch"], "language": "Python"}'
}
for python in python3 /usr/bin/python3; do
  # Without hiredis its parser is one in Python, which no one would choose for speed.
  if version="$("$python" -c 'import hiredis, redis, redis.asyncio.cluster; print(redis.__version__)' 2>/dev/null)"; then
    row redis-py threads "$python" "$version"
    row "redis-py asyncio" asyncio "$python" "$version"
    exit 0
  fi
done
for name in redis-py "redis-py asyncio"; do
  echo '{"row": "'"$name"'", "absent": "needs Python 3 with redis, hiredis and uvloop: apt-get install python3-redis python3-hiredis python3-uvloop"}'
done
