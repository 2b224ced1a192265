#!/usr/bin/env bash
# Builds the peers around Go's clients, from Debian's packages of their sources;
# see compare/PROTOCOL.md for what it prints.
set -euo pipefail
cd "$(dirname "$0")"

newer="$(cd ../../.. && pwd)/build/newer-clients/go"
sources="$newer/files/usr/share/gocode"
GOROOT="$(echo "$newer"/files/usr/lib/go-*)"
export GOROOT GO111MODULE=off GOPATH="$sources" GOFLAGS='' CGO_ENABLED=0

peer() { # row, its file, Debian package, whether it knows clusters
  if [ ! -e "$newer" ]; then
    echo '{"row": "'"$1"'", "absent": "needs Go and the library from Debian'"'"'s unstable suite: scripts/setup.sh peers"}'
    return 0
  fi
  local version
  version="$(sed -n "s/^$3 \([0-9]*:\)\?\(.*\)-[^-]*$/\2/p" "$newer/versions")"
  if [ ! -e "build/$1" ] || [ -n "$(find . "$newer/versions" -maxdepth 1 -type f -newer "build/$1")" ]; then
    "$GOROOT/bin/go" build -ldflags "-X main.clientVersion=$version" -o "build/$1" main.go load.go tally.go "$2" >&2
  fi
  echo '{"row": "'"$1"'", "version": "'"$version"'", "origin": "Debian", "run": ["build/'"$1"'"], "env": {"GOGC": "400"}, "cluster": '"$4"', "styles": ["wait", "batch"], "language": "Go"}'
}
mkdir -p build
peer go-redis goredis.go golang-github-redis-go-redis-dev true
# redigo knows no cluster.
peer redigo redigo.go golang-github-gomodule-redigo-dev false
