#!/usr/bin/env bash
# What commands cost by how a server keeps its data: the workloads, sizes, callers, persistence and
# distance of a series of measurements by redis-benchmark on AWS. Three and a half hours.
#
#   scripts/campaign.sh              measures, into folders under compare/results that the time names
#   scripts/campaign.sh --plan       only says what, and how long it takes
#   ONLY=network scripts/campaign.sh measures one part: whole, soak, participant, one-caller, network, one-key or script-load
#   AT=2026-11-25-2010 scripts/campaign.sh    goes on with one that was interrupted
#   BUSY=1 scripts/campaign.sh       measures although other programs keep the machine busy (scripts/quiet.sh)
#
# The server has core 0 and the load core 1. Seven parts, a folder each: workloads, sizes, callers and
# persistence; half an hour of SETs with each of two kinds of persistence; a script that sets keys as that
# series had them; one caller; round trips of 124 µs beside none; GETs of one key; scripts of each size
# that are loaded. Each begins once no other program keeps the machine busy.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/cabal-env.sh

case "${ONLY:-whole}" in
whole | soak | participant | one-caller | network | one-key | script-load) ;;
*)
  echo "campaign: there is no part '$ONLY': whole, soak, participant, one-caller, network, one-key or script-load" >&2
  exit 2
  ;;
esac
at="${AT:-$(date -u +%F-%H%M)}"
disk="disk=${TMPDIR:-/tmp}"
places="$disk"
[ ! -w /dev/shm ] || places="$places,memory=/dev/shm"
cabal build -v1 exe:redis-client >&2
program="$(cabal list-bin -v0 exe:redis-client)"
status=0

part() { # name, flags...
  local name="$1" said=0
  shift
  [ "${ONLY:-$name}" = "$name" ] || return 0
  local out="compare/results/$at-campaign"
  [ "$name" = whole ] || out+="-$name"
  local resume=()
  [ ! -e "$out" ] || resume=(--resume)
  QUIET_IDLE="$(scripts/quiet.sh "$@")"
  export QUIET_IDLE
  "$program" bench campaign --server-cores 0 --client-cores 1 \
    --iterations 5 --duration 10s --reference --allow saturation --out "$out" "${resume[@]}" "$@" || said=$?
  [ "$said" -eq 0 ] || status="$said"
}

part whole --dir "$places" --net local --persist aof-everysec,aof-always,none,rdb,aof-no --clients 50,1 --payload 3,30,300,3000 \
  --workloads set,get,ping_mbulk,set-one-key,eval-set,script-load "$@"
part soak --dir "$disk" --net local --full --persist aof-everysec,aof-always --clients 50 --payload 3 --workloads set \
  --soak set:aof-everysec:30m --soak set:aof-always:30m "$@"
part participant --dir "$places" --net local --full --persist aof-everysec,aof-always --clients 50 --payload 30,300,3000 \
  --workloads eval-set --key-template 'participant_{uuid:10000}' "$@"
part one-caller --dir "$places" --net local --full --persist aof-everysec,aof-always --clients 1 --payload 3,3000 --workloads set "$@"
part network --dir "$disk" --net local,rtt=124us --full --persist aof-always --clients 1,50 --payload 3,3000 --workloads set "$@"
part one-key --dir "$disk" --net local --full --persist aof-everysec,aof-always --clients 50 --payload 3 --workloads get-one-key "$@"
part script-load --dir "$disk" --net local --full --persist aof-everysec,aof-always --clients 50 --payload 3,30,300,3000 --workloads script-load "$@"
exit "$status"
