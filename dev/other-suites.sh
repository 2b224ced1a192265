# Packages of other suites of Debian than this machine's, to be unpacked without being installed.
# For scripts to source; they set `top`, the folder for the lists of packages.
#
# Packages come from the mirror that this machine uses, and apt checks their signatures.

mirror="$(cat /etc/apt/sources.list.d/*.sources /etc/apt/sources.list 2>/dev/null | grep -oE 'https?://[^ ]*/debian/?( |$)' | head -n 1 || true)"
mirror="${mirror%% *}"

# apt with lists of its own, so that the machine's stay as they are.
other_apt() {
  apt-get -q -o Dir::State="$top/apt/state" -o Dir::State::status=/dev/null -o Dir::Cache="$top/apt/cache" \
    -o Dir::Etc::SourceList="$top/apt/sources.list" -o Dir::Etc::SourceParts=/dev/null -o Dir::Etc::Preferences=/dev/null \
    -o Dir::Etc::PreferencesParts=/dev/null -o Acquire::Languages=none -o APT::Sandbox::User=root \
    -o Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false -o Acquire::IndexTargets::deb-src::DEP-11::DefaultEnabled=false "$@"
}

# Fetches the lists, or tries to, once. Each argument is "deb SUITE" or "deb-src SUITE". Fails without
# a network or a mirror.
lists_are=""
new_lists() {
  local list
  if [ -n "$lists_are" ]; then
    [ "$lists_are" = new ]
    return
  fi
  lists_are=old
  if [ -z "$mirror" ]; then
    echo "this machine names no mirror of Debian" >&2
    return 1
  fi
  mkdir -p "$top/apt/state/lists/partial" "$top/apt/cache/archives/partial"
  for list in "$@"; do echo "${list% *} $mirror ${list#* } main"; done >"$top/apt/sources.list"
  other_apt -o APT::Update::Error-Mode=any update >&2 || return 1
  lists_are=new
}

# Downloads packages, each named PACKAGE/SUITE, and unpacks them into a new folder FOLDER/files, with
# their versions in FOLDER/versions.
unpack_packages() { # FOLDER PACKAGE/SUITE...
  local folder="$1" package
  shift
  rm -rf "$folder"
  mkdir -p "$folder/packages" "$folder/files"
  (cd "$folder/packages" && other_apt download "$@" >&2) || return 1
  for package in "$folder"/packages/*.deb; do
    dpkg -x "$package" "$folder/files" || return 1
    dpkg-deb --show --showformat '${Package} ${Version}\n' "$package" >>"$folder/versions" || return 1
  done
  rm -rf "$folder/packages"
}

# A program that runs with the libraries that were unpacked with it, whatever those of the system are.
own_libraries() { # FILES PROGRAM
  echo "exec \"$1/usr/lib64/ld-linux-x86-64.so.2\" --argv0 $2 --library-path \"$1/usr/lib/x86_64-linux-gnu\" \"$1/usr/bin/$2\" \"\$@\""
}
