#!/usr/bin/env bash
# Builds the peers around Go's clients, from Debian's packages of their sources;
# see compare/PROTOCOL.md for what it prints.
set -euo pipefail
cd "$(dirname "$0")"

sources=/usr/share/gocode
export GO111MODULE=off GOPATH="$sources" GOFLAGS=

# No cluster: redigo knows none, and go-redis 5 does not understand Redis 7's.
peer() { # row, its file, folder of the library, Debian package
  if ! command -v go >/dev/null || [ ! -d "$sources/src/$3" ]; then
    echo '{"row": "'"$1"'", "absent": "needs Go and the library: apt-get install golang-go '"$4"'"}'
    return 0
  fi
  local version
  version="$(dpkg-query -W -f '${Version}' "$4" 2>/dev/null | sed 's/^[0-9]*://; s/-[^-]*$//' || true)"
  if [ ! -e "build/$1" ] || [ -n "$(find . -maxdepth 1 -type f -newer "build/$1")" ]; then
    go build -ldflags "-X main.clientVersion=${version:-unknown}" -o "build/$1" main.go load.go tally.go "$2" >&2
  fi
  echo '{"row": "'"$1"'", "version": "'"${version:-unknown}"'", "origin": "Debian", "run": ["build/'"$1"'"], "env": {"GOGC": "400"}, "cluster": false, "styles": ["wait", "batch"], "language": "Go"}'
}
mkdir -p build
peer go-redis goredis.go gopkg.in/redis.v5 golang-gopkg-redis.v5-dev
peer redigo redigo.go github.com/gomodule/redigo golang-github-gomodule-redigo-dev
