#!/usr/bin/env bash
# Kernels that a launch plan launches, on a GPU made of host memory: judged as others are, here and served; and plans that
# make no sense.
# usage: test_cubin.sh FAKE-CUDA-VERIFY FA-VERIFY (from the top of the source tree)
set -uo pipefail
command -v python3 >/dev/null || { echo 'skipped: no python3'; exit 77; }
fake=$(realpath "$1") verify=$(realpath "$2") root=$PWD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
. "$root/tests/support/cli_check.sh"
export FA_NVRTC=off
mkdir plans
cp "$root/tests/gpu/rows_plan.json" plans/good.json
printf '\177ELF rows' >plans/rows.cubin
"$verify" list cases --cases "$root/cases/gqa.json" | sed 's/"dtype":"b*f16"/"dtype":"f32"/' >gqa.json
one='{"name":"one","dtype":"f32","seqlen_q":70,"seqlen_k":90,"heads_q":4,"heads_kv":2,"batch":2,"backward":false,"mask":{"type":"causal"}}'

judge() { # PLAN ARGUMENTS...
  run "$fake" run --jobs 1 --no-progress --no-explain --no-probe --color never --backend "cubin:plans/$1.json" "${@:2}"
}
change() { # PLAN PYTHON: good.json with a change, as PLAN.json
  python3 -c 'import json, sys
p = json.load(open("plans/good.json"))
l = p["launches"][0]
exec(sys.argv[1])
json.dump(p, open(sys.argv[2], "w"))' "$2" "plans/$1.json"
}

# ---- judged ----
judge good --cases gqa.json --report here.json
expect exits 0
run "$fake" run --jobs 1 --no-progress --no-explain --no-probe --backend "exec:$fake serve --backend cubin:plans/good.json" --cases gqa.json --report there.json
expect exits 0
run python3 "$root/tests/gpu/same_verdicts.py" here.json there.json
expect exits 0
judge good --case "$one" -v
expect exits 0
expect says 'kernel fake_rows: passed:1'
judge good -v --case '{"name":"h","seqlen_q":9}'
expect exits 4
expect says 'cubin: it has no f16'
judge good --case "${one/70/0}" # a grid of no blocks
expect exits 0
judge good --case '{"name":"b","dtype":"f32","seqlen_q":9}' -v
expect says 'backward not judged: cubin: it has no backward pass'

# ---- wrong ----
change scale 'l["params"][25] = {"f32": "scale_log2"}'
judge scale --case "$one"
expect exits 1
expect says_line '^FAIL one '
change idle 'l["when"] = "is_f16"'
judge idle --case "$one"
expect exits 1
expect says 'never written'
change group 'l["params"][22] = {"i32": 1}; l["grid"][1] = "heads_kv"'
judge group --case "$one"
expect exits 1
run env FAKE_CUDA=scribble "$fake" run --no-progress --no-explain --no-probe --backend cubin:plans/good.json --case "$one"
expect exits 1
expect says_line '^OOB one .*back guard of .*: 1 byte'
run env FAKE_CUDA=fault "$fake" run --no-progress --no-probe --backend cubin:plans/good.json --case "$one"
expect exits 1
expect says_line '^CRASH one .*CUDA_ERROR_ILLEGAL_ADDRESS'
# each case in a process of its own, also where the child that lost its context serves
run env FAKE_CUDA=fault "$fake" run --jobs 1 --no-progress --no-probe --backend "exec:$fake serve --backend cubin:plans/good.json" --case "$one" --case "${one/one/two}"
expect exits 1
expect lines '^CRASH (one|two) .*CUDA_ERROR_ILLEGAL_ADDRESS' 2
# an LSE of its own convention: declared, but not what it writes
change base 'p["hello"]["lse"] = {"base": "2"}'
judge base --case "$one"
expect exits 1
expect says_line '^FAIL one .*|lse: '
change tokens 'p["hello"]["lse"] = {"layout": "tokens_heads"}; l["params"][18:20] = [{"i64": "lse.stride.0"}, {"i64": 1}]'
judge tokens --case '{"name":"one","dtype":"f32","seqlen_q":1,"seqlen_k":90,"heads_q":4,"backward":false}'
expect exits 0

