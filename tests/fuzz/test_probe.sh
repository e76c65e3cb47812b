#!/usr/bin/env bash
# The probe against subjects whose conventions and arithmetic are known: the simulated kernel's variants, ref-f32, and
# host. Each line says what must be found; and what a subject declares wrongly must be contradicted.
# usage: test_probe.sh FA-VERIFY SIMULATED.so (from the top of the source tree)
set -uo pipefail
verify=$(realpath "$1") plugin=$(realpath "$2") root=$PWD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
source "$root/tests/support/cli_check.sh"

source "$root/tests/support/share.sh"
n_variants=0

settings='' hello=''
probe() { # DTYPE BACKEND OPTION...
  local dtype=$1 backend=$2
  shift 2
  FA_SIMULATED=$settings FA_SIMULATED_HELLO=$hello run "$verify" probe --backend "$backend" --dtype "$dtype" "$@"
}
# "field=value ...": words of a line of the table, spaces in values as _.
expect_found() { # WORD...
  local word field
  for word in "$@"; do
    field=${word%%=*}
    expect says_line "^  ${field//_/[_ ]} +${word#*=}( |$)"
  done
}
asked() { # SETTINGS DTYPE WORD...
  settings=$1
  local dtype=$2
  shift 2
  probe "$dtype" "plugin:$plugin"
  expect exits 0
  expect says ' 0 contradictions'
  expect_found "$@"
}
variant() { # the same, if it is its turn
  share_has $((n_variants++)) || return
  asked "$@"
}

# ---- how it computes ----
variant numpy-f32 f32 operand_qk=io operand_pv=io accumulator_qk=f32 accumulator_pv=f32 p=f32 ds=f32 delta=sum_p_dp p_kept=true
variant torch-eager bf16 scores=bf16 p=bf16 ds=bf16 dp=io delta=sum_p_dp p_kept=true block_n='256 or more' dropout_rounded=true
variant torch-eager f16 scores=f16 p=f16 ds=f16 dp=io delta=sum_p_dp dropout_rounded=true
variant p=io,ds=io,dropout_rounded=1 f16 p=f16 dropout_rounded=true
variant torch-math f16 scores=f32 p=f32 ds=f32 dp=f32 delta=sum_p_dp p_kept=true
variant tf32 f32 operand_qk=tf32 operand_pv=tf32 operand_dp=tf32 operand_dv=tf32 operand_dq=tf32 operand_dk=tf32 p=tf32 ds=tf32 accumulator_pv=mma
variant tf32-truncated f32 operand_pv='tf32, truncated' p='tf32, truncated' ds='tf32, truncated'
variant 3xtf32 f32 operand_qk=3xtf32 operand_pv=3xtf32 operand_dp=3xtf32 p_kept=false delta=stored_o
variant mma-sm80 bf16 accumulator_qk=mma accumulator_pv=mma p=bf16 ds=bf16 block_n=64 delta=stored_o p_kept=false dropout_rounded=false eps_exp='below 2\^-20'
variant wgmma f16 accumulator_pv=mma p=f16 ds=f16 block_n=128
variant f16-accumulator f16 accumulator_qk=f16 accumulator_pv=f16
variant bf16-accumulator bf16 accumulator_qk=bf16 accumulator_pv=bf16
variant narrow-accumulator bf16 accumulator_qk=narrow accumulator_pv=narrow p='e4m3 x 256' block_n=128
variant p-truncated bf16 p='bf16, truncated' ds='bf16, truncated' accumulator_pv=f32
variant p-e4m3 f16 p='e4m3 x 256' ds=f16 operand_pv=io dropout_rounded=false
variant exact-o bf16 delta=exact_o
variant sum-p-dp bf16 delta=sum_p_dp p=bf16
variant split-16-bit bf16 accumulator_pv=bf16
variant int8-qk bf16 operand_qk=int8 operand_pv=io
variant exp-poly f16 eps_exp='0\.0001[0-9]*' p=f16
variant p=f16,ds=f16,gqa_partials_rounded=1 bf16 p=f16 ds=f16 gqa_partials_rounded=true
variant nondeterministic=1 f32 repeats=dq
variant ds-scaled f16 ds=f16 ds_scaled=true
variant p=f16,ds=f16 f16 ds=f16 ds_scaled=false
variant operand_pv=f16 bf16 operand_pv=f16
variant root_scale=1 f32 operand_qk=io

