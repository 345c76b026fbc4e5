#!/bin/sh
# Fuzzes one target with a stable compiler: ./run.sh [TARGET [SECONDS]]; in 0 seconds it runs the corpus once.
# Coverage comes from LLVM's own pass. What it finds goes to artifacts/, new inputs to findings/ (neither is committed).
set -eu
cd "$(dirname "$0")"
target="${1:-line}"
seconds="${2:-60}"
host="$(rustc -vV | sed -n 's/^host: //p')"

# With --target these flags reach the target's crates but not build scripts, which have no fuzzer to link to.
export RUSTFLAGS="--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
-Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
-Cllvm-args=-sanitizer-coverage-trace-compares"
build="${CARGO_TARGET_DIR:-target}"
export CARGO_TARGET_DIR="$build"
cargo build --release --target "$host" --bin "$target" --bin seeds

mkdir -p "artifacts/$target" "findings/$target" "corpus/$target"
# Files of the database, of today's format.
"$build/$host/release/seeds" "$target" "findings/$target"
# The dialect starts from the statements of all SQL tests.
if [ "$target" = dialect ]; then
  awk -v RS='' -F'\n' '{
    text = ""
    for (i = 1; i <= NF && $i ~ /^(#|onlyif|skipif)/; i++);
    for (i++; i <= NF && $i != "----"; i++) text = text (text == "" ? "" : "\n") $i
    if (text != "") { file = sprintf("findings/dialect/slt-%05d", NR); printf "0%s", text > file; close(file) }
  }' ../tests/slt/*.slt
fi
# Targets of binary formats have no dictionary.
[ ! -e "$target.dict" ] || set -- "-dict=$target.dict"
[ -e "$target.dict" ] || set --
[ "$seconds" = 0 ] && set -- "$@" -runs=0 || set -- "$@" -max_total_time="$seconds" -print_final_stats=1
exec "$build/$host/release/$target" "findings/$target" "corpus/$target" \
  "$@" -artifact_prefix="artifacts/$target/" -max_len=4096 -timeout=10 -rss_limit_mb=2048
