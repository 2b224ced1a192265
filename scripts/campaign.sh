#!/usr/bin/env bash
# What commands cost by how a server keeps its data: the workloads, sizes, callers and persistence of
# a series of measurements by redis-benchmark on AWS. Not quite three hours.
#
#   scripts/campaign.sh              measures, into folders under compare/results that the time names
#   scripts/campaign.sh --plan       only says what, and how long it takes
#   AT=2026-11-25-2010 scripts/campaign.sh    goes on with one that was interrupted
#
# The server has core 0 and the load core 1. Three parts, a folder each: workloads, sizes, callers and
# persistence, with a soak of half an hour for each of two kinds of persistence; a script that sets keys
# as that series had them; one caller.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/cabal-env.sh

at="${AT:-$(date -u +%F-%H%M)}"
places="disk=${TMPDIR:-/tmp}"
[ ! -w /dev/shm ] || places="$places,memory=/dev/shm"
cabal build -v1 exe:redis-client >&2
program="$(cabal list-bin -v0 exe:redis-client)"
status=0

part() { # name, flags...
  local out="compare/results/$at-$1" said=0
  shift
  local resume=()
  [ ! -e "$out" ] || resume=(--resume)
  "$program" bench campaign --dir "$places" --net local --server-cores 0 --client-cores 1 \
    --iterations 5 --duration 10s --reference --allow saturation --out "$out" "${resume[@]}" "$@" || said=$?
  [ "$said" -eq 0 ] || status="$said"
}

part campaign --persist aof-everysec,aof-always,none,rdb,aof-no --clients 50,1 --payload 3,30,300,3000 \
  --workloads set,get,ping_mbulk,set-one-key,eval-set,script-load \
  --soak set:aof-everysec:30m --soak set:aof-always:30m "$@"
part campaign-participant --full --persist aof-everysec,aof-always --clients 50 --payload 30,300,3000 \
  --workloads eval-set --key-template 'participant_{uuid:10000}' "$@"
part campaign-one-caller --full --persist aof-everysec,aof-always --clients 1 --payload 3,3000 --workloads set "$@"
exit "$status"
