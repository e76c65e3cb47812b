#!/usr/bin/env bash
# The cuda backend on a real GPU: the case files of its families, and random cases. Skipped without a GPU.
# usage: test_real_device.sh FA-VERIFY [SECONDS of random cases of each profile]
set -uo pipefail
. "$(dirname -- "${BASH_SOURCE[0]}")/../support/gpu.sh"
verify=$1 seconds=${2:-10}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
skip_for "$(why_no_gpu "$verify")"
"$verify" list backends | grep -A1 '^cuda '
rc=0
for name in causal varlen window dropout edge alibi softcap gqa headdim memeff kvcache; do
  [ -e "cases/$name.json" ] || continue
  "$verify" --cases "cases/$name.json" --backend cuda --timeout 60 --no-progress --report "$work/report.json" >"$work/out" 2>&1
  code=$?
  printf '%-16s %s\n' "$name" "$(tail -n 1 "$work/out")"
  if [ $code != 0 ]; then
    rc=1
    grep -v '^PASS\|^SKIP' "$work/out" | head -n 20
  fi
done
# Graphs that are launched twice, with another seed and offset in device memory the second time.
"$verify" --cases cases/dropout.json --backend cuda:graph --timeout 60 --no-progress >"$work/out" 2>&1
code=$?
printf '%-16s %s\n' 'dropout, graphs' "$(tail -n 1 "$work/out")"
if [ $code != 0 ]; then
  rc=1
  grep -v '^PASS\|^SKIP' "$work/out" | head -n 20
fi
for profile in causal varlen window gqa dropout edge layout fills memeff kvcache; do
  "$verify" random --profile "$profile" --seconds "$seconds" --seed "$RANDOM" --backend cuda --timeout 60 --no-progress >"$work/out" 2>&1
  code=$?
  printf 'random %-9s %s\n' "$profile" "$(tail -n 1 "$work/out")"
  if [ $code != 0 ]; then
    rc=1
    grep -v '^PASS\|^SKIP' "$work/out" | head -n 20
  fi
done
exit $rc
