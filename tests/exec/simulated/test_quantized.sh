#!/usr/bin/env bash
# Operands of 8 bits: correct kernels of each kind pass, and each known mistake fails, if only in the cases made for it.
# usage: test_quantized.sh FA-VERIFY SIMULATED.so (from the top of the source tree)
set -uo pipefail
source tests/exec/simulated/judge.sh
fp8='"name": "fp8-sm90", "max_splits": 4' sixteen='"name": "wgmma-sm90", "max_splits": 4'
cases=$root/cases/quantized.json

# Where descales go decides what is rounded: a field for each way.
judge "$fp8" fp8-sm90 run --cases "$cases"
expect exits 0
expect says 'failed:0'
judge "$sixteen" wgmma run --cases "$cases" --filter '^(cache|keys|int8)'
expect exits 0
for field in k_descaled v_descaled; do
  judge "$sixteen, \"$field\": \"bf16\"" wgmma,$field=bf16 run --cases "$cases" --filter '^(cache|keys|int8)'
  expect exits 0
done
judge "$sixteen" wgmma,k_descaled=bf16 run --cases "$cases" --filter '^(cache_heads|keys_only)'
expect exits 1 # it says that its keys are exact
judge "$sixteen, \"o_descaled_late\": true" wgmma,o_descaled_late=1 run --cases "$cases" --filter '^cache'
expect exits 0
judge "$fp8, \"p_scale\": 448" fp8-sm90,p_scale=448 run --cases "$cases" --filter '^(tensors|heads|peaked)'
expect exits 0
judge "$fp8" fp8-sm90 random --profile quantized --count 150 --seed 26
expect exits 0

wrong() { # SETTINGS CASE...: each of them fails
  local settings=$1
  shift
  for name in "$@"; do
    judge "$fp8" "fp8-sm90,$settings" run --cases "$cases" --filter "^$name\$"
    expect exits 1
  done
}
wrong descale_bug=next_head heads powers cache_heads packed
wrong descale_bug=first_sequence heads packed cache_queries
wrong descale_bug=next_key tokens packed_tokens cache_tokens
wrong descale_bug=k_twice tensors cache_tensor
wrong descale_bug=v_twice tensors cache_tensor
wrong descale_bug=k_missing tensors cache_pages
wrong descale_bug=v_missing tensors cache_pages
wrong descale_bug=q_missing tensors cache_queries
wrong descale_bug=swapped tensors heads cache_heads
wrong descale_bug=reciprocal tensors cache_heads
wrong fresh_accumulator=0 one_sign one_sign_equal
wrong max_lag=4 climbing peaked
wrong max_lag=4,p_nan=1 climbing
wrong p_truncate=1 tensors heads
wrong p=e5m2 tensors
wrong scale_factor=1.02 tensors
judge "$fp8" fp8-sm90,descale_bug=swapped run --cases "$cases" --filter '^ones$'
expect exits 0 # nothing is seen where all descales are 1
done_checking
