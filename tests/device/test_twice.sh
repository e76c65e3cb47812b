#!/usr/bin/env bash
# Two runs of the judge on a GPU, each with a process of its own, say the same of every case to the last bit: verdicts, ratios, worst
# elements. Skipped without a GPU.
# usage: test_twice.sh FA-VERIFY [CASES of each profile]
set -uo pipefail
. "$(dirname -- "${BASH_SOURCE[0]}")/../support/gpu.sh"
verify=$1 count=${2:-300}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
skip_for "$(why_no_gpu "$verify")"

judge() { # PROFILE REPORT
  "$verify" random --profile "$1" --count "$count" --seed 23 --backend ref-f32 --judge cuda --no-progress -q --report "$work/$2" >"$work/out" 2>&1
  grep '^judged\|^tests:' "$work/out" | sed "s/^/$1: /"
}

same() { python3 "$(dirname "$0")/same_records.py" "$work/$1" "$work/$2"; }

rc=0
for profile in rate-gpu varlen gqa masks; do
  judge $profile one.json
  judge $profile other.json
  same one.json other.json || rc=1
done
sed 's/"worst_ratio": *0\.\([0-9]*\)[0-9]\b/"worst_ratio": 0.\1/' "$work/one.json" >"$work/changed.json"
same one.json changed.json >/dev/null && echo "FAILED: a ratio that lacks its last digit is not seen" && rc=1
exit $rc
