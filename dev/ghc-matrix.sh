#!/usr/bin/env bash
# Builds and tests everything with the compilers of other Debian releases.
#
#   dev/ghc-matrix.sh ROOT...
#
# Each ROOT is the root folder of a Debian system, such as
# "debootstrap --variant=minbase trixie ROOT" makes one. What is missing there
# is installed (scripts/setup.sh), the sources are copied there, and all is
# compiled with warnings as errors and tested, once with each server found
# there. Needs root's rights, for chroot. What was compiled stays, for a faster
# second time. Ends with a line for each ROOT; fails if one of them failed.
set -euo pipefail
cd "$(dirname "$0")/.."

if [ "$#" -eq 0 ]; then
  echo "usage: dev/ghc-matrix.sh ROOT..." >&2
  exit 2
fi

# Where the sources go, in a root.
place=/redis-client-matrix

# The sources as they are now; the times of files stay, so that cabal compiles
# only what is new.
copy_to() {
  mkdir -p "$1"
  find "$1" -mindepth 1 -maxdepth 1 ! -name dist-newstyle -exec rm -rf {} +
  find . -mindepth 1 -maxdepth 1 ! -name '.git' ! -name dist-newstyle ! -name results ! -name build -print0 |
    tar --exclude=dist-newstyle --exclude=build --exclude=node_modules --null --files-from=- -cf - |
    tar -C "$1" -xf -
}

# What happens in a root.
inside='
  set -euo pipefail
  cd "$1"
  export CABAL_CONFIG="$1/cabal.config.offline" LC_ALL=C.UTF-8
  scripts/setup.sh
  ghc --version
  cabal build -v1 --ghc-options=-Werror all
  status=0
  for server in redis-server valkey-server; do
    REDIS_TESTKIT_SERVER="$(command -v "$server")" || continue
    export REDIS_TESTKIT_SERVER
    "$server" --version
    scripts/test.sh --no-lint || status=1
  done
  exit "$status"
'

results=()
status=0
for root in "$@"; do
  echo "== $root"
  copy_to "$root$place"
  # Programs in there look for themselves and for their threads in /proc.
  mounted=""
  if [ ! -e "$root/proc/self" ]; then
    mount -t proc proc "$root/proc"
    mounted=yes
  fi
  # A new root does not know the name of its own machine's loopback.
  [ -e "$root/etc/hosts" ] || printf '127.0.0.1 localhost\n::1 localhost\n' >"$root/etc/hosts"
  outcome=passed
  chroot "$root" /bin/bash -c "$inside" matrix "$place" || outcome=failed
  # While /proc is there: newer compilers find their libraries through it.
  version="$(chroot "$root" ghc --numeric-version || echo none)"
  [ -z "$mounted" ] || umount "$root/proc"
  [ "$outcome" = passed ] || status=1
  results+=("$root: GHC $version: $outcome")
done
printf '%s\n' "${results[@]}"
exit "$status"
