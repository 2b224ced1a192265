# Sourced by test.sh and verify.sh, after cabal-env.sh: runs test suites and checks, counts
# what passed and what failed, and says it at the end. Whole logs are in build/tests.

# What `make test` runs, the longest first; all other suites belong to `make verify`.
quick_suites=(cluster tool fault patterns core property integration testkit unit transport unthreaded examples coverage audit)

# How many suites run beside each other: they mostly wait, for servers and for time to pass.
lanes="${LANES:-4}"
# A suite that hangs is stopped; its own tests have closer limits.
limit="${TEST_LIMIT:-20m}"

logs=build/tests
mkdir -p "$logs"
wrong="$(mktemp)"
trap 'rm -f "$wrong"' EXIT
passed=0
failed=0
broken=()

# Where each suite is: its package, and the folder that it runs in.
declare -A package_of=() folder_of=()
all_suites=()
benchmarks=()
for cabal_file in */*.cabal lab/*/*.cabal compare/*/*.cabal compare/*/*/*.cabal; do
  [ -e "$cabal_file" ] || continue
  package="$(basename "$cabal_file" .cabal)"
  while read -r kind name; do
    case "$kind" in
    test-suite)
      all_suites+=("$name")
      package_of[$name]="$package"
      folder_of[$name]="$(dirname "$cabal_file")"
      ;;
    benchmark) benchmarks+=("$package:bench:$name") ;;
    esac
  done < <(awk '$1 == "test-suite" || $1 == "benchmark" { print $1, $2 }' "$cabal_file")
done

target_of() {
  echo "${package_of[$1]}:test:$1"
}

# What a suite's output says of the tests that failed, in short; nothing if it
# ended in another way.
what_failed() {
  awk '/^Failures:/ { inside = 1; next } /^Randomized/ { inside = 0 } inside && NF && ++shown <= 150 { print substr($0, 1, 400) }' "$1"
}

# One suite into its log; its last line is its status and its seconds.
run_suite() {
  local suite="$1" log binary status=0 begun=$SECONDS
  log="$PWD/$logs/$suite.log"
  binary="$(cabal list-bin -v0 "$(target_of "$suite")")"
  (cd "${folder_of[$suite]}" && timeout --kill-after=30 "$limit" "$binary") >"$log" 2>&1 </dev/null || status=$?
  printf '\n%s %s\n' "$status" "$((SECONDS - begun))" >>"$log"
}

count_suite() {
  local suite="$1" log="$logs/$1.log" status taken summary examples failures
  read -r status taken < <(tail -n 1 "$log")
  summary="$(grep -aoE '[0-9]+ examples?, [0-9]+ failures?' "$log" | tail -n 1 || true)"
  if [ -z "$summary" ]; then
    echo "== $suite: ended (status $status) after $taken s without saying how many tests it ran; $log has its output"
    tail -n 20 "$log"
    failed=$((failed + 1))
    broken+=("$suite")
    return
  fi
  read -r examples _ failures _ <<<"$summary"
  echo "== $suite: $summary, $taken s"
  passed=$((passed + examples - failures))
  failed=$((failed + failures))
  if [ "$status" -ne 0 ] || [ "$examples" -eq 0 ]; then
    broken+=("$suite")
    what_failed "$log" | tee -a "$wrong"
    # A suite that fails although all its tests passed counts as one failure.
    [ "$failures" -gt 0 ] || failed=$((failed + 1))
  fi
}

# Runs these suites, several at a time, and counts each as it ends.
run_suites() {
  local -A running=()
  local suite
  echo "== suites, $lanes at a time: $*"
  for suite in "$@"; do
    [ "${#running[@]}" -lt "$lanes" ] || count_next
    run_suite "$suite" &
    running[$!]="$suite"
  done
  while [ "${#running[@]}" -gt 0 ]; do
    count_next
  done
}

# Waits for one of run_suites' own jobs, and counts its suite: whoever sources this file may
# have other jobs.
count_next() {
  local pid
  wait -n -p pid "${!running[@]}" || true
  count_suite "${running[$pid]}"
  unset "running[$pid]"
}

# A check that passes or fails as a whole.
check() { # NAME COMMAND...
  local name="$1" begun=$SECONDS
  shift
  echo "== $name"
  if timeout --kill-after=30 "$limit" "$@"; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    broken+=("$name")
  fi
  echo "== $name: $((SECONDS - begun)) s"
}

# A check of a program that ends with "N passed, N failed" itself.
counted_check() { # NAME COMMAND...
  local name="$1" log="$logs/${1//[^a-z]/-}.log" summary good bad begun=$SECONDS
  shift
  echo "== $name"
  timeout --kill-after=30 "$limit" "$@" 2>&1 | tee "$log" || broken+=("$name")
  summary="$(grep -aoE '^[0-9]+ passed, [0-9]+ failed$' "$log" | tail -n 1 || true)"
  if [ -z "$summary" ]; then
    failed=$((failed + 1))
  else
    read -r good _ bad _ <<<"$summary"
    passed=$((passed + good))
    failed=$((failed + bad))
  fi
  echo "== $name: $((SECONDS - begun)) s"
}

# The sum, and what failed once more: a log is often kept by its last lines.
finish() {
  cat "$wrong"
  [ "${#broken[@]}" -eq 0 ] || { printf 'failed:'; printf ' %s;' "${broken[@]}"; echo; }
  echo "$passed passed, $failed failed"
  [ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
}
