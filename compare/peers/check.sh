#!/usr/bin/env bash
# Checks that the peers named (all, if none is) keep to compare/PROTOCOL.md.
set -euo pipefail
cd "$(dirname "$0")"
if ! command -v python3 >/dev/null; then
  echo "check: needs python3 (apt-get install python3)" >&2
  exit 1
fi
exec python3 check.py "$@"
