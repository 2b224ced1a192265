#!/usr/bin/env bash
# Makes what people without a compiler install, in build/dist: a tarball and a Debian package of
# the program redis-client with its man pages and completions, and the sdists of the three
# libraries. Ends with the size and the dependencies of each.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/cabal-env.sh

out="$PWD/build/dist"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
rm -rf "$out"
mkdir -p "$out"

cabal build -v1 redis-client-tool:exe:redis-client
built="$(cabal list-bin -v0 redis-client-tool:exe:redis-client)"
version="$(awk '$1 == "version:" { print $2 }' tool/redis-client-tool.cabal)"
architecture="$(dpkg --print-architecture)"
# The same sources give the same packages.
SOURCE_DATE_EPOCH="$(git log -1 --format=%ct 2>/dev/null || date +%s)"
export SOURCE_DATE_EPOCH

# What belongs below /usr.
usr="$work/tree/usr"
install -D "$built" "$usr/bin/redis-client"
strip "$usr/bin/redis-client"
for shell in bash zsh fish; do
  case "$shell" in
  bash) place=share/bash-completion/completions/redis-client ;;
  zsh) place=share/zsh/vendor-completions/_redis-client ;;
  fish) place=share/fish/vendor_completions.d/redis-client.fish ;;
  esac
  mkdir -p "$usr/$(dirname "$place")"
  "$built" "--$shell-completion-script" /usr/bin/redis-client >"$usr/$place"
done
install -D -m 644 LICENSE "$usr/share/doc/redis-client/copyright"
gzip -9n <CHANGELOG.md | install -D -m 644 /dev/stdin "$usr/share/doc/redis-client/changelog.gz"

# A man page of the program, one of each mode, and one of each mode's modes: their help.
man() { # MODE...
  local name page mode
  name="$(IFS=- && echo "redis-client${*:+-$*}")"
  page="$usr/share/man/man1/$name.1.gz"
  # The usage and the purpose on a line each; options as man pages have them.
  "$built" "$@" --help |
    awk 'function flush() { if (line != "") print line "\n"; line = "" }
         /^Usage:/ { line = $0; top = 1; next }
         top && /^  [^ ]/ { if (line ~ /^Usage:/) flush(); sub(/^ */, line == "" ? "  " : " "); line = line $0; next }
         top && /^   / { sub(/^ */, " "); line = line $0; next }
         top && /^$/ { flush(); next }
         { top = 0; print }' |
    sed 's/^\( *-[^-]\),--/\1, --/' >"$work/help"
  printf '#!/bin/sh\ncat "%s/help"\n' "$work" >"$work/$name"
  chmod +x "$work/$name"
  mkdir -p "$(dirname "$page")"
  LC_ALL=C.UTF-8 help2man --locale=C.UTF-8 --no-info --version-string "$version" \
    --name "$(sed -n '1s/^redis-client - //p; /^  [A-Z]/ { s/^ *//p; q }' "$work/help" | head -n 1)" \
    "$work/$name" | sed "1,3s/^\.TH [^ ]*/.TH ${name^^}/" | gzip -9n >"$page"
  for mode in $(awk '/^Available commands:/ { inside = 1; next } /^[^ ]/ { inside = 0 } inside && /^  [a-z]/ { print $1 }' "$work/help"); do
    man "$@" "$mode"
  done
}
man

package="redis-client_${version}_$architecture"
tar --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" \
  --transform="s,^\./usr,redis-client-$version," -C "$work/tree" -cf - ./usr |
  gzip -9n >"$out/redis-client-$version-linux-$architecture.tar.gz"

# The libraries that it needs, as this system's packages name them.
mkdir -p "$work/debian" "$work/tree/DEBIAN"
printf 'Source: redis-client\n\nPackage: redis-client\nArchitecture: any\n' >"$work/debian/control"
needed="$(cd "$work" && dpkg-shlibdeps -O "tree/usr/bin/redis-client" 2>/dev/null | sed -n 's/^shlibs:Depends=//p')"
cat >"$work/tree/DEBIAN/control" <<CONTROL
Package: redis-client
Version: $version
Architecture: $architecture
Maintainer: $(awk -F ': *' '$1 == "maintainer" { print $2 }' tool/redis-client-tool.cabal)
Installed-Size: $(du -sk "$work/tree/usr" | cut -f 1)
Depends: $needed
Recommends: redis-server | valkey-server
Section: database
Priority: optional
Description: load generator for Redis and Valkey
 redis-client bench drives a server or a cluster, and shows that the work it
 counts is work the server did.
CONTROL
dpkg-deb --root-owner-group --build "$work/tree" "$out/$package.deb" >/dev/null

# Hackage wants no package to say how far its tests are optimised; here it saves minutes.
for library in client patterns testkit; do
  cp -r "$library" "$work/$library"
  sed -i 's/-O0 *//' "$work/$library"/*.cabal
  (cd "$work/$library" && cabal check && cabal sdist -v0 --output-directory "$out")
done

(cd "$out" && sha256sum -- * >SHA256SUMS && du -h -- *)
echo "installed: $(du -sh "$work/tree/usr" | cut -f 1); needs: $needed"
