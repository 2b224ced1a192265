#!/usr/bin/env bash
# Unpacks newer servers than this Debian's own, from other suites of Debian, without installing
# them: each runs with its own libraries.
#
#   dev/newer-servers.sh FOLDER
#
# Leaves FOLDER/redis-8.0, FOLDER/redis-8.6 and FOLDER/valkey-9.1, each with a program "server", and
# prints the programs' paths, one a line. What is there already is not fetched again. Packages come
# from the mirror that this machine uses, and apt checks their signatures. Fails if there is none:
# no network, or no Debian.
set -euo pipefail

if [ "$#" -ne 1 ]; then
  echo "usage: dev/newer-servers.sh FOLDER" >&2
  exit 2
fi
mkdir -p "$1"
cd "$1"
top="$PWD"

mirror="$(cat /etc/apt/sources.list.d/*.sources /etc/apt/sources.list 2>/dev/null | grep -oE 'https?://[^ ]*/debian/?( |$)' | head -n 1 || true)"
mirror="${mirror%% *}"

# apt with lists of its own, so that the machine's stay as they are.
other_apt() {
  apt-get -q -o Dir::State="$top/apt/state" -o Dir::State::status=/dev/null -o Dir::Cache="$top/apt/cache" \
    -o Dir::Etc::SourceList="$top/apt/sources.list" -o Dir::Etc::SourceParts=/dev/null -o Dir::Etc::Preferences=/dev/null \
    -o Dir::Etc::PreferencesParts=/dev/null -o Acquire::Languages=none -o APT::Sandbox::User=root \
    -o Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false "$@"
}

lists_are_new=""
new_lists() {
  local suite
  [ -z "$lists_are_new" ] || return 0
  if [ -z "$mirror" ]; then
    echo "newer servers: this machine names no mirror of Debian" >&2
    return 1
  fi
  mkdir -p apt/state/lists/partial apt/cache/archives/partial
  for suite in trixie sid experimental; do echo "deb $mirror $suite main"; done >apt/sources.list
  other_apt -o APT::Update::Error-Mode=any update >&2
  lists_are_new=yes
}

# What the servers are linked with. Each name is a package of the suite.
libraries=(libc6 libatomic1 libjemalloc2 liblzf1 libssl3t64 libstdc++6 libsystemd0 libgcc-s1 libcap2 liblzma5 libzstd1 liblz4-1 libgcrypt20 libgpg-error0)

unpack() { # NAME PROGRAM SUITE-OF-THE-SERVER SUITE-OF-THE-LIBRARIES PACKAGE...
  local name="$1" program="$2" suite="$3" base="$4" wanted=()
  shift 4
  if [ ! -x "$name/server" ]; then
    new_lists || return 1
    rm -rf "$name.new"
    mkdir -p "$name.new/packages" "$name.new/root"
    for package in "$@"; do wanted+=("$package/$suite"); done
    for package in "${libraries[@]}"; do wanted+=("$package/$base"); done
    (cd "$name.new/packages" && other_apt download "${wanted[@]}" >&2) || return 1
    for package in "$name.new"/packages/*.deb; do dpkg -x "$package" "$name.new/root"; done
    rm -rf "$name.new/packages" "$name"
    mv "$name.new" "$name"
    cat >"$name/server.new" <<END
#!/bin/sh
root=$top/$name/root
exec "\$root/usr/lib64/ld-linux-x86-64.so.2" --argv0 $program --library-path "\$root/usr/lib/x86_64-linux-gnu" "\$root/usr/bin/$program" "\$@"
END
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
