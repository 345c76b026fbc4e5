#!/bin/sh
# Replays the corpus of every target, then fuzzes `line` and three others for some seconds each: ./today.sh [SECONDS]
# The three change every day: every target runs within four days. FUZZ_DAY=20000 repeats those of a day.
set -eu
cd "$(dirname "$0")"
seconds="${1:-30}"
day="${FUZZ_DAY:-$(($(date +%s) / 86400))}"
# shellcheck disable=SC2046 # The words are the targets.
set -- $(./targets.sh)

for target; do
  ./run.sh "$target" 0
done

./run.sh line "$seconds"
others="$(./targets.sh | grep -vx line)"
count="$(echo "$others" | wc -l)"
for i in 0 1 2; do
  target="$(echo "$others" | sed -n "$(((day * 3 + i) % count + 1))p")"
  ./run.sh "$target" "$seconds"
done
echo "day $day: replayed $#, fuzzed line and three of: $others" | tr '\n' ' '
echo
