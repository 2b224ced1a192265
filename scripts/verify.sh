#!/usr/bin/env bash
# What `make test` leaves out: everything else is compiled, the other suites, long properties,
# every benchmark once, the package from its sdist, the comparisons, the campaign and the soak
# in short, the differential, and the whole lint with the Haddock pages. ROOTS="FOLDER..."
# names roots of other Debian systems, with whose compilers and servers `make test` is run, too
# (dev/ghc-matrix.sh). The cases of commands and the tests of workers are run on newer servers of
# Debian's other suites (dev/newer-servers.sh; NEWER= names their folder); without a network it says
# that they were not.
# Ends with "N passed, N failed"; fails if anything did.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/cabal-env.sh
. scripts/counting.sh

# What is measured here shows that it works, not how fast it is, and need not wait for a quiet machine.
export BUSY=1

begun=$SECONDS
cabal build -v1 all
echo "== compiled: $((SECONDS - begun)) s"

# The program that the REST comparison's suite holds to its contract.
REST_HASKELL="$(cabal list-bin -v0 exe:rest-service)"
export REST_HASKELL

# Every suite that is not a quick one, so that none is in neither.
others=()
for suite in "${all_suites[@]}"; do
  [[ " ${quick_suites[*]} " == *" $suite "* ]] || others+=("$suite")
done
run_suites "${others[@]}"

# Properties again, with twenty times the cases.
LONG_PROPERTIES=yes run_suites property core

# Every benchmark a single time, unmeasured, so that none rots.
for benchmark in "${benchmarks[@]}"; do
  check "$benchmark, each once" "$(cabal list-bin -v0 "$benchmark")" --iters 1
done

# The commands, and workers, on newer servers than this system's.
if newer="$(dev/newer-servers.sh "${NEWER:-build/newer-servers}" 2>"$logs/newer-servers.log")"; then
  while read -r server; do
    name="$("$server" --version | grep -oE '^[A-Za-z]+|v=[0-9.]+' | tr '\n' ' ')"
    while read -r suite tests; do
      binary="$(cabal list-bin -v0 "$(target_of "$suite")")"
      check "$suite on $name: $tests" env REDIS_TESTKIT_SERVER="$server" \
        bash -c 'cd "$1" && exec "$2" --match "$3"' newer "${folder_of[$suite]}" "$binary" "$tests"
    done <<END
integration every command
patterns Worker/with a server
cluster commands about clusters
examples among a thousand vectors
END
  done <<<"$newer"
else
  tail -n 3 "$logs/newer-servers.log"
  echo "== NOT RUN: the commands and workers on newer servers, which cannot be fetched ($logs/newer-servers.log)"
fi

# What would be published stands alone.
counted_check "the package from its sdist" scripts/check-sdist.sh

# What people without a compiler install, and that it works in a Debian that has none.
check "packages of the program" bash -c 'scripts/setup.sh dist && scripts/dist.sh'
empty="$(mktemp -d)"
if [ "$(id -u)" -eq 0 ] && debootstrap --variant=minbase bookworm "$empty" >"$logs/debootstrap.log" 2>&1; then
  check "the package in an empty Debian" dev/dist-check.sh "$empty"
else
  echo "== the package in an empty Debian: not tried, which needs root's rights and a network"
fi
rm -rf "$empty"

# The comparison's programs: ours, StackExchange.Redis in each version that restores,
# and those that take a compiler and no download. One that this machine lacks a
# library for is named, and is no failure.
counted_check "peers of the comparison" compare/peers/check.sh redis-client client hiredis hedis

# What the measurement of pairs decides, and that its load works.
counted_check "measurement of pairs" lab/pair/test_pair.py

# The comparison of the libraries once, quickly: that it works, not who wins.
check "comparison of the libraries, short" env QUICK=1 compare/run-client.sh --no-verdict --iterations 1 --warmup 0.2 --duration 0.3

# The comparison of the REST services: that it works, not that it wins, which is status 1.
check "comparison of the REST services, short" \
  bash -c 'QUICK=1 OUT=build/rest/ci compare/rest/run.sh --iterations 1 --seconds 1 --open-seconds 1 --warmup 2 || [ "$?" -eq 1 ]'

# Our figures and those of redis-benchmark, each by what the server counted meanwhile:
# what a busy machine does to speed cannot fail it, a wrong count or factor does.
check "differential, short" "$(cabal list-bin -v0 exe:redis-client-lab)" \
  differential --test get,incr --iterations 1 --duration 1 --counts-only

# The other measurements once: that they work.
check "reply checks, short" lab/checks/checks.py --check
check "SETs that wait for the disk, short" lab/fsync/fsync.py --check
check "a slot that moves, short" "$(cabal list-bin -v0 exe:redis-client-lab)" moving --rounds 1

# A whole campaign, small: every axis, a soak, and the report.
check "campaign, small" scripts/campaign-smoke.sh

# Two minutes of load and faults. Each day has another seed, which is printed: with it
# the same faults come again.
check "soak of two minutes" env MINUTES=2 SEED="${SEED:-$(date +%Y%m%d)}" scripts/soak.sh

check "lint" scripts/lint.sh

read -ra roots <<<"${ROOTS:-}"
if [ "${#roots[@]}" -gt 0 ]; then
  limit="${MATRIX_LIMIT:-3h}" check "other compilers and servers" dev/ghc-matrix.sh "${roots[@]}"
else
  echo "== other compilers and servers: none is named (ROOTS=)"
fi
finish
