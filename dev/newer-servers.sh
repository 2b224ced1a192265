#!/usr/bin/env bash
# Unpacks newer servers than this Debian's own, from other suites of Debian, without installing
# them: each runs with its own libraries.
#
#   dev/newer-servers.sh FOLDER
#
# Leaves FOLDER/redis-8.0, FOLDER/redis-8.6 and FOLDER/valkey-9.1, each with a program "server", and
# prints the programs' paths, one a line. What is there already is not fetched again. Fails if there
# is none: no network, or no Debian.
set -euo pipefail

if [ "$#" -ne 1 ]; then
  echo "usage: dev/newer-servers.sh FOLDER" >&2
  exit 2
fi
mkdir -p "$1"
top="$(cd "$1" && pwd)"
cd "$(dirname "$0")"
. ./other-suites.sh
cd "$top"

# What the servers are linked with. Each name is a package of the suite.
libraries=(libc6 libatomic1 libjemalloc2 liblzf1 libssl3t64 libstdc++6 libsystemd0 libgcc-s1 libcap2 liblzma5 libzstd1 liblz4-1 libgcrypt20 libgpg-error0)

unpack() { # NAME PROGRAM SUITE-OF-THE-SERVER SUITE-OF-THE-LIBRARIES PACKAGE...
  local name="$1" program="$2" suite="$3" base="$4" wanted=()
  shift 4
  if [ ! -x "$name/server" ]; then
    new_lists "deb trixie" "deb sid" "deb experimental" || return 1
    for package in "$@"; do wanted+=("$package/$suite"); done
    for package in "${libraries[@]}"; do wanted+=("$package/$base"); done
    unpack_packages "$name.new" "${wanted[@]}" || return 1
    rm -rf "$name"
    mv "$name.new" "$name"
    printf '#!/bin/sh\n%s\n' "$(own_libraries "$top/$name/files" "$program")" >"$name/server.new"
    chmod +x "$name/server.new"
    "$name/server.new" --version >&2 || return 1
    mv "$name/server.new" "$name/server"
  fi
  echo "$top/$name/server"
}

# One that a suite has no longer does not keep the others away.
found=""
unpack redis-8.0 redis-server trixie trixie redis-tools redis-server && found=yes || true
unpack redis-8.6 redis-server experimental sid redis-tools redis-server && found=yes || true
unpack valkey-9.1 valkey-server sid sid valkey-tools valkey-server && found=yes || true
[ -n "$found" ]
