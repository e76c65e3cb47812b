#!/usr/bin/env bash
# The program with a GPU made of host memory: it is the default, a kernel that faults, hangs or writes outside its
# tensors costs one case and a worker, and a lost device is an error of the world. Then the real program without a
# driver.
# usage: test_cuda_cli.sh FAKE-CUDA-VERIFY FA-VERIFY
set -uo pipefail
fake=$(realpath "$1") verify=$(realpath "$2") checks=$(dirname "$(realpath "$0")")/../support/cli_check.sh
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
. "$checks"

export FA_NVRTC=off # the fake GPU cannot run code of the real compiler
cat >two.json <<EOF2
{ "fa_cases": 1, "cases": [ { "name": "one", "seqlen_q": 20 }, { "name": "two", "seqlen_q": 33, "dtype": "bf16" },
  { "name": "three", "seqlen_q": 20, "mask": { "type": "causal" } } ] }
EOF2

run "$fake" list backends
expect exits 0
expect says_line 'usable: Fake GPU, sm_90, 3 SMs, driver CUDA'
run "$fake" --cases two.json
expect exits 0
expect complains_line '^backend: cuda \(Fake GPU'
expect lines '^PASS .* cuda  fwd\+bwd' 3
run "$fake" --cases two.json --no-isolate
expect exits 0
run "$fake" --cases two.json --backend cuda --backend host
expect exits 0
expect lines '^PASS' 6
run env FAKE_CUDA=fault "$fake" --cases two.json --jobs 1
expect exits 1
expect lines '^CRASH .*CUDA_ERROR_ILLEGAL_ADDRESS 700' 3 # each in a process of its own
run env FAKE_CUDA=fault "$fake" --cases two.json --no-isolate
expect exits 1
expect lines '^CRASH' 1
expect lines "^ERROR .*took the device's context with it" 2
run env FAKE_CUDA=scribble "$fake" --cases two.json
expect exits 1
expect lines '^OOB .*back guard of .*: 1 byte' 3
run env FAKE_CUDA=hang "$fake" --cases two.json --timeout 1 --jobs 3
expect exits 1
expect lines '^HANG .*not done after 1 s: killed' 3
run env FAKE_CUDA=slow "$fake" --cases two.json --jobs 2
expect exits 0
expect lines '^PASS .* cuda  fwd\+bwd' 3
run env FA_HOPPER=on "$fake" --cases two.json --backend cuda # the user's mistake, no kernel's
expect exits 2
expect complains "FA_HOPPER=on: off or auto"
run env FA_NVRTC=on "$fake" --cases two.json --backend cuda
expect exits 2
expect complains "FA_NVRTC=on: off, auto or always"
# Workers take turns opening their contexts, and one that hangs there costs its own case.
run env FAKE_CUDA=slow FAKE_CUDA_OPENINGS=openings "$fake" random --count 8 --jobs 8 --profile rate-host --backend cuda
expect exits 0
most_open() { awk '/[(]/ { if (++open > most) most = open } /[)]/ { --open; ++n } END { print n, most }' openings; }
expect [ "$(most_open)" = "9 1" ] # including the process that probes the backends
run env FAKE_CUDA=stuck "$fake" random --count 8 --jobs 8 --profile rate-host --backend cuda --timeout 5
expect exits 1
expect lines '^HANG' 1
expect lines '^PASS' 7
run env FAKE_CUDA=slow "$fake" --cases two.json --no-isolate --backend cuda --backend host
expect exits 0
expect lines '^PASS' 6
run env FAKE_CUDA=lost "$fake" --cases two.json --jobs 1
expect exits 3
expect lines '^ERROR' 3
run env FAKE_CUDA=none "$fake" --cases two.json
expect exits 0
expect complains_line 'backend: host \(cuda: the CUDA driver finds no device\)'
run env FAKE_CUDA=none "$fake" --cases two.json --backend cuda
expect exits 3
expect complains_line 'not usable here: the CUDA driver finds no device'

run "$fake" bench --cases two.json --cold --report bench.json
expect exits 0
expect lines ' (fwd|bwd) +[0-9.]+ us .* TFLOP/s' 6
expect says_line 'Fake GPU, sm_90.*, cold'
expect grep -q '"fa_bench":' bench.json
expect grep -q '"pass":.*"backward"' bench.json
run "$fake" bench --cases two.json --filter '^t'
expect exits 0
expect lines ' fwd +[0-9.]+ us ' 2
run "$fake" bench --cases two.json --filter none
expect exits 4
run "$fake" bench --case '{"family": "flex", "seqlen_q": 8}'
expect exits 4
expect says_line 'left out: kernels for expressions are compiled at run time, and FA_NVRTC=off'
run env FA_NVRTC=auto "$fake" bench --case '{"family": "flex", "seqlen_q": 8}'
expect exits 0
expect lines ' (fwd|bwd) +[0-9.]+ us ' 2
run "$fake" --backend cuda --case '{"name": "no_compiler", "family": "flex", "seqlen_q": 8}'
expect lines '^SKIP.*no_compiler.*FA_NVRTC=off' 1
run "$fake" --case '{"name": "far", "seqlen_q": 3, "seqlen_k": 3, "head_dim": 64, "strides": {"k": {"gap": [0, 1073741888, 0]}}}'
expect exits 0
expect lines '^PASS far  cuda  fwd\+bwd' 1
run "$fake" bench --backend cuda
expect exits 2
run "$fake" bench --backend host --cases two.json
expect exits 2
run "$fake" bench --backend cuda --cases two.json --jobs 3
expect exits 2

export FA_LIBCUDA=libcuda-is-not-here.so
run "$verify" list backends
expect exits 0
expect says_line 'not usable: no CUDA driver: libcuda-is-not-here.so'
run "$verify" --cases two.json
expect exits 0
expect complains_line '^backend: host \(cuda: no CUDA driver'
run "$verify" --cases two.json --backend cuda
expect exits 3
run "$verify" bench --cases two.json
expect exits 3
expect complains_line 'no CUDA driver'

done_checking
