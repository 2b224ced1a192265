#!/usr/bin/env bash
# Publishes the harness once for each version of StackExchange.Redis that can be
# had, and prints a line per version as compare/PROTOCOL.md says.
#
# SE_REDIS_DIR=DIR[:DIR...] adds the version whose assemblies lie in DIR: for
# versions whose dependencies the package registry does not have.
set -euo pipefail
cd "$(dirname "$0")"

# The newest of each generation. 1.2.6 is the last of 1.x, of 2017.
versions=(1.2.6 2.13.23 3.4.35)

export DOTNET_CLI_TELEMETRY_OPTOUT=1 DOTNET_NOLOGO=1 DOTNET_CLI_UI_LANGUAGE=en

absent() { # row, why
  printf '{"row": "%s", "absent": "%s"}\n' "$1" "$2"
}

# .NET runs slow code until it has compiled its hot paths again, in the background
# and on the core that the load keeps busy: left alone that takes 5 to 10 seconds
# here and doubles the speed of 1.2.6. With these settings (1.x compiles everything
# at once; 2.x and 3.x, which gain by profiling first, count calls from the start)
# 2.13.23 has within five seconds what it has after ten, and 1.2.6 after 1.5; of 3.x
# that was measured with 16 callers only.
# After 10 s 2.13.23 did 1.16 (1.05-1.28) of its batches after 2.5 s, and 0.95
# (0.73-1.25) of those after 5 s: docs/lab/2026-11-29-warm-up.json.
row() { # version, origin, folder
  local jit='"DOTNET_TC_CallCountingDelayMs": "0"' warmup=5
  [ "${1%%.*}" != 1 ] || jit='"DOTNET_TieredCompilation": "0", "DOTNET_ReadyToRun": "0"' warmup=2.5
  printf '{"row": "StackExchange.Redis %s", "version": "%s", "origin": "%s", "language": "C#", "run": ["dotnet", "%s/client.dll"], "env": {%s}, "warmup": %s, "cluster": true, "styles": ["wait", "batch"]}\n' \
    "$1" "$1" "$2" "$3" "$jit" "$warmup"
}

if ! command -v dotnet >/dev/null || [ -z "$(dotnet --list-sdks 2>/dev/null)" ]; then
  for version in "${versions[@]}"; do
    absent "StackExchange.Redis $version" "there is no .NET SDK: install dotnet-sdk-8.0 or later"
  done
  exit 0
fi
framework="net$(dotnet --version | cut -d. -f1).0"

# Publishes into build/NAME/app unless that is there and newer than the sources.
publish() { # name, properties...
  local name="$1" folder="build/$1"
  shift
  if [ -e "$folder/app/client.dll" ] && ! newer "$folder/app/client.dll"; then
    return 0
  fi
  rm -rf "$folder"
  mkdir -p "$folder"
  # A folder of its own: what one version restores must not meet another's.
  cp ./*.cs client.csproj "$folder/"
  if dotnet publish "$folder/client.csproj" --nologo -v q -c Release -p:TargetFramework="$framework" \
    -o "$folder/app" "$@" >"$folder/log" 2>&1; then
    return 0
  fi
  cat "$folder/log" >&2
  rm -rf "$folder/app"
  return 1
}

newer() { # than this file
  [ -n "$(find . -maxdepth 1 -type f -newer "$1" -print -quit)" ]
}

major_of() { # folder of assemblies
  if [ -e "$1/RESPite.dll" ]; then
    echo 3
  elif [ -e "$1/Pipelines.Sockets.Unofficial.dll" ]; then
    echo 2
  else
    echo 1
  fi
}

have=" "
IFS=: read -ra folders <<<"${SE_REDIS_DIR:-}"
for folder in "${folders[@]}"; do
  if [ ! -e "$folder/StackExchange.Redis.dll" ]; then
    absent "StackExchange.Redis from SE_REDIS_DIR" "no StackExchange.Redis.dll in a folder that SE_REDIS_DIR names"
    continue
  fi
  folder="$(cd "$folder" && pwd)"
  name="folder-$(sha256sum "$folder/StackExchange.Redis.dll" | cut -c1-12)"
  if publish "$name" -p:SeRedisDir="$folder" -p:SeRedisMajor="$(major_of "$folder")"; then
    version="$(dotnet "build/$name/app/client.dll" --version)"
    have+="$version "
    row "$version" "a folder of assemblies" "build/$name/app"
  else
    absent "StackExchange.Redis from SE_REDIS_DIR" "the assemblies of a folder in SE_REDIS_DIR do not make a program; see above"
  fi
done

for version in "${versions[@]}"; do
  [[ "$have" != *" $version "* ]] || continue
  marker="build/$version.absent"
  # What a registry does not have today it may have tomorrow.
  if [ -e "$marker" ] && [ -n "$(find "$marker" -mtime -1)" ] && ! newer "$marker"; then
    absent "StackExchange.Redis $version" "$(cat "$marker") (found today; asked again tomorrow, or without compare/dotnet/client/$marker)"
  elif publish "$version" -p:SeRedisVersion="$version" -p:SeRedisMajor="${version%%.*}"; then
    rm -f "$marker"
    row "$version" NuGet "build/$version/app"
  else
    missing="$(grep -oE 'error NU[0-9]+: Unable to find package [A-Za-z.]+' "build/$version/log" | awk '{ print $NF }' | sed 's/\.$//' | sort -u | paste -sd, | sed 's/,/, /g')"
    if [ -n "$missing" ]; then
      echo "the package registry has no $missing: give a folder of its assemblies as SE_REDIS_DIR" >"$marker"
    else
      echo "dotnet publish failed: see compare/dotnet/client/build/$version/log" >"$marker"
    fi
    absent "StackExchange.Redis $version" "$(cat "$marker")"
  fi
done
