# How run-comparison.sh and run-concurrency-tuning.sh measure and keep what came of
# it; sourced from the root of the repository.
. scripts/cabal-env.sh

measure() { # MODE NAME FLAG...
  local mode="$1" name="$2" program folder word
  shift 2
  # The second one, too: what its build prints would be kept with the results.
  cabal build -v1 exe:redis-client-compare exe:redis-client-peer >&2
  program="$(cabal list-bin -v0 exe:redis-client-compare)"
  for word in "$@"; do
    case "$word" in
    --output | --output=* | -h | --help) exec "$program" "$mode" "$@" ;;
    esac
  done
  folder="compare/results/$(date +%F-%H%M%S)-$mode"
  mkdir -p "$folder"
  echo "results: $folder" >&2
  "$program" "$mode" --output "$folder/$name.json" "$@" 2>&1 | tee "$folder/output.txt"
}
