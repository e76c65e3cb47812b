#!/usr/bin/env bash
# The simulated kernel is a correct one when it is told to be, and a wrong one when it is told to be.
# usage: test_variants.sh FA-VERIFY SIMULATED.so (from the top of the source tree)
set -uo pipefail
source tests/exec/simulated/judge.sh

ours="\"outputs\": [\"o\", \"lse\", \"dq\", \"dk\", \"dv\", \"dbias\"], $conventions"
more=$ours # of the hello, beside the arithmetic
claim() { # SET SETTINGS CASE-FILE...: it claims the named set
  local set=$1 settings=$2
  shift 2
  ask "\"arithmetic\": {\"name\": \"$set\"}${more:+, $more}" "$settings" run --filter "$filter" --cases "${@/#/$root/cases/}"
}
filter='^[a-f]' # some of the cases are enough
claim simt-f32 p=io,ds=io,block_n=64 window.json varlen.json gqa.json softcap.json alibi.json
expect exits 0
expect says 'failed:0'
claim mma-ampere mma-sm80 window.json varlen.json dropout.json kvcache.json edge.json
expect exits 0

# Arithmetic that has a field of its own: right where it is declared, wrong where it is not.
arithmetic() { # FIELD SETTING CASE-FILE...
  local field=$1 setting=$2
  shift 2
  claim "simt-f32\", \"$field\": true, \"p\": \"io" "p=io,ds=io,block_n=64,$setting=1" "$@"
  expect exits 0
  claim simt-f32 "p=io,ds=io,block_n=64,$setting=1" "$@"
  expect exits 1
}
filter='^(square|decode|batch|one_hot)'
arithmetic delta_rounded delta_rounded causal.json crossattn.json
arithmetic ds_scaled ds_scaled causal.json crossattn.json
filter='^(flash_p|p_)'
arithmetic dropout_rounded dropout_rounded dropout.json

filter='^(left_1|narrow)'
for wrong in window_left_more=1 window_right_more=1 drop_last_key=1 scale_factor=1.01 lse_base2=1 lse_unscaled=1; do
  claim simt-f32 "p=io,ds=io,block_n=64,$wrong" window.json
  expect exits 1
done
filter='^(group_[25]|gemma|causal|flash_p17)'
claim simt-f32 p=io,ds=io,gqa_modulo=1 gqa.json
expect exits 1
claim simt-f32 p=io,ds=io,softcap_before_scale=1 softcap.json
expect exits 1
claim simt-f32 p=io,ds=io,alibi_flipped=1 alibi.json
expect exits 1
for wrong in dropout_rounds=8 dropout_layout=memeff; do
  claim simt-f32 "p=io,ds=io,$wrong" dropout.json
  expect exits 1
done

# Conventions: right where they are declared or found, wrong where others are declared.
probed_to() { [[ $1 == *=nan ]] && echo 1 || echo 0; } # NaN is right only where it is declared
convention() { # SETTING HELLO CASE-FILE...
  local setting=$1 hello=$2
  shift 2
  more=$hello claim simt-f32 "p=io,ds=io,block_n=64,$setting" "$@"
  expect exits 0
  more='' claim simt-f32 "p=io,ds=io,block_n=64,$setting" "$@"
  expect exits "$(probed_to "$setting")"
  claim simt-f32 "p=io,ds=io,block_n=64,$setting" "$@"
  expect exits 1
}
filter='^[a-f]'
convention lse_base2=1 '"lse": {"base": "2"}' window.json varlen.json
convention lse_unscaled=1 '"lse": {"scaled": false}' window.json varlen.json
convention lse_base2=1,lse_unscaled=1 '"lse": {"base": "2", "scaled": false}' gqa.json
convention lse_none=1 '"outputs": ["o", "dq", "dk", "dv"]' window.json gqa.json
filter='tall' # rows that see no key
for empty in -inf 0 nan; do
  convention lse_of_empty=$empty '"lse": {"empty": "'$empty'"}' window.json
  more='"lse": {"empty": "any"}' claim simt-f32 p=io,ds=io,block_n=64,lse_of_empty=$empty window.json
  expect exits 0
done
for empty in nan mean_v; do
  convention o_of_empty=$empty '"empty_o": "'$empty'"' window.json varlen.json
  more='"empty_o": "any"' claim simt-f32 p=io,ds=io,block_n=64,o_of_empty=$empty window.json
  expect exits 0
done
filter=causal # what the column is counted from has a meaning under a causal mask
convention lse_alibi_column=1 '"lse": {"alibi": "column"}' alibi.json

claim simt-f32 nonsense=1 window.json
expect complains 'what is nonsense=1'
done_checking
