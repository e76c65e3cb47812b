#!/usr/bin/env bash
# Version 2 of the protocol: shared memory, conventions of the LSE, outputs that are left out; connect and py.
# usage: test_exec2.sh FA-VERIFY (from the top of the source tree)
set -uo pipefail
command -v python3 >/dev/null || { echo 'skipped: no python3'; exit 77; }
PATH=$(python3 -c 'import os, sys; print(os.path.dirname(sys.executable))'):$PATH # a version manager's stand-in takes ten times as long to start
verify=$(realpath "$1") child="python3 $PWD/tests/exec/child2.py" check=$PWD/tests/support/cli_check.sh
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
. "$check"

small='"family":"flash","dtype":"f32","head_dim":8,"mask":{"type":"causal"}'
printf '{"fa_cases":1,"defaults":{%s},"cases":[{"name":"five","seqlen_q":5},{"name":"six","seqlen_q":6,"heads_q":2,"heads_kv":1}]}' "$small" >two.json
judge() { # ARGUMENTS-OF-CHILD ARGUMENTS...
  run "$verify" run --jobs 1 --no-progress --no-probe --color never --backend "exec:$child $1" "${@:2}"
}

# ---- a good child, whatever the case's layout ----
judge "" --cases two.json
expect exits 0
expect lines '^PASS (five|six)  exec:.*  fwd\+bwd  r=' 2
judge "" --no-isolate --case '{"name":"strided","dtype":"f16","seqlen_q":9,"head_dim":8,"batch":2,"layout":"bhsd","strides":{"k":{"gap":[8,8,8]},"o":{"gap":[8,0,8]},"lse":{"gap":[0,4,0]}}}'
expect exits 0
judge "" --case '{"name":"packed","dtype":"f32","seqlen_q":7,"head_dim":8,"heads_q":2,"packed":"qkv"}'
expect exits 0
judge "" --case '{"name":"large","dtype":"f16","seqlen_q":2,"seqlen_k":3,"head_dim":8,"batch":2,"strides":{"k":{"gap":[0,0,1200000000]}}}'
expect exits 0 # 5 GB of addresses, of which little exists
judge "" --case "{\"name\":\"empty\",$small,\"seqlen_q\":7,\"seqlen_k\":3}"
expect exits 0

# ---- conventions: right if declared, wrong if others are ----
square="{\"name\":\"square\",$small,\"seqlen_q\":7,\"batch\":2,\"heads_q\":2}"
varlen='{"name":"varlen","dtype":"f32","head_dim":8,"heads_q":2,"cu_seqlens_q":[0,5,9],"cu_seqlens_k":[0,7,20]}'
alibi="{\"name\":\"alibi\",$small,\"seqlen_q\":5,\"seqlen_k\":9,\"alibi\":{\"slopes\":[0.25]}}"
convention() { # CASE KEY=VALUE,... RESULT-IF-KEPT-SILENT
  judge "--lse $2" --case "$1"
  expect exits 0
  expect says_line '^PASS '
  judge "--lse $(sed 's/,/!,/g;s/$/!/' <<<"$2")" --case "$1"
  expect exits 1
  expect says "lse: "
}
convention "$square" base=2
convention "$square" scaled=false
convention "$square" base=2,scaled=false
convention "$square" layout=tokens_heads
convention "$varlen" layout=tokens_heads,base=2
convention "$varlen" base=2
convention "$alibi" alibi=column
convention "$alibi" alibi=column,base=2,scaled=false
judge "--lse layout=padded,dtype=f64" --case "$varlen" # of another shape: silence would end the child
expect exits 0

# ---- what it has no word for, or no limit ----
judge "" -v --case '{"name":"s","dtype":"f32","seqlen_q":6,"softcap":2}'
expect exits 4
expect says "exec: it has no softcap"
judge "" -v --case '{"name":"d","dtype":"f32","seqlen_q":6,"head_dim":80}'
expect exits 4
expect says "exec: head_dim 80 is more than 64"

# ---- files, for one that cannot map memory ----
said='"transport": "files", "lse": {"base": "e", "scaled": true, "empty": "as_case"}, "empty_o": "0"'
old="python3 $(dirname "$check")/../exec/child.py | sed -u 's/\"fa_exec\": 1/\"fa_exec\": 2, $said/'"
run "$verify" run --jobs 1 --no-progress --color never --backend "exec:$old" --cases two.json
expect exits 0
expect lines '^PASS (five|six)  exec:' 2