# ---- subjects that take one kind of call only: the same answers, as far as such a call can be asked ----
alike() { # KIND NAME SETTINGS DTYPE
  share_has $((n_variants++)) || return 0
  asked "$3" "$4"
  grep '^  [a-z]' out >usual.txt
  asked "$3,only=$1" "$4" asked_as="$2"
  grep '^  [a-z]' out | grep -v 'asked as\|not asked' >these.txt
  expect test "$(wc -l <these.txt)" -ge 15
  expect test -z "$(grep -vxFf usual.txt these.txt)"
}
alike packed 'packed sequences' mma-sm80 bf16
alike packed 'packed sequences' tf32,lse_base2=1,lse_of_empty=-inf f32
alike cache 'a cache' wgmma f16
alike paged 'a cache in pages of 16' torch-eager,o_of_empty=mean_v bf16
alike decode 'one query a sequence' 3xtf32,lse_unscaled=1 f32
alike paged_decode 'one query a sequence, over a cache in pages of 16' mma-sm80,lse_of_empty=0 bf16

# ---- subjects that crash or hang: the other questions are answered all the same ----
settings=mma-sm80,fails=hangs
probe bf16 "plugin:$plugin" --timeout 3
expect exits 0
expect says 'the call ran out of time (3 s)'
expect complains 'probe: bf16, '
expect_found softcap='.*no answer' operand_qk=io accumulator_pv=mma ds=bf16 delta=stored_o
settings=mma-sm80,fails=crashes,fails_at=backward
probe bf16 "plugin:$plugin" -v
expect exits 0
expect says 'no backward: the subject crashed'
expect_found softcap='after the scale' p=bf16
settings=fails=crashes,fails_at=always
probe f32 "plugin:$plugin"
expect exits 3
expect complains "the subject crashed under the probe's questions"
FA_SIMULATED=mma-sm80,fails=crashes run "$verify" run --backend "plugin:$plugin" --case '{"name":"plain","dtype":"bf16"}'
expect exits 0
expect complains 'bf16: P io, operands io, sums mma, delta stored_o'

# ---- what it computes: conventions that can be declared ----
variant lse_base2=1 f32 lse.base=2 lse.scaled=true
variant lse_unscaled=1 f32 lse.base=e lse.scaled=false
variant lse_base2=1,lse_unscaled=1 bf16 lse.base=2 lse.scaled=false
variant lse_none=1 f32 outputs='o? ?lse'
for empty in -inf 0 nan; do
  variant "lse_of_empty=$empty" f32 lse.empty="$empty"
done
variant o_of_empty=mean_v f32 empty_o=mean_v
variant o_of_empty=nan f32 empty_o=nan
variant lse_alibi_column=1 f32 lse.alibi=column

# ---- what it computes: nothing but an error ----
wrong() { # SETTINGS TEXT
  share_has $((n_variants++)) || return 0
  settings=$1
  probe f32 "plugin:$plugin" --strict
  expect exits 1
  expect says_line "$2"
  probe f32 "plugin:$plugin"
  expect exits 0
}
wrong top_left=1 'mask corner +top left .*bottom right!'
wrong tall_unmasked=1 'empty rows +see every key .*see no key!'
wrong window_left_more=1 'window +left 6, right 3'
wrong window_right_more=1 'window +left 5, right 4'
wrong gqa_modulo=1 'gqa +h % heads_kv'
wrong drop_last_key=1 'keys +0 to 62'
wrong scale_factor=1.01 'scale +1.01 of it'
wrong softcap_before_scale=1 'softcap +before the scale'
wrong alibi_flipped=1 'alibi +\+slope'
wrong dropout_rounds=10 'dropout +flash, 10 rounds'
wrong dropout_layout=memeff 'dropout +memeff, 7 rounds|dropout +memeff, 10 rounds'
wrong dq_unscaled=1 'dq scale +missing'
wrong dk_unscaled=1 'dk scale +missing'
wrong dlse_ignored=1 'dlse +ignored'