# ---- plans that cannot be launched ----
crashes() { # TEXT PYTHON
  change it "$2"
  judge it --case "$one"
  expect exits 1
  expect says_line "^CRASH one .*$1"
}
crashes 'launches\[0\]: block is 0, and may be from 1 to 1024' 'l["block"] = ["seqlen_q - 70"]'
crashes 'launches\[0\]: grid is -1' 'l["grid"] = [-1]'
crashes 'launches\[0\]: grid is 70000, and may be from 0 to 65535' 'l["grid"] = [1, "1000 * seqlen_q"]'
crashes 'shared is 1048577' 'l["shared"] = 1048577'
crashes 'workspace is -1' 'p["workspace"] = -1'
crashes 'params\[0\]: value is 7000000000' 'l["params"][0] = {"i32": "seqlen_q * 100000000"}'
crashes 'when: a value that does not fit' 'l["when"] = "cdiv(1, seqlen_q - 70)"'

# ---- plans that make no sense ----
refused() { # TEXT PYTHON
  change it "$2"
  judge it --case "$one"
  expect exits 2
  expect complains "plans/it.json: $1"
}
refused '"fa_cubin" must be 1' 'p["fa_cubin"] = 2'
refused '"lanches" is an unknown key; there are fa_cubin, module' 'p["lanches"] = []'
refused 'launches: must be an array of 1 to 16' 'p["launches"] = []'
refused 'launches[0]: "kernel" is missing' 'del l["kernel"]'
refused 'launches[0]: "threads" is an unknown key; there are kernel, pass' 'l["threads"] = 1'
refused 'launches[0]: "pass": "both" is none of forward, backward' 'l["pass"] = "both"'
refused 'launches: none is of the pass "forward"' 'l["pass"] = "backward"'
refused 'launches[0]: grid[0]: column 6: there is no name seqlen' 'l["grid"][0] = "cdiv(seqlen, 64)"'
refused 'launches[0]: block: must be an array of one to three' 'del l["block"]'
refused 'launches[0]: cluster: must be an array of one to three' 'l["cluster"] = [1, 1, 1, 1]'
refused 'launches[0]: grid[1]: must be an integer, or an expression' 'l["grid"][1] = 1.5'
refused 'launches[0]: params[0]: must be an object with one key out of tensor, workspace, i32' 'l["params"][0] = "q"'
refused 'launches[0]: params[0]: tensor: "qq" is no tensor of a call' 'l["params"][0] = {"tensor": "qq"}'
refused 'launches[0]: params[25]: f32: must be a number, or one of scale, scale_log2' 'l["params"][25] = {"f32": "log2"}'
refused 'launches[0]: params: must be an array of at most 64' 'l["params"] *= 3'
refused 'workspace: column 1' 'p["workspace"] = "bytes"'
refused 'hello: "dtypes": "f8" is none of' 'p["hello"]["dtypes"] = ["f8"]'
refused '"module" is missing' 'del p["module"]'
refused 'module: plans/none.cubin: No such file' 'p["module"] = "none.cubin"'
refused 'module: plans/good.json is neither a cubin, nor a fatbin, nor PTX' 'p["module"] = "good.json"'
echo '{"fa_cubin": 1,' >plans/it.json
judge it --case "$one"
expect exits 2
expect complains 'plans/it.json:'
run "$fake" run --backend cubin --case "$one"
expect exits 2
expect complains 'cubin:PLAN.json'
judge none --case "$one"
expect exits 2
expect complains 'plans/none.json: No such file'
# the driver finds what is wrong with a module
change it 'l["kernel"] = "fake_columns"'
judge it --case "$one"
expect exits 3
expect complains 'not usable here: plans/it.json: launches[0]: fake_columns'
run env FA_LIBCUDA=libcuda-is-not-here.so "$verify" run --backend cubin:plans/good.json --case "$one"
expect exits 3
done_checking
