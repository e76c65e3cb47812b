#!/usr/bin/env bash
# Caches of 4 bits: correct kernels of each kind pass, and each known mistake fails in the cases that are made for it.
# usage: test_four_bits.sh FA-VERIFY SIMULATED.so (from the top of the source tree)
set -uo pipefail
source tests/exec/simulated/judge.sh
sixteen='"name": "wgmma-sm90", "max_splits": 4'
cases=$root/cases/four_bit_cache.json

judge "$sixteen" wgmma run --cases "$cases"
expect exits 0
expect says 'failed:0'
expect lines '^PASS' 30 # a program without sinks, and with elements of 16 bits in its products
judge "$sixteen, \"v_descaled\": \"bf16\"" wgmma,v_descaled=bf16 run --cases "$cases" --filter '^(tensor|head)$'
expect exits 0
judge "$sixteen, \"o_descaled_late\": true" wgmma,o_descaled_late=1 run --cases "$cases" --filter '^(tensor|head)$'
expect exits 0

wrong() { # BUG CASE...: each of them fails
  local bug=$1
  shift
  for name in "$@"; do
    judge "$sixteen" "wgmma,four_bug=$bug" run --cases "$cases" --filter "^$name\$"
    expect exits 1
  done
}
wrong high_first tensor ones one_block
wrong next_block tensor outlier pages
wrong blocks_of_32 tensor outlier
wrong next_slot tensor one_block pages
wrong scales_missing tensor powers
wrong scales_of_k tensor powers
wrong halves_lost ones subnormal
wrong six_is_eight tensor near_max
wrong sign_of_byte tensor ones
for bug in next_head k_missing v_missing v_twice swapped; do
  judge "$sixteen" "wgmma,descale_bug=$bug" run --cases "$cases" --filter '^head$'
  expect exits 1
done
judge "$sixteen" wgmma,four_bug=next_block run --cases "$cases" --filter '^ones$'
expect exits 0 # nothing is seen where all scales are 1

# Recorded runs, and what a golden holds.
judge "$sixteen" wgmma,four_bug=high_first run --cases "$cases" --filter '^pages$' --keep kept
expect exits 1
run "$verify" check kept/*.safetensors --no-progress --color never
expect exits 1
run "$verify" golden write gold --cases "$cases" --filter '^(tensor|pages|edges)$'
expect exits 0
run "$verify" golden check gold
expect exits 0
run "$verify" check gold/*.forward.safetensors "$root"/tests/golden/reference/quantized_pages.forward.safetensors --no-progress --color never
expect exits 0
# The same file as PyTorch may write it, with D columns of 4 bits: not a byte is longer.
LC_ALL=C sed -E 's#("pages/[kv]":\{"dtype":")U8(","shape":\[[0-9,]*,)32\]#\1F4\264]#g' gold/pages.forward.safetensors >four.safetensors
expect grep -qa '"pages/k":{"dtype":"F4"' four.safetensors
run "$verify" check four.safetensors --no-progress --color never
expect exits 0
for backend in host host:hopper; do
  run "$verify" run --cases "$cases" --filter '^(tensor|f32)$' --backend $backend -v
  expect exits 0
  expect says 'PASS tensor'
  expect says 'quantized caches: not together with dtype f32'
done
done_checking
