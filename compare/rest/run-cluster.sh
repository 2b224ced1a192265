#!/usr/bin/env bash
# The REST comparison with a cluster of five primaries: see run.sh.
exec "$(dirname "$0")/run.sh" cluster "$@"
