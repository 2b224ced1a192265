#!/usr/bin/env bash
# Builds the peer around redis-rs, from Debian's packages of its sources; see
# compare/PROTOCOL.md for what it prints.
set -euo pipefail
cd "$(dirname "$0")"

absent() {
  echo '{"row": "redis-rs", "absent": "'"$1"'"}'
  exit 0
}
newer="$(cd ../../.. && pwd)/build/newer-clients/rust"
[ -e "$newer" ] || absent "needs redis-rs and tokio from Debian's unstable suite: scripts/setup.sh peers"
minor="$(rustc --version 2>/dev/null | sed -n 's/^rustc 1\.\([0-9]*\)\..*/\1/p')"
command -v cargo >/dev/null && [ "${minor:-0}" -ge 85 ] || absent "needs Rust 1.85 or later: apt-get install cargo-web (Debian 12) or cargo"

version_of() { # crate
  sed -n "s/^librust-$1-dev \(.*\)-[^-]*$/\1/p" "$newer/versions"
}
version="$(version_of redis)"
program=build/release/redis-rs-peer
if [ ! -e "$program" ] || [ -n "$(find . "$newer/versions" -path ./build -prune -o -type f -newer "$program" -print)" ]; then
  # The crates that were fetched are what a lock file would name.
  rm -f Cargo.lock
  CLIENT_VERSION="$version" RUNTIME_VERSION="rustc 1.$minor, tokio $(version_of tokio)" \
    cargo build --release --offline --target-dir build --config 'source.crates-io.replace-with="debian"' \
    --config "source.debian.directory=\"$newer/files/usr/share/cargo/registry\"" >&2
  touch "$program"
fi
echo '{"row": "redis-rs", "version": "'"$version"'", "origin": "Debian", "run": ["'"$program"'"], "cluster": true, "styles": ["wait", "batch"], "language": "Rust"}'