# ---- memory: what it touches and must not ----
goes_wrong() { # FAULT STATE TEXT [ARGUMENTS-OF-CHILD]
  judge "--fault $1 ${4:-}" --cases two.json --timeout 60 -v
  expect exits 1
  expect says_line "^$2 five  .*$3"
  expect says_line '^PASS six  '
}
goes_wrong wrong FAIL 'o: 1 of 40 bad'
goes_wrong lazy FAIL 'o: .*40 never written'
goes_wrong unwritten FAIL '1 never written'
goes_wrong input INPUT_MODIFIED 'q'
goes_wrong guard OOB 'back guard of o: 1 byte'
goes_wrong far OOB 'front guard of o: 1 byte'
goes_wrong device OOB 'o: 8 bytes past its end'
judge '--fault late' --cases two.json
expect exits 0
expect says_line '^SKIP five  .*no rows of 5'
expect says_line '^PASS six  '
goes_wrong late_input INPUT_MODIFIED 'q'
goes_wrong late_guard OOB 'back guard of o: 1 byte'
goes_wrong late_lse_guard OOB 'back guard of lse: 1 byte' '--lse base=2'
goes_wrong lse_guard OOB 'back guard of lse: 1 byte' '--lse base=2'
goes_wrong lazy FAIL 'lse: .*5 never written' '--lse base=2'
goes_wrong refuse FAIL 'refused: not today'
goes_wrong stateless CRASH 'no "state" out of ok, rejected, oob, unsupported, error'
goes_wrong crash CRASH 'the child .*SIGSEGV'
goes_wrong garbage CRASH 'what is no answer: "computing row 1"'
judge "--fault hang" --cases two.json --timeout 3
expect says_line '^HANG five  '
expect says_line '^PASS six  '
judge "--fault gap" --case "{\"name\":\"five\",$small,\"seqlen_q\":5,\"strides\":{\"o\":{\"gap\":[0,0,8]}}}"
expect exits 1
expect says_line '^OOB five  .*o'
judge "--say '{\"outputs\":[\"colour\"]}'" --cases two.json
expect says_line "^CRASH five  .*answer: \"outputs\": \"colour\" is none of o, lse, p_debug, dq"

# ---- everything that a case says arrives ----
arrives() { # TENSORS CASE
  judge "--names any --hello '{\"features\":$all,\"families\":[\"flash\",\"memeff\",\"flex\",\"kvcache\"]}'" --case "$2"
  expect says_line "refused: $1\$"
}
all='["varlen","causal","bottom_right","alibi","bias","bias_grad","dlse","score_mod","block_sparse","captures","captures_grad","append","paged","batch_idx","rotary","leftpad_k","seqused_k"]'
arrives 'tensors: alibi_slopes cu_seqlens_k cu_seqlens_q dk dlse do dq dv k leftpad_k lse o q seqused_k v' \
  '{"name":"a","dtype":"f32","head_dim":8,"cu_seqlens_q":[0,2],"cu_seqlens_k":[0,3],"seqused_k":[3],"leftpad_k":[1],"grad_lse":true,"alibi":{"slopes":[0.5]}}'
arrives 'tensors: bias dbias dk do dq dv k lse o q v' \
  '{"name":"b","family":"memeff","dtype":"f32","head_dim":8,"seqlen_q":3,"bias":{"shape":[1,1,"q","k"],"grad":true}}'
arrives 'tensors: dk do dq dv full_kv_indices full_kv_num_blocks full_q_indices full_q_num_blocks k kv_indices kv_num_blocks lse o q q_indices q_num_blocks v buffers: doc slope dbuffers: slope' \
  '{"name":"c","family":"flex","dtype":"f32","head_dim":8,"seqlen_q":4,"score_mod":"score + slope[h] * doc[q_idx]","buffers":{"slope":{"shape":[1],"grad":true},"doc":{"dtype":"i32","shape":[4],"below":3}},"block_sparse":{"q_block":2,"kv_block":2,"density":0.5}}'
arrives 'tensors: block_table cache_seqlens k k_new lse o q rotary_cos rotary_sin v v_new' \
  '{"name":"d","family":"kvcache","dtype":"f32","head_dim":8,"seqlen_q":1,"seqlen_k":8,"kvcache":{"len":[3],"new":1,"page_size":4,"rotary":{"dim":8}}}'
arrives 'tensors: cache_batch_idx cache_seqlens k leftpad_k lse o q v' \
  '{"name":"e","family":"kvcache","dtype":"f32","head_dim":8,"seqlen_q":1,"seqlen_k":8,"kvcache":{"len":[3],"batch_idx":[1],"leftpad":[1]}}'

