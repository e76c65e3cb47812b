#!/usr/bin/env bash
# O of 8 bits times a scale: correct kernels of each kind pass, and each known mistake fails in the cases that are made for it.
# usage: test_scaled_o.sh FA-VERIFY SIMULATED.so (from the top of the source tree)
set -uo pipefail
source tests/exec/simulated/judge.sh
outputs='"o", "lse", "amax_p", "amax_o"'
fp8='"name": "fp8-sm90", "max_splits": 4' f32='"name": "simt-f32", "p": "f32", "max_splits": 4'
cases=$root/cases/scaled_o.json

judge "$fp8" fp8-sm90 run --cases "$cases"
expect exits 0
expect says 'failed:0 skipped:1' # it has no head_dim_v
judge "$f32" "" run --cases "$cases"
expect exits 0
judge "$fp8" fp8-sm90 random --profile quantized --count 150 --seed 28
expect exits 0
late='"name": "wgmma-sm90", "max_splits": 4, "o_descaled_late": true'
judge "$late" wgmma,o_descaled_late=1 random --profile quantized --count 150 --seed 12108
expect exits 0
judge "$late" wgmma,o_descaled_late=1,o_bug=rounded_twice random --profile quantized --count 150 --seed 12108
expect exits 1 # to 8 bits, and not to 16, before V's descale

wrong() { # BUG CASE...: each of them fails, of a kernel with P in 8 bits and of one in float32
  local bug=$1
  shift
  for name in "$@"; do
    judge "$fp8" "fp8-sm90,o_bug=$bug" run --cases "$cases" --filter "^$name\$"
    expect exits 1
    judge "$f32" "o_bug=$bug" run --cases "$cases" --filter "^$name\$"
    expect exits 1
  done
}
wrong twice tensors powers e5m2 packed cache
wrong missing tensors fitting e5m2 packed cache_splits
wrong divided tensors powers subnormal gaps
wrong overflows saturating saturating_all saturating_e5m2
wrong early saturating saturating_all
wrong flushed subnormal subnormal_e5m2
wrong truncated subnormal subnormal_e5m2
wrong amax amax amax_saturating
judge "$f32" o_bug=truncated run --cases "$cases" --no-explain --filter '^(tensors|powers|one_key|e5m2|saturating|cache)$'
expect exits 1
expect says 'failed:6' # beside P in 8 bits, whose bound is wider than the rounding of a normal O, they pass
judge "$fp8" fp8-sm90,o_bug=twice run --cases "$cases" --filter '^ones$'
expect exits 0 # nothing is seen where the scale is 1
judge "$fp8" fp8-sm90,o_bug=missing run --cases "$cases" --filter '^tensors$'
expect says 'o_scale not applied'

# Who does not know the word is not asked: a child that lists other features, and our own kernels.
cat >older.py <<'END'
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    print(json.dumps({"id": asked["id"], "fa_exec": 2, "name": "older", "features": ["gqa", "quantized", "quantized_amax"]}), flush=True)
END
run "$verify" run --cases "$cases" --filter '^tensors$' --backend "exec:python3 older.py"
expect exits 4
expect says 'quantized_o'
run "$verify" run --cases "$cases" --filter '^tensors$' --backend host
expect exits 4
expect says 'an O of 8 bits (quantized.o)'

refused() { # CASE MESSAGE
  run "$verify" run --case "$1"
  expect exits 2
  expect complains "$2"
}
refused '{"quantized":{"o":"f16"}}' 'quantized.o'
refused '{"quantized":{"queries":false,"o":"e4m3"}}' 'only beside queries of 8 bits'
refused '{"quantized":{"o_scale":2}}' 'but O is not of 8 bits'
refused '{"quantized":{"o":"e4m3","o_scale":0}}' 'o_scale'
refused '{"quantized":{"o":"e4m3","o_scale":-1}}' 'o_scale'

# A golden holds O itself, and a recorded run what was stored.
run "$verify" golden write gold --cases "$cases" --filter '^(tensors|saturating|amax)$'
expect exits 0
run "$verify" golden check gold
expect exits 0
run "$verify" check gold/*.forward.safetensors --no-progress --color never
expect exits 0
judge "$fp8" fp8-sm90,o_bug=twice run --cases "$cases" --filter '^tensors$' --keep kept
expect exits 1
run "$verify" check kept/*.safetensors --no-progress --color never
expect exits 1
done_checking
