#!/usr/bin/env bash
# compute-sanitizer over the kernels of the judge on a GPU: its four tools at once over cases that come to every kernel, four calls at a
# time, so that they share launches, and once more in large tiles, and over recorded runs. First each tool has to see a planted fault.
# Skipped without a GPU or the tool.
# usage: [JUDGE_TOOLS='racecheck'] [JUDGE_SHARD=I/N] judge.sh FA-VERIFY [COMPUTE-SANITIZER]     from the top of the source tree
# JUDGE_TOOLS: only these. JUDGE_SHARD: only every N-th case, from case I on; racecheck takes minutes for all, and N machines or GPUs a share each.
set -uo pipefail
. "$(dirname -- "${BASH_SOURCE[0]}")/../support/gpu.sh"
verify=$(realpath "$1") sanitizer=${2:-compute-sanitizer}
work=$(mktemp -d) tools=${JUDGE_TOOLS:-memcheck initcheck racecheck synccheck}
trap 'rm -rf "$work"' EXIT
for tool in $tools; do
  [[ " memcheck initcheck racecheck synccheck " == *" $tool "* ]] || { echo "JUDGE_TOOLS: $tool; known are memcheck, initcheck, racecheck, synccheck"; exit 2; }
done
[ -n "${tools// /}" ] || { echo "JUDGE_TOOLS: there is none"; exit 2; }
why=$(why_no_gpu "$verify")
command -v "$sanitizer" >/dev/null || why="no compute-sanitizer"
command -v nvcc >/dev/null || why="no nvcc, for the planted faults"
skip_for "$why"
"$sanitizer" --help | grep dump-kernel-launches >/dev/null && launches=--dump-kernel-launches || launches=

tell() { # TOOL LOG COMMAND...: its exit status is 9 where the tool reports something
  local tool=$1 log=$2
  shift 2
  "$sanitizer" --tool "$tool" --kernel-name kns=fa_judge_entry_ --report-api-errors no --show-backtrace no $launches --error-exitcode 9 \
    --log-file "$log" "$@"
}

is_silent() { # LOG
  grep -q 'SUMMARY: 0 \(errors\|hazards\)' "$1" && ! grep 'SUMMARY:' "$1" | grep -qv 'SUMMARY: 0 \(errors\|hazards\)'
}

planted() { # TOOL FAULT
  tell "$1" "$work/planted.$1" "$work/planted" "$2" >"$work/planted.out.$1" 2>&1
  if is_silent "$work/planted.$1"; then echo "FAILED: $1 does not see the planted fault"; fi
}

watch() { # TOOL NAME COMMAND...: what it says of that, in a line; after a report or a failure, more
  local tool=$1 at=$work/$1.$2 began=$SECONDS rc=0
  shift 2
  tell "$tool" "$at.log" "$verify" "$@" >"$at.out" 2>&1 || rc=$?
  echo "$tool: $(tail -n 1 "$at.out"); $(grep -h SUMMARY "$at.log" | sed 's/=* //'), $((SECONDS - began)) s"
  [ $rc = 0 ] && is_silent "$at.log" && return
  echo "FAILED: $tool, exit status $rc"
  grep -v '^PASS' "$at.out" | tail -n 20
  grep '^=' "$at.log" | grep -v 'Launch' | head -n 40
}

over() { # TOOL FAULT: all that it has to see. The arithmetic of float32_softcap is the host kernels', not that of ref-f32
  local cases="${JUDGE_SHARD:+--shard $JUDGE_SHARD} --cases tests/device/every_kernel.json --judge both --jobs 4 --no-progress --no-explain --timeout 400"
  planted "$1" "$2"
  watch "$1" softcap run --backend host ${cases#--shard * } --filter ^float32_softcap$
  watch "$1" recorded check --judge both tests/golden/recorded-flash.safetensors
  watch "$1" cases run --backend ref-f32 $cases
  FA_JUDGE_WIDE_FROM=1 watch "$1" wide run --backend ref-f32 $cases
}

seen() { # those names in kernels.def that are not in the list of launches
  [ -n "$launches" ] || { echo "which kernels it saw this compute-sanitizer does not tell"; return; }
  for name in $(sed -n 's/^FA_JUDGE_KERNEL(\([a-z0-9_]*\),.*/\1/p' ref/cuda/kernels.def); do
    grep -qhw "fa_judge_entry_$name" "$work"/memcheck.*.log || echo "FAILED: $name was not launched"
  done
}

nvcc -arch=native -o "$work/planted" tests/sanitizer/planted.cu || exit 1
fault=0
for tool in memcheck initcheck racecheck synccheck; do
  fault=$((fault + 1))
  if [[ " $tools " == *" $tool "* ]]; then over $tool $fault 2>&1 | tee "$work/said.$tool" & fi
done
wait
if [[ " $tools " == *" memcheck "* && -z "${JUDGE_SHARD:-}" ]]; then seen | tee "$work/said.seen"; fi
! grep -q '^FAILED' "$work"/said.*
