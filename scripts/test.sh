#!/usr/bin/env bash
# Runs every test suite of every package, one after the other, visibly, and
# every benchmark a single time, unmeasured, so that none rots; then checks the
# comparison's programs. Ends with "N passed, N failed" over all. Fails if a
# suite, a benchmark or a check did, if a suite ran no test, or if there is none.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/cabal-env.sh

# A suite that hangs is stopped; its own tests have closer limits.
limit="${TEST_LIMIT:-20m}"

# The program that the REST comparison's suite holds to its contract.
REST_HASKELL="$(cabal list-bin -v0 exe:rest-service)"
export REST_HASKELL

log="$(mktemp)"
wrong="$(mktemp)"
trap 'rm -f "$log" "$wrong"' EXIT
passed=0
failed=0
broken=()

# What a suite's output says of the tests that failed, in short; nothing if it
# ended in another way.
what_failed() {
  awk '/^Failures:/ { inside = 1; next } /^Randomized/ { inside = 0 } inside && NF && ++shown <= 150 { print substr($0, 1, 400) }' "$1"
}

for cabal_file in */*.cabal lab/*/*.cabal compare/*/*.cabal compare/*/*/*.cabal; do
  [ -e "$cabal_file" ] || continue
  folder="$(dirname "$cabal_file")"
  package="$(basename "$cabal_file" .cabal)"
  while read -r suite; do
    echo "== $package: $suite"
    binary="$(cabal list-bin -v0 "$package:test:$suite")"
    status=0
    (cd "$folder" && timeout --kill-after=30 "$limit" "$binary") 2>&1 | tee "$log" || status=$?
    summary="$(grep -aoE '[0-9]+ examples?, [0-9]+ failures?' "$log" | tail -n 1 || true)"
    if [ -z "$summary" ]; then
      echo "== $package: $suite ended (status $status) without saying how many tests it ran"
      failed=$((failed + 1))
      broken+=("$package:$suite")
      continue
    fi
    read -r examples _ failures _ <<<"$summary"
    passed=$((passed + examples - failures))
    failed=$((failed + failures))
    if [ "$status" -ne 0 ] || [ "$examples" -eq 0 ]; then
      broken+=("$package:$suite")
      what_failed "$log" >>"$wrong"
      # A suite that fails although all its tests passed counts as one failure.
      [ "$failures" -gt 0 ] || failed=$((failed + 1))
    fi
  done < <(awk '$1 == "test-suite" { print $2 }' "$cabal_file")

  while read -r benchmark; do
    echo "== $package: $benchmark, each once"
    binary="$(cabal list-bin -v0 "$package:bench:$benchmark")"
    if ! timeout --kill-after=30 "$limit" "$binary" --iters 1; then
      failed=$((failed + 1))
      broken+=("$package:$benchmark")
    fi
  done < <(awk '$1 == "benchmark" { print $2 }' "$cabal_file")
done

# A check of a program that ends with "N passed, N failed" itself.
counted_check() { # NAME COMMAND...
  local name="$1" summary good bad
  shift
  echo "== $name"
  timeout --kill-after=30 "$limit" "$@" 2>&1 | tee "$log" || broken+=("${name//: /:}")
  summary="$(grep -aoE '^[0-9]+ passed, [0-9]+ failed$' "$log" | tail -n 1 || true)"
  if [ -z "$summary" ]; then
    failed=$((failed + 1))
  else
    read -r good _ bad _ <<<"$summary"
    passed=$((passed + good))
    failed=$((failed + bad))
  fi
}

# What would be published stands alone.
counted_check "package: from its sdist" scripts/check-sdist.sh

# The comparison's programs: ours, StackExchange.Redis in each version that restores,
# and those that take a compiler and no download. One that this machine lacks a
# library for is named, and is no failure.
counted_check "compare: peers" compare/peers/check.sh redis-client client hiredis hedis

# What the measurement of pairs decides, and that its load works.
counted_check "lab: pair" lab/pair/test_pair.py

# The comparison of the libraries once, quickly: that it works, not who wins.
echo "== compare: the libraries"
if QUICK=1 timeout --kill-after=30 "$limit" compare/run-client.sh --no-verdict; then
  passed=$((passed + 1))
else
  failed=$((failed + 1))
  broken+=("compare:client")
fi

# Our figures and those of redis-benchmark, each by what the server counted meanwhile:
# what a busy machine does to speed cannot fail it, a wrong count or factor does.
echo "== differential, short"
if timeout --kill-after=30 "$limit" "$(cabal list-bin -v0 exe:redis-client-lab)" differential --test get,incr --iterations 1 --duration 1 --counts-only; then
  passed=$((passed + 1))
else
  failed=$((failed + 1))
  broken+=("differential")
fi

# A whole campaign, small: every axis, a soak, and the report.
echo "== campaign, small"
if timeout --kill-after=30 "$limit" scripts/campaign-smoke.sh; then
  passed=$((passed + 1))
else
  failed=$((failed + 1))
  broken+=("campaign-smoke")
fi

# Two minutes of load and faults. Each day has another seed, which is printed: with it
# the same faults come again.
echo "== soak"
if MINUTES=2 SEED="${SEED:-$(date +%Y%m%d)}" timeout --kill-after=30 "$limit" scripts/soak.sh; then
  passed=$((passed + 1))
else
  failed=$((failed + 1))
  broken+=("soak")
fi

# Said again at the end: a log is often kept by its last lines.
cat "$wrong"
[ "${#broken[@]}" -eq 0 ] || echo "failed: ${broken[*]}"
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
