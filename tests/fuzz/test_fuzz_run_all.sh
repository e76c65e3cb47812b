#!/usr/bin/env bash
# run_all.sh says so when a target dies, executes nothing or finds something; shell scripts stand for the targets.
set -euo pipefail
root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT
failed=0
fail() { echo "failed: $*" >&2; failed=1; }

target() { # DIR NAME COMMANDS
  mkdir -p -- "$work/$1/corpus/$2"
  printf '#!/bin/sh\n%s\n' "$3" >"$work/$1/$2_fuzzer"
  chmod +x "$work/$1/$2_fuzzer"
}
expect() { # DIR EXIT REGEX...: what a run of one second says and exits with
  local dir=$1 want=$2 got=0 regex
  shift 2
  "$root/fuzz/run_all.sh" "$work/$dir" 1 2 >"$work/$dir.out" 2>&1 || got=$?
  if [ "$got" != "$want" ]; then fail "$dir: exit $got, not $want: $(cat "$work/$dir.out")"; fi
  for regex in "$@"; do
    if ! grep -qE -- "$regex" "$work/$dir.out"; then fail "$dir: no line like '$regex': $(cat "$work/$dir.out")"; fi
  done
}
works='echo "#9 DONE cov: 12 ft: 34 corp: 5/6b"; echo "stat::number_of_executed_units: 21"'

target sound steady "$works"
expect sound 0 '^steady +42 +42 +12 +34 +0 +0  well$'

target dying steady "$works"
target dying unloadable 'echo "libgone.so.1: cannot open shared object file" >&2; exit 127'
expect dying 1 '^steady .* well$' '^unloadable +0 .* status 127$' 'unloadable.1.log: libgone.so.1: cannot open'

target killed late "$works"'; kill -9 $$'
expect killed 1 '^late +42 .* status 137$'

target idle lazy 'echo "stat::number_of_executed_units: 0"'
expect idle 1 '^lazy +0 .* executed nothing$'

# One of two processes is enough.
target half lame 'case "$*" in *-seed=1001*) exit 3 ;; esac; '"$works"
expect half 1 '^lame +21 .* status 3$'

target finding lucky "$works"'; for a in "$@"; do case $a in -artifact_prefix=*) : >"${a#*=}crash-1"; : >"${a#*=}finding-1.json" ;; esac; done; exit 1'
expect finding 1 '^lucky +42 .* 1  status 1$' 'artifacts/lucky/crash-1$' 'artifacts/lucky/finding-1.json$'

# A slow input is none; what an earlier run left is not taken for this one's end.
target slow unhurried "$works"'; for a in "$@"; do case $a in -artifact_prefix=*) : >"${a#*=}slow-unit-1" ;; esac; done'
mkdir -p "$work/slow/logs" && echo 127 >"$work/slow/logs/unhurried.0.status"
expect slow 0 '^unhurried .* 0  well$'

mkdir "$work/empty"
expect empty 2 'holds no target'
exit $failed
