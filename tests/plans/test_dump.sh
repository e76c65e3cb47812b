#!/usr/bin/env bash
# The dump of what would be launched (plan_dump), by which two builds are compared: it is the same each time, and compare.py
# says so, notices one launch that differs, and a case that is missing.
# usage: test_dump.sh PLAN_DUMP CLEARS_PADDING   (from the top of the source tree)
set -euo pipefail
command -v python3 >/dev/null || { echo 'skipped: no python3'; exit 77; }
[ "$2" = 1 ] || { echo 'skipped: this compiler has no __builtin_clear_padding, so two dumps differ in bytes that mean nothing'; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
compare() { python3 tests/plans/compare.py "$@"; }
fail() {
  echo "$*"
  exit 1
}

for subject in host:hopper cuda; do
  "$1" "$subject" cases/causal.json >"$work/one.txt" 2>"$work/log"
  "$1" "$subject" cases/causal.json >"$work/two.txt" 2>"$work/log"
  [ "$(grep -c '^case ' "$work/one.txt")" = 90 ] && [ "$(grep -c '^  [a-z]' "$work/one.txt")" -ge 300 ] ||
    fail "$subject: not the 90 cases and their launches"
  cmp "$work/one.txt" "$work/two.txt" || fail "$subject: two dumps of the same cases differ"
  compare "$work/one.txt" "$work/two.txt" >/dev/null || fail "$subject: equal dumps differ for compare.py"
  sed '0,/ grid=1,/s// grid=2,/' "$work/one.txt" >"$work/two.txt"
  compare "$work/one.txt" "$work/two.txt" >"$work/said" && fail "$subject: another grid is not noticed"
  grep -q 'launch grid' "$work/said" || fail "$subject: it does not say that a grid differs: $(cat "$work/said")"
  awk '/^case /{n++} n != 7' "$work/one.txt" >"$work/two.txt"
  compare "$work/one.txt" "$work/two.txt" >"$work/said" && fail "$subject: a missing case is not noticed"
  grep -q missing "$work/said" || fail "$subject: it does not say that a case is missing"
  "$1" "$subject" cases/amax.json cases/merge.json >"$work/one.txt" 2>"$work/log" || fail "$subject: some parameters are not known"
done
