#!/usr/bin/env bash
# The REST comparison with one Redis server: see run.sh.
exec "$(dirname "$0")/run.sh" standalone "$@"
