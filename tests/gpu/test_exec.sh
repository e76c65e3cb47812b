#!/usr/bin/env bash
# The backend exec:CMD: a child is judged like any other subject, and any misbehaviour costs one case.
# usage: test_exec.sh FA-VERIFY (from the top of the source tree)
set -uo pipefail
command -v python3 >/dev/null || { echo 'skipped: no python3'; exit 77; }
PATH=$(python3 -c 'import os, sys; print(os.path.dirname(sys.executable))'):$PATH # a version manager's stand-in takes ten times as long to start
verify=$(realpath "$1") child="python3 $PWD/tests/exec/child.py" check=$PWD/tests/support/cli_check.sh
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
. "$check"
mkdir folders
export FA_EXEC_DIR=$work/folders CHILD_PID_FILE=$work/pid

small='"family":"flash","dtype":"f32","head_dim":8,"mask":{"type":"causal"}'
printf '{"fa_cases":1,"defaults":{%s},"cases":[{"name":"five","seqlen_q":5},{"name":"six","seqlen_q":6,"heads_q":2,"heads_kv":1}]}' "$small" >two.json
judge() { # COMMAND ARGUMENTS...
  run "$verify" run --jobs 1 --no-progress --color never --backend "exec:$1" "${@:2}"
}

# ---- a good child ----
judge "$child" --cases two.json
expect exits 0
expect lines '^PASS (five|six)  exec:.*  fwd\+bwd  r=' 2
judge "$child --ask" --no-isolate --case '{"name":"f16","family":"flash","dtype":"f16","seqlen_q":20,"seqlen_k":27,"batch":2,"head_dim":8}'
expect exits 0
judge "$child" --case '{"name":"strided","family":"flash","dtype":"f16","seqlen_q":9,"head_dim":8,"batch":2,"layout":"bhsd","strides":{"k":{"gap":[8,8,8]},"o":{"gap":[8,0,8]}}}'
expect exits 0
judge "$child" --case '{"name":"empty","family":"flash","dtype":"f32","seqlen_q":7,"seqlen_k":3,"head_dim":8,"mask":{"type":"causal"}}'
expect exits 0
cache='"family":"kvcache","dtype":"f32","head_dim":8,"batch":2,"heads_q":2,"heads_kv":1,"seqlen_q":5,"seqlen_k":9,"mask":{"type":"causal"},"kvcache":{"len":[4,0],"new":3}'
judge "$child" --case "{\"name\":\"cache\",$cache}"
expect exits 0
judge "$child --fault cache" --case "{\"name\":\"cache\",$cache}"
expect exits 1
expect says_line '^OOB cache .*cache k\[1,8,0,7\] changed'
judge "X='a b' && cat | $child | cat" --cases two.json # a shell's command, whatever it is
expect exits 0
expect lines ^PASS 2

# ---- features that it lacks ----
judge "$child" -v --case '{"name":"s","dtype":"f32","seqlen_q":6,"softcap":2}'
expect exits 4
expect says "exec: it has no softcap"
judge "$child" -v --case '{"name":"b","dtype":"bf16","seqlen_q":6}'
expect says "exec: it has no bf16"
judge "$child" -v --case '{"name":"m","family":"memeff","dtype":"f32","seqlen_q":6}'
expect says "exec: it has no memeff"
judge "$child" -v --case '{"name":"p","family":"kvcache","dtype":"f32","seqlen_q":1,"seqlen_k":6,"kvcache":{"len":[3],"page_size":2}}'
expect says "exec: it has no paged"
judge "$child --ask" -v --case '{"name":"l","dtype":"f32","seqlen_q":33}'
expect exits 4
expect says "exec: more than 32 rows take too long"

# ---- one case goes wrong, the next is judged ----
goes_wrong() { # FAULT STATE TEXT [SECONDS]
  judge "$child --ask --fault $1" --cases two.json --timeout "${4:-60}"
  expect exits 1
  expect says_failure "^$2 five  .*$3"
  expect says_line '^PASS six  '
}
goes_wrong wrong FAIL 'o: 1 of 40 bad'
goes_wrong unwritten FAIL '1 never written'
goes_wrong missing CRASH 'outputs cannot be used: lse is missing'
goes_wrong shape CRASH 'o is f32 \[1,1,5,8\], the call needs f32 \[1,5,1,8\]'
goes_wrong dtype CRASH 'lse is f16 \[1,1,5\], the call needs f32'
goes_wrong file CRASH 'outputs.safetensors: 7 bytes'
goes_wrong crash CRASH 'the child .*SIGSEGV'
goes_wrong exit CRASH 'the child ended with status 3 '
goes_wrong supports CRASH 'asked whether it supports the case: the child ended with status 4'
goes_wrong garbage CRASH 'what is no answer: "computing row 1"'
goes_wrong endless CRASH 'a line that does not end: "xxx'
goes_wrong stateless CRASH 'no "state" out of ok, rejected, oob, unsupported, error'
goes_wrong refuse FAIL 'refused: not today'
goes_wrong hang HANG 'not done after 5 s' 5
judge "$child --fault error" --cases two.json
expect exits 3
expect says_line '^ERROR five .*the device is gone'
judge "$child --fault refuse" --case "{$small,\"name\":\"five\",\"seqlen_q\":5,\"expect\":\"reject\"}"
expect exits 0

# The repro line is a valid command, whatever the child's command is.
judge "A='x y'; export A; $child --fault wrong" --case "{$small,\"name\":\"it's \$(touch oops)\",\"seqlen_q\":5}"
expect exits 1
repro=$(sed -n 's/.*  repro: //p' out)
run bash -c "$repro"
expect exits 1
expect says_line "^FAIL it's "
expect missing oops

# ---- no child ----
judge "$child --fault unusable" --cases two.json
expect exits 3
expect complains "not usable here: "
expect complains "there is no device"
refused() { # TEXT COMMAND
  judge "$2" --cases two.json
  expect exits 2
  expect complains "$1"
  expect silent
}
refused '"fa_exec" must be 1' "$child --fault version"
refused '"colour" is none of causal' "$child --fault feature"
refused 'lacks "id": 1' "$child --fault id"
refused 'no hello: the child ended with status 1' "$child --fault early"
refused 'no hello: the child ended with status 127' "./no-such-program"
refused 'what is no answer: "hello"' "echo hello"
refused 'no hello: the child ended with status 0' "true"
run "$verify" run --backend exec --cases two.json
expect exits 2
expect complains "exec:CMD"
FA_EXEC_DIR=$work/nowhere refused 'FA_EXEC_DIR: ' "$child"

# ---- nothing is left behind, even if every process above it is killed ----
gone() {
  for _ in $(seq 100); do
    [ -z "$(ls -A folders)" ] && ! kill -0 "$(cat pid)" 2>/dev/null && return
    sleep 0.1
  done
  return 1
}
expect gone
rm pid
"$verify" run --jobs 1 --no-progress --timeout 600 --backend "exec:$child --fault hang; true" --cases two.json >/dev/null 2>&1 &
top=$!
disown # otherwise the shell announces its death
wait_for "" pid
kill -9 $top
expect gone
done_checking
