#!/usr/bin/env bash
# Installs what is needed to build, test and measure, on Debian and its kin.
# Where everything is present it does nothing and needs no rights. Idempotent.
#
#   scripts/setup.sh              what the project needs
#   scripts/setup.sh peers        what the other clients need that are compared with it
#   scripts/setup.sh profile      what samples running programs
#   scripts/setup.sh dist         what makes packages, and an empty system to try them in
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/cabal-env.sh

# What the tests and benchmarks run, and where Debian has it.
programs=(
  ghc:ghc
  cabal:cabal-install
  gcc:gcc
  hlint:hlint
  ormolu:ormolu
  openssl:openssl
  pkg-config:pkg-config
  python3:python3
  redis-cli:redis-tools
  redis-benchmark:redis-tools
  setpriv:util-linux
  taskset:util-linux
  wrk:wrk
  chromium:chromium
)

# The libraries, by the names that GHC and Debian know them by. Not needed by
# whoever lets cabal build them from Hackage.
libraries=(
  aeson:libghc-aeson-dev
  async:libghc-async-dev
  base64-bytestring:libghc-base64-bytestring-dev
  case-insensitive:libghc-case-insensitive-dev
  criterion:libghc-criterion-dev
  hedis:libghc-hedis-dev
  cryptohash-sha1:libghc-cryptohash-sha1-dev
  cryptohash-sha256:libghc-cryptohash-sha256-dev
  hspec:libghc-hspec-dev
  http-types:libghc-http-types-dev
  iproute:libghc-iproute-dev
  network:libghc-network-dev
  optparse-applicative:libghc-optparse-applicative-dev
  primitive:libghc-primitive-dev
  QuickCheck:libghc-quickcheck2-dev
  random:libghc-random-dev
  scotty:libghc-scotty-dev
  statistics:libghc-statistics-dev
  temporary:libghc-temporary-dev
  wai:libghc-wai-dev
  warp:libghc-warp-dev
  zlib:libghc-zlib-dev
)

packages=()
need() {
  packages+=("$1")
}

has_header() {
  printf '#include <%s>\n' "$1" | gcc -E -x c - >/dev/null 2>&1
}

need_project() {
  local entry known=""
  for entry in "${programs[@]}"; do
    command -v "${entry%%:*}" >/dev/null || need "${entry##*:}"
  done
  if ! command -v redis-server >/dev/null && ! command -v valkey-server >/dev/null; then
    need redis-server
  fi
  has_header openssl/ssl.h || need libssl-dev
  has_header zlib.h || need zlib1g-dev
  has_header hiredis/hiredis.h || need libhiredis-dev
  has_header ev.h || need libev-dev
  has_header sqlite3.h || need libsqlite3-dev
  if [[ "${CABAL_CONFIG:-}" == */cabal.config.offline ]]; then
    if command -v ghc-pkg >/dev/null; then
      known="$(ghc-pkg list --global --simple-output --names-only 2>/dev/null | tr ' ' '\n')"
    fi
    for entry in "${libraries[@]}"; do
      grep -qxF "${entry%%:*}" <<<"$known" || need "${entry##*:}"
    done
  fi
}

# Most of them are newer than this system's packages, and are unpacked beside it.
need_peers() {
  if ! command -v cargo >/dev/null; then
    # Debian 12 has a compiler of today under another name.
    if grep -qs '^12' /etc/debian_version; then need cargo-web; else need cargo; fi
  fi
  dev/newer-clients.sh build/newer-clients || echo "setup: some peers will be absent, or older" >&2
}

need_profile() {
  command -v perf >/dev/null || need linux-perf
}

need_dist() {
  command -v help2man >/dev/null || need help2man
  command -v dpkg-shlibdeps >/dev/null || need dpkg-dev
  command -v debootstrap >/dev/null || need debootstrap
}

has_package() {
  [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

case "${1:-project}" in
project) need_project ;;
peers) need_peers ;;
profile) need_profile ;;
dist) need_dist ;;
*)
  echo "setup: there is no '$1' to set up (project, peers, profile or dist)" >&2
  exit 2
  ;;
esac

[ "${#packages[@]}" -gt 0 ] || exit 0
mapfile -t packages < <(printf '%s\n' "${packages[@]}" | sort -u)
echo "setup: missing: ${packages[*]}" >&2

if ! command -v apt-get >/dev/null; then
  echo "setup: not a Debian system; please install what these packages contain" >&2
  exit 1
fi
as_root=()
if [ "$(id -u)" -ne 0 ]; then
  if ! command -v sudo >/dev/null; then
    echo "setup: needs root or sudo to install them" >&2
    exit 1
  fi
  as_root=(sudo)
fi

# Debian starts a service as soon as it is installed. Nothing here wants one:
# tests start servers of their own. A policy of the machine's own is left alone.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
  trap '"${as_root[@]}" rm -f "$policy"' EXIT
  printf '#!/bin/sh\nexit 101\n' | "${as_root[@]}" tee "$policy" >/dev/null
  "${as_root[@]}" chmod 755 "$policy"
fi

apt() {
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get -o Acquire::Retries=3 -o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0 -y "$@"
}

# A machine may know sources that are of no use here and fail; a network may fail
# for a while; and a machine that has just started may be updating itself. So the
# lists may stay old, locks are waited for, and everything is tried again.
installed=""
for pause in 5 20 60 0; do
  apt update || echo "setup: the lists of packages are not all new" >&2
  if apt install --no-install-recommends "${packages[@]}"; then
    installed=yes
    break
  fi
  sleep "$pause"
done
if [ -z "$installed" ]; then
  echo "setup: could not install: ${packages[*]}" >&2
  exit 1
fi

# Nor at the next start of the machine.
# update-rc.d speaks to systemd too, and works where there is none.
if [[ " ${packages[*]} " == *" redis-server "* ]]; then
  "${as_root[@]}" update-rc.d redis-server disable >/dev/null 2>&1 || true
fi
