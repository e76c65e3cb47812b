#!/usr/bin/env bash
# The table of ratios has every output that -v prints, gradients both as the backward's and end to end.
# usage: test_ratios.sh FA-VERIFY (from the top of the source tree)
set -euo pipefail
command -v python3 >/dev/null || { echo 'skipped: no python3'; exit 77; }
out=$(python3 tests/bench/ratios.py "$1" random --profile causal --count 8 --seed 1 --backend ref-f32 --end-to-end)
echo "$out"
for name in o lse dq dk dv 'dq (end to end)' 'dk (end to end)' 'dv (end to end)'; do
  grep -qF "| $name | " <<<"$out" || { echo "missing: $name"; exit 1; }
done
