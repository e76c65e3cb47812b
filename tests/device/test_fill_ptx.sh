#!/usr/bin/env bash
# The values of fills contain no fma on a device, which would round where the CPU does not. PTX still has divisions and square
# roots as one instruction each, so that every fma in it is a product and a sum. usage: test_fill_ptx.sh NVCC
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat > "$work/fill.cu" <<'CU'
#include "ref/cuda/fill.cuh"
extern "C" __global__ void entry(const __grid_constant__ fa_judge_job x) {
  fa_judge_fill_row(&x, blockIdx.x);
}
CU
count() { # how many fma there are with these options
  "$1" -std=c++17 -I. -arch=sm_90 -ptx "$2" "$work/fill.cu" -o "$work/fill.ptx"
  grep -cE '^[[:space:]]*(fma|mad)\.r' "$work/fill.ptx" || true
}
without=$(count "$1" -fmad=false)
with=$(count "$1" -fmad=true)
echo "fma: $without, where nvcc may contract: $with"
[ "$without" = 0 ] && [ "$with" -gt 100 ]