# ---- outputs that it leaves out: always, or in this case ----
judge "--outputs o" --cases two.json -v
expect exits 0
expect says 'not delivered, not judged: lse'
judge "--outputs o,lse,dv --lse base=2" --cases two.json -v
expect exits 0
expect says 'not delivered, not judged: dq, dk'
judge "--say '{\"outputs\":[\"o\",\"lse\",\"dq\",\"dv\"]}'" --cases two.json -v
expect exits 0
expect says 'not delivered, not judged: dk'
judge "--say '{\"outputs\":[\"o\",\"dq\",\"dk\",\"dv\"]}'" --cases two.json -v
expect exits 0
expect says 'not delivered, not judged: lse'

# ---- a hello that makes no sense ----
refused() { # TEXT HELLO
  judge "--hello '$2'" --cases two.json
  expect exits 2
  expect complains "$1"
  expect silent
}
refused '"fa_exec" must be 1 or 2' '{"fa_exec":3}'
refused '"outputs": "colour" is none of o, lse, p_debug, dq, dk, dv, dbias, dbuffers' '{"outputs":["colour"]}'
refused '"lse.base": "10" is none of e, 2' '{"lse":{"base":"10"}}'
refused '"limits.head_dim.max" must be an integer' '{"limits":{"head_dim":{"max":"64"}}}'
refused '"tranport" is an unknown key; there are fa_exec' '{"tranport":"files"}'
refused '"arithmetic.name": "abacus" is none of ' '{"arithmetic":{"name":"abacus"}}'
refused '"name" must be a string' '{"name":2}'
judge "--hello '{\"why_not\":\"there is no device\"}'" --cases two.json
expect exits 3
expect complains "there is no device"

judge "--hello '{\"why_not\":\"no \\u001b[2J device\"}'" --cases two.json # which would clear a terminal
expect exits 3
expect complains "no ?[2J device"

# ---- a process that is already running ----
wait_for_socket() { for _ in $(seq 300); do sleep 0.2; [ -S socket ] && sleep 0.5 && return; done; } # it listens soon after
connected() {
  run "$verify" run --jobs 1 --no-progress --no-probe --color never --backend "connect:$work/socket" "$@"
}
$child --fault crash --listen "$work/socket" &
server=$!
wait_for_socket
connected --case "{\"name\":\"six\",$small,\"seqlen_q\":6}"
expect exits 0
expect says_line '^PASS six  connect:'
connected --case "{\"name\":\"five\",$small,\"seqlen_q\":5}"
expect exits 1
expect says_line '^CRASH five  .*the other side closed the connection'
wait $server 2>/dev/null
connected --cases two.json
expect exits 2
expect complains "nobody listens there"
# one that first takes memory, then closes, and then wants files: there is no folder for them
cat >fickle.py <<'END'
import json, socket, sys
server = socket.socket(socket.AF_UNIX)
server.bind(sys.argv[1])
server.listen()
for n in range(4):
    connection, _ = server.accept()
    for line in connection.makefile("r"):
        request = json.loads(line)
        if request["type"] != "hello":
            connection.shutdown(socket.SHUT_RDWR)
            break
        said = {"fa_exec": 2, "id": request["id"], "name": "fickle"}
        connection.sendall((json.dumps({**said, "transport": "files"} if n > 1 else said) + "\n").encode())
    connection.close()
END
rm -f socket
python3 fickle.py "$work/socket" &
server=$!
wait_for_socket
connected --no-isolate --cases two.json
expect exits 1
expect says_line '^CRASH five  .*the other side closed the connection'
expect says_line '^ERROR six  .*it wants files; connect goes through shared memory'
kill $server 2>/dev/null
wait $server 2>/dev/null
run "$verify" run --backend connect --cases two.json
expect exits 2
expect complains "connect:PATH"

# ---- the Python package ----
adapter() {
  run "$verify" run --jobs 1 --no-progress --no-probe --color never --backend "py:$1" --cases two.json
}
FA_PYTHON=$work/no-such-python adapter plain
expect exits 2
expect complains "no-such-python; set FA_PYTHON"
mkdir -p package/fa_verify/adapters
touch package/fa_verify/__init__.py package/fa_verify/adapters/__init__.py
cat >package/fa_verify/adapters/__main__.py <<END
import runpy, sys
name, *sys.argv[1:] = sys.argv[1:]
assert name == "plain" and __name__ == "__main__"
if "--fork" in sys.argv: sys.exit(2)
runpy.run_path("$(dirname "$check")/../exec/child2.py", run_name="__main__")
END
export PYTHONPATH=$work/package
adapter "plain"
expect exits 0
expect says_line '^PASS five  py:plain'
adapter "plain,--lse base=2"
expect exits 0
adapter "plain --fault wrong"
expect exits 1
rm -r package/fa_verify/adapters
adapter plain
expect exits 2
expect complains "lacks the package fa_verify"
run "$verify" run --backend py --cases two.json
expect exits 2
expect complains "py:NAME"
done_checking
