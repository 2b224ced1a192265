#!/usr/bin/env bash
# What the runtime's settings, the HTTP layer and the way to JSON each give: see
# run.sh.
exec "$(dirname "$0")/run.sh" study "$@"
