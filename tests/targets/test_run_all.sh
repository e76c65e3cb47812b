#!/usr/bin/env bash
# run_all.sh reports it when a target dies, executes nothing or finds something; shell scripts replace the
# targets.
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
expect() { # DIR EXIT REGEX...: output and exit code of a run of one second
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

# A slow input is not a finding, and what an earlier run left is not mistaken for this one's end.
target slow unhurried "$works"'; for a in "$@"; do case $a in -artifact_prefix=*) : >"${a#*=}slow-unit-1" ;; esac; done'
mkdir -p "$work/slow/logs" && echo 127 >"$work/slow/logs/unhurried.0.status"
expect slow 0 '^unhurried .* 0  well$'

# Without a corpus in its folder, a target gets the archive beside the script.
mkdir -p "$work/script/corpus"
cp -- "$root/fuzz/run_all.sh" "$work/script/"
archive() { # NAME INPUT...: each holds its own name
  local name=$1 input
  shift
  rm -rf "$work/inputs" "$work/script/corpus/$name.zip"
  mkdir "$work/inputs"
  for input in "$@"; do echo "$input" >"$work/inputs/$input"; done
  (cd -- "$work/inputs" && cmake -E tar cf "$work/script/corpus/$name.zip" --format=zip -- "$@")
}
# shellcheck disable=SC2016 # for the target to expand
shows='for last; do :; done; cd "$last" && for i in *; do echo "input $i $(cat "$i")"; done; '
# unpacked DIR NAME INPUT...: runs the script over DIR; the target must see exactly these inputs
unpacked() {
  local dir=$1 name=$2 want got
  shift 2
  want=$(for input in "$@"; do echo "input $input $input"; done)
  "$work/script/run_all.sh" "$work/$dir" 1 >"$work/$dir.out" 2>&1 || fail "$dir: exit $?: $(cat "$work/$dir.out")"
  got=$(grep '^input' "$work/$dir/logs/$name.0.log" || true)
  if [ "$got" != "$want" ]; then fail "$dir: $name saw '$got', not '$want'"; fi
}
archive packed a b
target packed packed "$shows$works"
rmdir "$work/packed/corpus/packed"
unpacked packed packed a b
echo c >"$work/packed/corpus/packed/c" # the archive is unchanged, so the folder stays
unpacked packed packed a b c
archive packed b d
unpacked packed packed b d
rm "$work/script/corpus/packed.zip" # the unpacked corpus is enough
unpacked packed packed b d

# Some of the inputs, others for another seed; options and dictionaries from beside the script where the folder has none.
archive packed a b c d e f g h
mkdir -p "$work/script/targets"
echo 'max_len = 77' >"$work/script/targets/packed_fuzzer.options"
: >"$work/script/targets/packed_fuzzer.dict"
target packed packed "echo \"arguments \$*\"; $shows$works"
rm -rf "$work/packed/corpus/packed"
some() { # SEED: prints the inputs that it sees
  SEED=$1 INPUTS=3 "$work/script/run_all.sh" "$work/packed" 1 >"$work/packed.out" 2>&1 || fail "some: exit $?: $(cat "$work/packed.out")"
  grep '^input' "$work/packed/logs/packed.0.log" | cut -d' ' -f2 | tr -d '\n'
}
first=$(some 1) again=$(some 1) others=$(some 2)$(some 3)$(some 4)
if [ ${#first} != 3 ] || [ "$first" != "$again" ]; then fail "some: $first, then $again"; fi
if [ ${#others} != 9 ] || [ "$others" = "$first$first$first" ]; then fail "some: seed 1 sees $first, others $others"; fi
if ! grep -q "^arguments .* -dict=$work/script/targets/packed_fuzzer.dict -max_len=77 " "$work/packed/logs/packed.0.log"; then
  fail "neither dictionary nor options: $(cat "$work/packed/logs/packed.0.log")"
fi
rm -r "$work/script/targets" "$work/packed/corpus/packed"

archive own a
target own own "$shows$works"
echo mine >"$work/own/corpus/own/mine"
unpacked own own mine

target bare bare "$works"
rmdir "$work/bare/corpus/bare"
expect bare 1 '^no corpus for bare$'

archive torn a b
head -c 100 "$work/script/corpus/torn.zip" >"$work/torn.zip"
mv "$work/torn.zip" "$work/script/corpus/torn.zip"
target torn torn "$works"
rmdir "$work/torn/corpus/torn"
if "$work/script/run_all.sh" "$work/torn" 1 >"$work/torn.out" 2>&1; then fail "a torn archive is a corpus: $(cat "$work/torn.out")"; fi
if [ -e "$work/torn/corpus/torn" ]; then fail "a torn archive leaves a folder that the next run would take"; fi

# Each program that can unpack, without the others.
mkdir "$work/tools"
for tool in bash sh env basename dirname mkdir rm mv cp cmp cat sed grep tail tr find wc sleep head sort awk cut; do ln -s "$(command -v $tool)" "$work/tools/"; done
archive packed x y z
for tool in cmake unzip python3 none; do
  rm -rf "$work/packed/corpus" "$work/only"
  mkdir "$work/only"
  if [ $tool != none ]; then
    real=$(command -v $tool) || continue
    printf '#!/bin/bash\nPATH=%q exec %q "$@"\n' "$PATH" "$real" >"$work/only/$tool"
    chmod +x "$work/only/$tool"
    PATH=$work/only:$work/tools unpacked packed packed x y z
  elif PATH=$work/tools "$work/script/run_all.sh" "$work/packed" 1 >"$work/out" 2>&1 || ! grep -q 'takes cmake, unzip or python3' "$work/out"; then
    fail "without a program that unpacks: $(cat "$work/out")"
  fi
done

mkdir "$work/empty"
expect empty 2 'holds no target'
exit $failed
