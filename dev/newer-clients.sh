#!/usr/bin/env bash
# Unpacks the client libraries of Debian's unstable suite for the comparison, without installing
# them, with what is needed to build or to run them.
#
#   dev/newer-clients.sh FOLDER
#
# Leaves a folder below FOLDER for each: hiredis, hedis, go (go-redis, redigo, and Go itself), rust
# (redis-rs and the crates that it is built with) and python (redis-py, and a Python that runs with
# its own libraries). Each has a file "versions". What is there already is not fetched again. Says
# what cannot be had, and then fails.
set -euo pipefail

if [ "$#" -ne 1 ]; then
  echo "usage: dev/newer-clients.sh FOLDER" >&2
  exit 2
fi
mkdir -p "$1"
top="$(cd "$1" && pwd)"
cd "$(dirname "$0")"
. ./other-suites.sh
cd "$top"

suite=sid
lists() {
  new_lists "deb $suite" "deb-src $suite"
}

missing=()
unpack() { # NAME PACKAGE...
  local name="$1"
  shift
  [ ! -e "$name" ] || return 0
  if lists && unpack_packages "$name.new" "${@/%//$suite}" && finish "$name" "$name.new"; then
    mv "$name.new" "$name"
  else
    missing+=("$name")
  fi
}

# What has to be done to a folder before it is used under its name.
finish() { # NAME FOLDER
  local files="$top/$1/files" redis="$2/files/usr/share/gocode/src/github.com/redis/go-redis"
  case "$1" in
  # A program outside of Go's own folders finds a version of a library by its folder alone.
  go) ln -s . "$redis/v9" ;;
  python)
    {
      echo '#!/bin/sh'
      echo "export PYTHONHOME=\"$files/usr\" PYTHONPATH=\"$files/usr/lib/python3/dist-packages\""
      own_libraries "$files" "$python"
    } >"$2/python"
    chmod +x "$2/python"
    ;;
  esac
}

# The source, as its authors released it: Debian's build of it is for Debian's compiler alone.
unpack_source() { # NAME SOURCE
  [ ! -e "$1" ] || return 0
  rm -rf "$1.new"
  mkdir -p "$1.new"
  if lists && (cd "$1.new" && other_apt source --download-only --tar-only "$2/$suite" >&2) && tar -xf "$1.new"/*.orig.tar.* -C "$1.new" --strip-components=1; then
    rm "$1.new"/*.orig.tar.*
    mv "$1.new" "$1"
  else
    missing+=("$1")
  fi
}

python=python3.14
go=golang-1.27
crates=(
  autocfg bytes cfg-if chacha20 combine cpufeatures crc16 form-urlencoded futures-core futures-sink futures-task
  futures-util getrandom idna idna-adapter idna-mapping itoa libc log memchr mio num-bigint-0.4 num-integer
  num-traits percent-encoding pin-project-lite proc-macro2 quote rand rand-core redis ryu serde serde-core
  serde-derive slab smallvec socket2 socket2-0.5 syn tinyvec tokio tokio-util unicode-bidi unicode-ident
  unicode-joining-type unicode-normalization url utf8-iter
)
crates=("${crates[@]/#/librust-}")

unpack hiredis libhiredis-dev
unpack_source hedis haskell-hedis
unpack go "$go-go" "$go-src" golang-github-redis-go-redis-dev golang-github-cespare-xxhash-v2-dev \
  golang-github-dgryski-go-rendezvous-dev golang-github-gomodule-redigo-dev
unpack rust "${crates[@]/%/-dev}"
unpack python "$python-minimal" "lib$python-minimal" "lib$python-stdlib" python3-redis python3-hiredis python3-uvloop \
  libhiredis1.1.0 libuv1t64 libssl3t64 libexpat1 zlib1g libffi8 libbz2-1.0 liblzma5 libzstd1 libc6 libgcc-s1

if [ "${#missing[@]}" -gt 0 ]; then
  echo "newer clients: Debian's archive cannot be reached, or lacks what is needed for: ${missing[*]}" >&2
  exit 1
fi
