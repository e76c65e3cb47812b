#!/usr/bin/env bash
# The simulated kernel is a correct one when it is told to be, and a wrong one when it is told to be.
# usage: test_variants.sh FA-VERIFY SIMULATED.so (from the top of the source tree)
set -uo pipefail
verify=$(realpath "$1") plugin=$(realpath "$2") root=$PWD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
source "$root/tests/support/cli_check.sh"

judge() { # SETTINGS CASE-FILE...
  local settings=$1
  shift
  FA_SIMULATED=$settings run "$verify" run --backend "plugin:$plugin" --no-progress --color never --filter "$filter" --cases "${@/#/$root/cases/}"
}
filter='^[a-m]' # half of the cases are enough
judge declare=simt-f32,p=io,ds=io,block_n=64 window.json varlen.json gqa.json softcap.json alibi.json
expect exits 0
expect says 'failed:0'
judge declare=mma-ampere,mma-sm80 window.json varlen.json dropout.json kvcache.json edge.json
expect exits 0

filter=.
for wrong in window_left_more=1 window_right_more=1 drop_last_key=1 scale_factor=1.01 lse_base2=1 lse_unscaled=1; do
  judge "declare=simt-f32,p=io,ds=io,block_n=64,$wrong" window.json
  expect exits 1
done
judge declare=simt-f32,p=io,ds=io,gqa_modulo=1 gqa.json
expect exits 1
judge declare=simt-f32,p=io,ds=io,softcap_before_scale=1 softcap.json
expect exits 1
judge declare=simt-f32,p=io,ds=io,alibi_flipped=1 alibi.json
expect exits 1
for wrong in dropout_rounds=8 dropout_layout=memeff; do
  judge "declare=simt-f32,p=io,ds=io,$wrong" dropout.json
  expect exits 1
done
judge nonsense=1 window.json
expect complains 'what is nonsense=1'
done_checking
