#!/usr/bin/env bash
# fuzz/build.sh as OSS-Fuzz calls it, with a real compiler, and what fuzz/oss-fuzz/check.sh says of the result. It compiles everything anew.
set -euo pipefail
root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd)
skip() { echo "skipped: $*"; exit 77; }
[ -n "${FA_SLOW_TESTS:-}" ] || skip "it compiles every target anew; FA_SLOW_TESTS=1 runs it"
command -v clang++ >/dev/null || skip "no clang"
work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT
flags="-O1 -fno-omit-frame-pointer -gline-tables-only -fsanitize=address -fsanitize-address-use-after-scope -fsanitize=fuzzer-no-link"
mkdir "$work/src" "$work/out" "$work/work"
ln -s "$root" "$work/src/fa-verify"
(cd -- "$root" && env CC=clang CXX=clang++ CFLAGS="$flags" CXXFLAGS="$flags" LIB_FUZZING_ENGINE=-fsanitize=fuzzer \
  SRC="$work/src" OUT="$work/out" WORK="$work/work" bash .clusterfuzzlite/build.sh) >"$work/log" 2>&1 || { tail -n 40 "$work/log"; exit 1; }
"$root/fuzz/oss-fuzz/check.sh" "$work/out" address 100
