#!/usr/bin/env bash
# The measurement of exec runs, both children replay right answers, and its table has what it promises.
# usage: test_exec.sh FA-VERIFY (from the top of the source tree)
set -euo pipefail
command -v python3 >/dev/null || { echo 'skipped: no python3'; exit 77; }
out=$(python3 tests/bench/exec.py "$1" --shape 1x2x24x24x16 --count 6 --rounds 1 --jobs 1 --python)
echo "$out"
for line in 'jobs 1: cases/s: version 1 .* version 2 .* times as many' 'transport, twice' 'the child itself' 'reference and bounds' 'if transport cost nothing'; do
  grep -q "$line" <<<"$out" || { echo "missing: $line"; exit 1; }
done