# ---- declarations that are not kept ----
claims() { # SETTINGS HELLO DTYPE TEXT
  share_has $((n_variants++)) || return 0
  settings=$1 hello=$2
  probe "$3" "plugin:$plugin" --strict
  expect exits 1
  expect says_line "$4"
}
claims tf32 '"arithmetic": {"name": "simt-f32"}' f32 'operand_qk +tf32 .*declared: io!'
claims f16-accumulator '"arithmetic": {"name": "simt-f32"}' f16 'accumulator_pv +f16 .*declared: f32!'
claims p=io,ds=io '"arithmetic": {"name": "numpy-f32"}' bf16 '  p +bf16 .*declared: f32!'
claims p=io,ds=io,dropout_rounded=1 '"arithmetic": {"name": "simt-f32"}' bf16 'dropout_rounded +true .*declared: false!'
claims lse_base2=1 '"lse": {"base": "e"}' f32 'lse.base +2 .*declared: e!'
claims '' '"lse": {"base": "2"}' f32 'lse.base +e .*declared: 2!'
claims lse_none=1 '"outputs": ["o", "lse", "dq", "dk", "dv"]' f32 'outputs .*declared'
claims ds-scaled '"arithmetic": {"name": "mma-sm80"}' f16 'ds_scaled +true .*declared: false!'
hello='"arithmetic": {"name": "simt-f32", "operand_pv": "f16"}' # which holds all that a bf16 element has
variant p=io,ds=io bf16 operand_pv=io
hello='"lse": {"dtype": "io"}' # as coarse as O: what is read of it elsewhere is read of O
variant mma-sm80 bf16 lse.base=e scale='as asked' scores=f32 p=bf16 ds=bf16
hello='"arithmetic": {"name": "simt-f32"}, "lse": {"base": "2", "scaled": false}'
variant lse_base2=1,lse_unscaled=1,p=io,ds=io bf16 lse.base=2 lse.scaled=false
hello=''

# ---- subjects of the project ----
settings=''
probe bf16 ref-f32 --strict
expect exits 0
expect_found accumulator_pv=f32 p=bf16 ds=bf16 delta=stored_o p_kept=false block_n=64 dropout='flash, 7 rounds' gqa='h / group'
probe bf16 host:hopper --strict
expect exits 0
expect_found operand_pv=io accumulator_pv=mma p=bf16 ds=bf16 dp=f32 delta=stored_o p_kept=false block_n=128 gqa_partials_rounded=false dropout='flash, 7 rounds'
probe f32 host --strict
expect exits 0
expect_found operand_qk=3xtf32 operand_pv=3xtf32 operand_dk=3xtf32 accumulator_pv=mma p=f32 ds=f32 delta=stored_o p_kept=false dropout='flash, 7 rounds'
probe f32 ref-f32 --strict --json out.json
expect exits 0
expect grep -q '"field":.*"accumulator_pv"' out.json

# ---- the command ----
probe f64 ref-f32
expect exits 2
expect complains 'there are: f16, bf16, f32'
run "$verify" probe --backend "plugin:$plugin" extra
expect exits 2
settings=f32_only=1
probe f16 "plugin:$plugin"
expect exits 4
expect says 'it has no f16'

