#!/usr/bin/env bash
# Waits until the machine is quiet, for a run that begins on a busy machine is not made:
# each processor is idle for at least 95 % of five seconds. Prints the idle share of the
# processor that was the least idle, which raw data name (QUIET_IDLE). The load average
# cannot tell, because the build just before raises it.
#
#   scripts/quiet.sh [WORD...]     the WORDs are those of the measurement: with --plan, --help,
#                                  --render, --check or --counts-only nothing is timed, and
#                                  this ends at once
#   BUSY=1 scripts/quiet.sh        does not look, for trials whose figures nobody keeps
#   QUIET_LIMIT=600                seconds until it gives up
#
# Exit status: 0, or 2 if the machine did not become quiet.
set -euo pipefail

for word in "$@"; do
  case "$word" in
  -h | --help | --plan | --render | --check | --counts-only) exit 0 ;;
  esac
done
if [ -n "${BUSY:-}" ]; then
  echo "quiet: BUSY is set, so other programs may run beside the measurement" >&2
  echo "not looked at"
  exit 0
fi

share=95
span=5
limit="${QUIET_LIMIT:-600}"

# A line for each processor: its name, its idle ticks and all its ticks. A processor that waits for
# a disk is idle; one that the host gives to another machine ("steal") is not.
ticks() {
  awk '/^cpu[0-9]/ { all = 0; for (field = 2; field <= 9; field++) all += $field; print $1, $5 + $6, all }' "${QUIET_STAT:-/proc/stat}"
}

# The least idle share of all processors, as a percentage.
least_idle() {
  { ticks && sleep "$span" && ticks; } | awk '
    !($1 in all) { idle[$1] = $2; all[$1] = $3; next }
    {
      passed = $3 - all[$1]
      found = passed > 0 ? 100 * ($2 - idle[$1]) / passed : 0
      if (least == "" || found < least) least = found
    }
    END { printf "%.1f\n", least }'
}

waited=0
while true; do
  found="$(least_idle)"
  waited=$((waited + span))
  if awk -v found="$found" -v share="$share" 'BEGIN { exit !(found >= share) }'; then
    echo "$found %"
    exit 0
  fi
  if [ "$waited" -ge "$limit" ]; then
    echo "quiet: nothing was measured, because the machine is busy: after $waited s a processor is only $found % idle; end the other programs, or measure beside them with BUSY=1" >&2
    exit 2
  fi
  if [ "$waited" -eq "$span" ]; then
    echo "quiet: a processor is only $found % idle; waiting for at most $limit s until each is $share % idle over $span s" >&2
  fi
done
