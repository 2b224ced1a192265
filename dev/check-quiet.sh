#!/usr/bin/env bash
# Checks that scripts/quiet.sh ends with 2 while a program keeps a processor busy, and waits for the
# quiet that comes after. The busy program is real. The quiet is made up, because other programs may
# run beside this check: here "sleep" takes no time and puts the next numbers in place.
set -euo pipefail
cd "$(dirname "$0")/.."
unset BUSY QUIET_LIMIT QUIET_STAT
folder="$(mktemp -d)"
trap 'jobs -p | xargs -r kill 2>/dev/null || true; rm -rf "$folder"' EXIT

# quiet STATUS PRINTED LINES: how it ends, what it prints, and how many lines it says beside that.
quiet() {
  local status=0
  scripts/quiet.sh >"$folder/printed" 2>"$folder/said" || status=$?
  if [ "$status" != "$1" ] || [ "$(cat "$folder/printed")" != "$2" ] || [ "$(wc -l <"$folder/said")" != "$3" ]; then
    echo "scripts/quiet.sh ended with $status and not $1, printed '$(cat "$folder/printed")' and not '$2', and said, not in $3 lines:"
    cat "$folder/said"
    exit 1
  fi
}

while :; do :; done &
QUIET_LIMIT=5 quiet 2 "" 1
BUSY=1 quiet 0 "not looked at" 1
kill "$!"

# All of the processors together are idle for 96 % at first, and one of them for 92 %.
printf '%s\n' "cpu 0 0 0 2000 0 0 0 0" "cpu0 0 0 0 1000 0 0 0 0 0 0" "cpu1 0 0 0 1000 0 0 0 0 0 0" >"$folder/stat"
printf '%s\n' "cpu 40 0 0 2960 0 0 0 0" "cpu0 0 0 0 1500 0 0 0 0 0 0" "cpu1 40 0 0 1460 0 0 0 0 0 0" >"$folder/stat.1"
printf '%s\n' "cpu 50 0 0 3940 10 0 0 0" "cpu0 0 0 0 2000 0 0 0 0 0 0" "cpu1 50 0 0 1940 10 0 0 0 0 0" >"$folder/stat.2"
cat >"$folder/sleep" <<'END'
#!/bin/sh
cd "$(dirname "$0")" && for next in stat.*; do mv "$next" stat && exit; done
END
chmod +x "$folder/sleep"
PATH="$folder:$PATH" QUIET_STAT="$folder/stat" quiet 0 "98.0 %" 1
