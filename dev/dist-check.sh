#!/usr/bin/env bash
# Installs the Debian package and unpacks the tarball of build/dist in an empty Debian, without a
# compiler, and runs the program there: a load on a server that it starts itself, its man page and
# its completion.
#
#   dev/dist-check.sh ROOT
#
# ROOT is the root folder of a Debian system, such as "debootstrap --variant=minbase bookworm ROOT"
# makes one. Needs root's rights, for chroot, and a network, for what the package depends on.
set -euo pipefail
cd "$(dirname "$0")/.."

if [ "$#" -ne 1 ]; then
  echo "usage: dev/dist-check.sh ROOT" >&2
  exit 2
fi
root="$1"
place=/redis-client-dist
rm -rf "$root$place"
mkdir -p "$root$place"
cp build/dist/*.deb build/dist/redis-client-*-linux-*.tar.gz "$root$place"

inside='
  set -euo pipefail
  cd "$1"
  export DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8
  printf "#!/bin/sh\nexit 101\n" >/usr/sbin/policy-rc.d
  chmod 755 /usr/sbin/policy-rc.d
  apt-get update -q
  apt-get install -qy --reinstall --no-install-recommends ./*.deb redis-server redis-tools man-db
  ! command -v ghc
  redis-client --version
  redis-client bench --requests 20000 --threads 4 --brief
  man -P cat redis-client-bench | grep -q "value-size"
  redis-client --bash-completion-index 1 --bash-completion-word redis-client --bash-completion-word b | grep -qx bench
  tar -xf redis-client-*.tar.gz
  redis-client-*/bin/redis-client --version
'
mounted=""
if [ ! -e "$root/proc/self" ]; then
  mount -t proc proc "$root/proc"
  mounted=yes
fi
status=0
chroot "$root" /bin/bash -c "$inside" inside "$place" || status=$?
[ -z "$mounted" ] || umount "$root/proc"
exit "$status"