# ---- undeclared means probed ----
settings=numpy-f32 hello=''
FA_SIMULATED=$settings run "$verify" random --backend "plugin:$plugin" --profile causal --count 40 --no-progress --report r.json
expect exits 0
expect complains 'probed: plugin:'
expect complains 'most like numpy-f32'
expect grep -q '"probed"' r.json
FA_SIMULATED=lse_base2=1,lse_unscaled=1,o_of_empty=mean_v run "$verify" run --backend "plugin:$plugin" --no-progress --filter '^[a-f]' --cases "$root/cases/window.json"
expect exits 0
# Of a subject that computes something else no arithmetic is believed: a lost key looks like a coarse sum.
long='{"name":"long","seqlen_q":300,"seqlen_k":300,"dtype":"f16","heads_q":2}'
for fault in drop_last_key=1 scale_factor=1.01 gqa_modulo=1; do
  FA_SIMULATED=numpy-f32,$fault run "$verify" run --backend "plugin:$plugin" --no-progress --case "${long/\"heads_q\":2/\"heads_q\":4,\"heads_kv\":2}"
  expect exits 1
  expect complains 'its arithmetic cannot be told so'
done
# NaN is found, and fails all the same unless the subject has declared it.
tall='{"name":"tall","seqlen_q":70,"seqlen_k":60,"dtype":"f16","mask":{"type":"causal"}}'
for hello in '' '"empty_o": "nan", "lse": {"empty": "nan"}'; do
  FA_SIMULATED=o_of_empty=nan,lse_of_empty=nan FA_SIMULATED_HELLO=$hello run "$verify" run --backend "plugin:$plugin" --no-progress --case "$tall"
  expect exits $([ -n "$hello" ] && echo 0 || echo 1)
  [ -n "$hello" ] || expect complains 'NaN is wrong unless it is declared'
done

# Wrong declarations fail where the truth passes.
f32='{"name":"f32","family":"memeff","dtype":"f32","seqlen_q":100,"seqlen_k":130,"heads_q":2}'
bf16='{"name":"bf16","seqlen_q":300,"seqlen_k":300,"dtype":"bf16"}'
causal='{"name":"causal","seqlen_q":70,"seqlen_k":70,"heads_q":4,"dtype":"bf16","mask":{"type":"causal"}}'
f16='{"name":"f16","seqlen_q":300,"seqlen_k":300,"dtype":"f16"}'
judged() { # EXIT-CODE SETTINGS HELLO CASE
  FA_SIMULATED=$2 FA_SIMULATED_HELLO=$3 run "$verify" run --backend "plugin:$plugin" --no-progress --case "$4"
  expect exits "$1"
}
for truth in "tf32|$f32|numpy-f32" "tf32-truncated|$f32|mma-sm80" "f16-accumulator|$f16|simt-f32" "bf16-accumulator|$f16|simt-f32" \
  "torch-eager|$bf16|torch-math" "sum-p-dp|$causal|simt-f32" "exact-o|$causal|simt-f32" "exp-poly|$f16|simt-f32" "p-e4m3|$bf16|simt-f32" "p-truncated|$f16|simt-f32"; do
  IFS='|' read -r kernel case claim <<<"$truth"
  judged 1 "$kernel" "\"arithmetic\": {\"name\": \"$claim\"}" "$case"
  [ $kernel = bf16-accumulator ] && continue # its own bounds are so wide that the case says nothing
  judged 0 "$kernel" '' "$case"
done
# What has failed before: errors that bounds had missed.
small='{"name":"small","seqlen_q":16,"seqlen_k":16,"dtype":"f16","alibi":{"slopes":[1]},"dropout":{"p":0.97,"seed":"18"},"fill":{"default":"logits_4x"},"data_seed":"18"}'
drop='{"name":"drop","seqlen_q":65,"seqlen_k":65,"dtype":"bf16","mask":{"type":"causal"},"dropout":{"p":0.9,"seed":"5"},"fill":"small"}'
column='{"name":"column","seqlen_q":300,"seqlen_k":517,"dtype":"f32","heads_q":6,"heads_kv":2,"head_dim":1}'
judged 0 torch-eager '' "$small" # a P below 2^-14, times dropout's factor, in sum P dP
judged 0 torch-eager '' "$drop"  # P is rounded before dropout and behind it
judged 0 tf32 '' "$column"       # a query's rounding moves all scores of its row
done_checking
