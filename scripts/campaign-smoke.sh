#!/usr/bin/env bash
# A whole campaign in about two minutes: every axis, a soak, the check after
# kill -9, and the report, all small. Its numbers mean little; that it runs and
# writes its report is the test. Fails if anything is not valid, a cell could
# not be measured, or a file is missing. What a busy machine does to a load, that
# threads are kept from running, is allowed, and stands in the notes. The report
# is in results/campaign-smoke.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/cabal-env.sh

out=results/campaign-smoke
mkdir -p results
rm -rf "$out"

places="disk=${TMPDIR:-/tmp}"
[ ! -w /dev/shm ] || places="$places,memory=/dev/shm"

cabal build -v1 exe:redis-client
status=0
"$(cabal list-bin -v0 exe:redis-client)" bench campaign \
  --workloads set,get,ping_inline,eval-set,fcall-set --payload 3,3000 --clients 50,1 --net local,rtt=1ms --dir "$places" \
  --iterations 2 --warmup 200ms --duration 500ms --keys 2000 --durability 300ms --allow saturation,little \
  --soak set:aof-always:10s --budget 3m --out "$out" || status=$?

for file in campaign.json report.md report.html; do
  if [ ! -s "$out/$file" ]; then
    echo "campaign-smoke: $out/$file is missing" >&2
    exit 1
  fi
done

if [ "$status" -ne 0 ]; then
  {
    echo "campaign-smoke: failed ($status)"
    sed -n '/^## Not valid/,/^## [^N]/p' "$out/report.md" | grep '^- ' || true
    grep '^- not measured' "$out/report.md" || true
  } >&2
  exit 1
fi
