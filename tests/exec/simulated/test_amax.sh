#!/usr/bin/env bash
# amax_p and amax_o: correct kernels of each kind pass, and each known mistake fails in the cases that are made for it.
# usage: test_amax.sh FA-VERIFY SIMULATED.so (from the top of the source tree)
set -uo pipefail
source tests/exec/simulated/judge.sh
outputs='"o", "lse", "amax_p", "amax_o"'
fp8='"name": "fp8-sm90", "max_splits": 4' sixteen='"name": "wgmma-sm90", "max_splits": 4'
cases=$root/cases/amax.json

judge "$fp8" fp8-sm90 run --cases "$cases" -v
expect exits 0
expect says 'failed:0'
expect says amax_p
expect says amax_o
judge "$sixteen" wgmma run --cases "$cases" --filter '^(cache|dropout)' -v
expect exits 0
expect says amax_p
judge "$fp8, \"p_scale\": 448" fp8-sm90,p_scale=448 run --cases "$cases" --filter '^(tensors|heads|late)'
expect exits 0
judge "$fp8" fp8-sm90,max_lag=0.5,p_scale=128 run --cases "$cases" --filter '^(tensors|heads|late_keys)'
expect exits 0 # relative to a maximum that lags behind, and right all the same
judge "$fp8" fp8-sm90 random --profile quantized --count 150 --seed 27
expect exits 0
judge "$fp8" fp8-sm90,amax_from_lse=1 run --cases "$cases"
expect exits 0 # exp(m - LSE) of an LSE that is one float, and not 1 / l
outputs='"o", "lse"' judge "$fp8" fp8-sm90 run --cases "$cases" --filter '^tensors$' -v
expect exits 0
expect says 'not delivered, not judged: amax_p, amax_o'

wrong() { # BUG CASE...: each of them fails, and by an amax
  local bug=$1
  shift
  for name in "$@"; do
    judge "$fp8" "fp8-sm90,amax_bug=$bug" run --cases "$cases" --filter "^$name\$"
    expect exits 1
    expect says amax_
  done
}
wrong first_keys late_keys
wrong first_rows late_rows packed
wrong first_head heads late_keys one_without_keys
wrong last_sequence heads tokens one_without_keys
wrong relative tensors tokens e5m2
wrong scaled tensors heads large_logits
wrong before_descale tensors tokens late_rows
wrong signed heads packed padded_o
wrong dropped dropout
wrong uncleared no_keys no_rows

# Recorded runs: those of a failure, and what a golden holds.
judge "$fp8" fp8-sm90,amax_bug=relative run --cases "$cases" --filter '^tokens$' --keep kept
expect exits 1
run "$verify" check kept/*.safetensors --no-progress --color never
expect exits 1
expect says amax_p
run "$verify" golden write gold --cases "$cases" --filter '^(tokens|sinks|no_keys|cache_splits)$'
expect exits 0
run "$verify" golden check gold
expect exits 0
run "$verify" check gold/*.forward.safetensors --no-progress --color never -v
expect exits 0
expect lines 'amax_[po] ' 8
run "$verify" run --case '{"family":"kvcache","seqlen_k":4,"kvcache":{"len":[4]},"topk":{"k":2},"quantized":{"amax":true}}'
expect exits 2
expect complains 'not together with topk'
run "$verify" run --cases "$cases" --filter '^(tensors|cache|cache_splits_unequal)$' --backend host:hopper -v
expect exits 0
expect lines '^PASS' 3
expect lines 'amax_[po] ' 6
run "$verify" run --cases "$cases" --filter '^tensors$' --backend ref-f32 --sample rows=8,strips=0 -v
expect exits 0
expect says 'not sampled: amax_p and amax_o are of all rows'
done_checking
