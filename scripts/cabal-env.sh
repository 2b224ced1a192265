# Sourced by the other scripts: decides where cabal takes libraries from, and
# what language programs speak.
#
# Who has a Hackage index keeps their own configuration. Who has none gets
# cabal.config.offline and the distribution's packages. A CABAL_CONFIG that is
# set already is respected.

# A machine of services may start this without a home, which cabal needs, and
# without a language, without which programs that write more than ASCII fail.
if [ -z "${HOME:-}" ]; then
  HOME="$(getent passwd "$(id -u)" | cut -d: -f6)"
  export HOME="${HOME:-/tmp}"
fi
if [ "$(locale charmap 2>/dev/null)" != UTF-8 ]; then
  export LC_ALL=C.UTF-8
fi

# Whether cabal has downloaded a package index at some time.
has_hackage_index() {
  local folder
  for folder in \
    "${CABAL_DIR:-$HOME/.cabal}/packages" \
    "${XDG_CACHE_HOME:-$HOME/.cache}/cabal/packages"; do
    if compgen -G "$folder/*/*-index.tar" >/dev/null ||
      compgen -G "$folder/*/*-index.cache" >/dev/null; then
      return 0
    fi
  done
  return 1
}

if [ -z "${CABAL_CONFIG:-}" ] && ! has_hackage_index; then
  CABAL_CONFIG="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)/cabal.config.offline"
  export CABAL_CONFIG
fi
