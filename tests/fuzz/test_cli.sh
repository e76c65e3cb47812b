#!/usr/bin/env bash
# The program from outside: exit codes, what goes where, bad input, shards, repro, and faults of the subject.
# usage: test_cli.sh FA-VERIFY FAULTY   (FAULTY: tests/support/faulty_backend.c, the same program with a bad subject)
set -uo pipefail
here=$(realpath "$(dirname "$0")")
verify=$(realpath "$1") faulty=$(realpath "$2")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
. "$here/../support/cli_check.sh"

small='"dtype": "f16", "head_dim": 16, "seqlen_q": 8'
cat >five.json <<EOF
{ "fa_cases": 1, "defaults": { $small },
  "cases": [ { "name": "one" }, { "name": "two", "data_seed": "2" }, { "name": "thirteen", "seqlen_q": 13 },
             { "name": "four", "data_seed": "4" }, { "name": "five", "data_seed": "5" } ] }
EOF
cat >good.json <<EOF
{ "fa_cases": 1, "defaults": { $small }, "cases": [ { "name": "one" }, { "name": "two", "mask": { "type": "causal" } } ] }
EOF

# ---- plain runs ----
run "$verify" run --cases good.json --backend ref-f32
expect exits 0
expect last_line "tests:2 passed:2 failed:0 skipped:0 error:0"
expect lines '^PASS (one|two)  ref-f32  fwd\+bwd  r=' 2
run "$verify" --cases good.json --backend ref-f32 --no-isolate
expect exits 0
run "$verify" --cases good.json --backend ref-f32 -q
expect exits 0
expect lines . 1
run "$verify" --cases good.json --backend ref-f32 -qx
expect exits 0
expect lines . 1
run bash -c "'$verify' --cases - --backend ref-f32 <good.json"
expect exits 0
expect last_line "tests:2 passed:2 failed:0 skipped:0 error:0"
run "$verify" --cases good.json
expect complains "backend: "
run "$verify" run --case '{"name":"x","head_dim":8}' --backend ref-f32 --color always
expect exits 0
expect says $'\033[32mPASS'
run "$verify" run --case '{"name":"empty","head_dim":16,"seqlen_q":0,"seqlen_k":4,"backward":false}' --backend ref-f32 -v
expect exits 0
expect says "only the memory around them was checked"
run "$verify" --cases good.json --backend ref-f32 --backend faulty
expect exits 2
expect complains "unknown; this build has:"
run "$verify" --version
expect exits 0
expect says "fa-verify "
run "$verify" --help
expect exits 0
expect says "Exit codes: 0"
expect says "fa-verify COMMAND --help"
run "$verify" -V
expect exits 0
expect says "fa-verify "
cp out version
run "$verify" --version
expect same out version

# ---- a command's own help ----
for command in run random repro shrink probe check golden report bench list help completion man; do
  run "$verify" $command --help
  expect exits 0
  expect says "usage: fa-verify $command"
  expect says_line '^examples:$'
  expect lines '^ {6}.{75}' 0
  cp out own
  run "$verify" help $command
  expect exits 0
  expect same out own
  run "$verify" --help $command
  expect same out own
done
run "$verify" random --help
expect says "--count N"
expect lines '[-]-merge' 0
run "$verify" --cases good.json --help # run is meant
expect says "usage: fa-verify run"
run "$verify" help
expect exits 0
expect says_line '^commands:$'
run "$verify" completion
expect exits 2
expect complains "one of bash, zsh, fish"
for what in backends profiles fills mutants; do
  run "$verify" list $what
  expect exits 0
  expect says_line .
done
run "$verify" list cases --cases five.json --case '{"name":"six","seqlen_q":3}'
expect exits 0
expect lines '^{"name":"(one|two|thirteen|four|five|six)",.*}$' 6
run "$verify" list cases --case '{"heads_q":0}'
expect exits 2
run "$verify" list cases # by name: test_case_names.sh
expect exits 0

# ---- usage errors: exit 2, nothing run, nothing written ----
bad_usage() { # MESSAGE ARGUMENTS...
  local message=$1
  shift
  run "$verify" "$@"
  expect exits 2
  expect complains "$message"
  expect silent
}
bad_usage "the nearest is --filter" --cases good.json --fliter x
bad_usage "the nearest is random" randon --count 1
bad_usage "the nearest is random" help randon
bad_usage "unknown command causal; --help lists them" causal
bad_usage "unknown option --zzzz; COMMAND --help lists" --cases good.json --zzzz
bad_usage "or --tier NAME is needed" run
bad_usage "cannot write there: folder nowhere" --cases good.json --html nowhere/page.html
bad_usage "one command at a time" help run random
bad_usage "the nearest is random" randon --help
bad_usage "--profile cuasal: there is none; the nearest is causal; there are: causal, varlen" random --count 1 --profile cuasal
bad_usage "--law key-permutatio: there is none; the nearest is key-permutation" run --law key-permutatio --cases good.json
bad_usage "--law none: there is none; there are: repeat" run --law none --cases good.json
bad_usage "--color alwys: there is none; the nearest is always" --cases good.json --color alwys
bad_usage "list backend: there is none; the nearest is backends" list backend
bad_usage "golden chek: there is none; the nearest is check" golden chek goldens
bad_usage "completion ksh: there is none" completion ksh
bad_usage "this build has: cuda, host, ref-f32" --cases good.json --backend hots
bad_usage "the nearest is host" --cases good.json --backend hots:hopper
bad_usage "are for list cases" list backends --filter x
bad_usage "list cases: --filter is for the cases of --cases" list cases --filter x
bad_usage "x.json: No such file" shrink x.json
bad_usage "--resume needs the --report" --cases good.json --backend ref-f32 --resume
bad_usage "--emit and --report name one file: ./one.json" random --count 1 --emit one.json --report ./one.json
bad_usage "--html and --junit name one file: page" report one.json --html page --junit page
bad_usage "--report and --baseline name one file: good.json" --cases good.json --backend ref-f32 --report good.json --baseline good.json
ln -s good.json also.json
bad_usage "--emit and --report name one file: also.json" random --count 1 --emit good.json --report also.json
rm also.json
bad_usage "--jobs 0: a whole number" --cases good.json --jobs 0
bad_usage "--timeout x: a number" --cases good.json --timeout x
bad_usage "--cases needs a value" run --cases
bad_usage "needs a value" run --report --cases good.json
bad_usage "means nothing to the command list" list backends --jobs 2
bad_usage "jobs means nothing to the command list" list backends -j 2
bad_usage "jobs means nothing to the command list" list backends -j2
bad_usage "unknown option -qz" --cases good.json -qz
bad_usage "fail-fast means nothing to the command list" list backends -qx
bad_usage "--filter (: no POSIX" --cases good.json --backend ref-f32 --filter '('
bad_usage "one of --count N and --seconds T" random
bad_usage "no-such-profile" random --count 1 --profile no-such-profile --backend ref-f32
bad_usage "one of backends" list
bad_usage "--color x" --cases good.json --color x
bad_usage "/nowhere" --cases good.json --backend ref-f32 --report /nowhere/report.json
bad_usage "/nowhere" --cases good.json --backend ref-f32 --keep /nowhere/dumps
bad_usage "/nowhere" random --seconds 9 --backend ref-f32 --emit /nowhere/cases.json
bad_usage "good.json: is no folder" --cases good.json --backend ref-f32 --keep good.json
ln -s /dev/null nothing # not /dev/null itself, which a faulty program would replace
bad_usage "nothing: is a device or a pipe" --cases good.json --backend ref-f32 --report nothing
for shard in 2/2 x 1 -1/2 1/0 1/2/3; do bad_usage "shard" --cases good.json --backend ref-f32 --shard "$shard"; done
FA_JUDGE_WIDE_FROM=2x bad_usage "FA_JUDGE_WIDE_FROM=2x: how many pairs" --cases good.json --backend ref-f32 --judge host
run "$verify"
expect exits 2
expect complains "commands:"

# ---- malformed input: exit 2, file and JSON path named, an old report stays as it was ----
bad_case() { # MESSAGE JSON-OF-ONE-CASE
  printf '{ "fa_cases": 1, "cases": [ { "head_dim": 16 }, %s ] }' "$2" >bad.json
  echo old >old.json
  run "$verify" --cases good.json bad.json --backend ref-f32 --report old.json
  expect exits 2
  expect complains "bad.json"
  expect complains "$1"
  expect silent
  [ "$(cat old.json)" = old ] || expect false
}
bad_case '$.cases[1].no_such_key' '{ "no_such_key": 1 }'
bad_case '$.cases[1].heads_q' '{ "heads_q": 3, "heads_kv": 2 }'
bad_case '$.cases[1].seqlen_q' '{ "seqlen_q": -1 }'
bad_case '$.cases[1].cu_seqlens_q' '{ "cu_seqlens_q": [0, 5, 3], "cu_seqlens_k": [0, 5, 6] }'
bad_case '$.cases[1].dropout.p' '{ "dropout": { "p": 1 } }'
bad_case 'bad.json' '{ "scale": NaN }'
bad_case '$.cases[1]' '{ "seqlen_q": 1048576, "heads_q": 1024, "head_dim": 1024 }'
printf '{ "fa_cases": 1, "cases": [ { "seqlen_q": ' >bad.json
run "$verify" --cases bad.json --backend ref-f32
expect exits 2
expect complains bad.json
run "$verify" --cases missing.json --backend ref-f32
expect exits 2
expect complains missing.json
run "$verify" run --case '{"head_dim": 0}' --backend ref-f32
expect exits 2
expect complains "head_dim"
head -c 100 /dev/urandom >junk.safetensors
printf '\377\377\377\377\377\377\377\177{}' >huge.safetensors
for file in junk huge missing; do
  run "$verify" check $file.safetensors
  expect exits 2
  expect complains $file.safetensors
  expect silent
done
printf '{"fa_report": 1}' >half.json
for command in "repro half.json" "report half.json --junit x.xml" "repro missing.json" "repro good.json"; do
  run "$verify" $command
  expect exits 2
  expect missing x.xml
done

# ---- nothing judged: 4 ----
run "$verify" --cases good.json --backend ref-f32 --filter nothing
expect exits 4
expect complains "--filter 'nothing' matches 0 of 2 cases"
expect last_line "tests:0 passed:0 failed:0 skipped:0 error:0"
run "$verify" run --case '{"family":"kvcache","head_dim":16,"seqlen_k":8,"kvcache":{"len":[8]},"splits":2,"bias":{"shape":[1,1,1,"k"]}}' --backend host -v
expect exits 4
expect says_line '^SKIP .*splits = 2: not together with a bias'
expect says_line '^skipped 1: '
expect lines '^kernel ' 0

# ---- a filter that matches nothing says of how many ----
run "$verify" --cases five.json --backend ref-f32 --backend host --filter 'x$' --shard 1/2
expect exits 4
expect complains "--filter 'x$' matches 0 of 2 cases of this shard"
run "$verify" random --count 7 --filter nothing --backend ref-f32
expect exits 4
expect complains "matches 0 of 7 cases"
run "$verify" check "$here/../golden/recorded-flash.safetensors" --filter nothing
expect exits 4
expect complains "matches 0 of 4 cases"
run "$verify" golden write goldens --cases good.json --filter nothing
expect exits 4
expect complains "matches 0 of 2 cases"
run "$verify" list cases --cases five.json --filter nothing
expect exits 0
expect complains "matches 0 of 5 cases"
expect silent
run "$verify" list cases --cases five.json --filter '^t'
expect lines . 2
run "$verify" --cases five.json --backend ref-f32 --filter two
expect exits 0
expect lines . 2
expect [ ! -s err ]
run "$faulty" --cases five.json --backend faulty:wrong_o --report filtered.json -q
run "$faulty" repro filtered.json --filter nothing
expect exits 4
expect complains "matches 0 of 1 case"
run "$faulty" repro filtered.json --filter thirteen
expect exits 1

# ---- expressions: refused with the place before anything runs, or where they have no value ----
run "$verify" run --case '{"family":"flex","score_mod":"score * foo"}' --backend ref-f32
expect exits 2
expect complains 'column 9: "foo" is unknown; known are score,'
run "$verify" run --case '{"family":"flex","seqlen_q":40,"score_mod":"log(score)","head_dim":16}' --backend ref-f32
expect exits 2
expect says_line '^ERROR .*score_mod: column 1: log of -[0-9.]* has no value in f32, at b 0, h 0, q_idx 0, kv_idx'

# A case that is wrong in this way affects only itself, and is malformed input (2) in journals and reports
# too.
cat >no_value.json <<'EOF'
{ "fa_cases": 1, "defaults": { "family": "flex", "seqlen_q": 40, "head_dim": 16 },
  "cases": [ { "name": "before" }, { "name": "no_value", "mask_mod": "1 / q_idx > 0" }, { "name": "after" } ] }
EOF
run "$verify" --cases no_value.json --backend ref-f32 --report no_value.out
expect exits 2
expect lines '^PASS' 2
expect says_line '^ERROR no_value .*mask_mod: column 3: 1 / 0 has no value in int32, at b 0, h 0, q_idx 0'
expect says_line '^tests:3 passed:2 failed:0 skipped:0 error:1'
run "$verify" --cases no_value.json --backend ref-f32 --report no_value.out --resume
expect exits 2

# ---- filter and shards ----
run "$verify" --cases five.json --backend ref-f32 --filter '^(t|f)'
expect lines '^PASS' 4
for i in 0 1 2; do
  "$verify" --cases five.json --backend ref-f32 --shard $i/3 2>/dev/null | grep '^PASS' | cut -d' ' -f2 >shard.$i
done
what="three shards" rc=0 && cat shard.? | sort >out
expect [ "$(tr '\n' ' ' <out)" = "five four one thirteen two " ]
expect [ "$(tr '\n' ' ' <shard.1)" = "two five " ]
run env FA_SHARD_INDEX=1 FA_SHARD_TOTAL=3 "$verify" --cases five.json --backend ref-f32
expect lines '^PASS (two|five)' 2
expect complains "FA_SHARD_INDEX"
run env TEST_SHARD_INDEX=1 TEST_TOTAL_SHARDS=3 TEST_SHARD_STATUS_FILE=touched "$verify" --cases five.json --backend ref-f32
expect lines '^PASS (two|five)' 2
expect [ -e touched ]
run env GTEST_SHARD_INDEX=1 GTEST_TOTAL_SHARDS=3 FA_SHARD_INDEX= "$verify" --cases five.json --backend ref-f32
expect lines '^PASS (two|five)' 2
run env SLURM_ARRAY_TASK_ID=11 SLURM_ARRAY_TASK_MIN=10 SLURM_ARRAY_TASK_COUNT=3 "$verify" --cases five.json --backend ref-f32
expect lines '^PASS (two|five)' 2
run env FA_SHARD_INDEX=1 "$verify" --cases five.json --backend ref-f32
expect exits 2
run env SLURM_ARRAY_TASK_ID=1 FA_SHARD_INDEX=0 FA_SHARD_TOTAL=5 "$verify" --cases five.json --backend ref-f32 --shard 4/5
expect lines '^PASS five' 1

# ---- random ----
run "$verify" random --count 1 --shard 1/2 --backend ref-f32 --emit none.json # the other shard has it: none to draw ahead
expect exits 4
expect complains "nothing was judged"
run "$verify" random --count 6 --seed 3 --backend ref-f32 --emit made.json
cp out first
run "$verify" random --count 6 --seed 3 --backend ref-f32 --jobs 1
expect [ "$(grep -cE '^(PASS|SKIP)' out)" = 6 ]
sed 's/  r=.*//' first >a && sed 's/  r=.*//' out >b
expect same a b
run "$verify" --cases made.json --backend ref-f32
sed 's/  r=.*//' out >b
expect same a b
run "$verify" random --seconds 1 --backend ref-f32 -q --no-progress
expect exits 0
# if drawn, but so ill-posed that its bounds decide nothing: skipped; if written by hand: a failure
run "$verify" random --profile adversarial --seed 7000 --count 567 --filter 'adversarial-7000-566$' --backend ref-f32 --emit vacuous.json
expect exits 4
expect says "drawn at random, and its bounds would let a trivially wrong answer pass"
run "$verify" --cases vacuous.json --filter 'adversarial-7000-566$' --backend ref-f32
expect exits 1
expect says_line '^VACUOUS '
run "$verify" random --count 6 --seed 3 --backend ref-f32 --backend ref-f32 --coverage -q --report coverage.json
expect exits 0
expect says_line '^coverage: 6 cases$'
expect says_line '^ +6  causal$'
expect grep -qE '"cases":[[:space:]]*6' coverage.json
run "$verify" --cases made.json --filter '^causal-3-1$' --backend ref-f32 --coverage -q
expect says_line '^coverage: 1 cases$'

# ---- faults of the subject: the right state, exit 1, and the other cases still run ----
fault() { # HOW STATE TEXT [CASES-FILE]
  run "$faulty" --cases "${4:-five.json}" --backend "faulty:$1" --report report.json --timeout 5 --jobs 2
  expect exits 1
  expect says_failure "^$2 thirteen  faulty:$1  .*$3.*  repro: .* repro report.json:0\$"
  if [ -z "${4:-}" ]; then
    expect lines '^PASS' 4
    expect last_line "tests:5 passed:4 failed:1 skipped:0 error:0"
    expect [ "$(grep -oE '^[A-Z_]+ [a-z]+' out | cut -d' ' -f2 | tr '\n' ' ')" = "one two thirteen four five " ]
  fi
  expect grep -qF "\"state\":	\"$2\"" report.json
}
fault crash CRASH 'SIGSEGV|ended with status' # AddressSanitizer turns the signal into a status
fault abort CRASH SIGABRT
fault exit CRASH 'status 7'
fault stack CRASH 'SIGSEGV|ended with status'
fault spent CRASH 'took the context with it'
fault race RACE 'two writers'
fault deadlock DEADLOCK 'half a warp'
fault executor_oob OOB 'read past the end'
fault reject FAIL 'refused: thirteen rows'
fault reject_silently FAIL 'refused without a message'
fault oob OOB 'back guard of o: 1 byte'
fault oob_before OOB 'front guard of o: 1 byte'
fault input INPUT_MODIFIED 'q'
fault unwritten FAIL '1 never written'
fault nondeterministic NONDETERMINISTIC 'o: 1 elements differ between two runs, the first \[0,12,0,0\]'
fault wrong_o FAIL 'o: 1 of 208 bad.*  worst: o\[0,12,0,0\]'
fault zero_o FAIL 'o: 20[0-9] of 208 bad'
fault zero_gradients FAIL 'd[qkv]: 20[0-9] of 208 bad'
fault nan_o FAIL 'gradients judged end to end'
cat >gap.json <<EOF
{ "fa_cases": 1, "cases": [ { "name": "thirteen", "head_dim": 16, "seqlen_q": 13, "strides": { "o": { "gap": [0, 16, 0] } } } ] }
EOF
fault gap OOB 'gap' gap.json
cat >cache.json <<EOF
{ "fa_cases": 1, "cases": [ { "name": "thirteen", "family": "kvcache", "head_dim": 16, "seqlen_q": 13, "seqlen_k": 64,
  "kvcache": { "len": [20], "new": 13 } } ] }
EOF
fault cache OOB 'cache k\[0,0,0,0\] changed' cache.json
run "$faulty" --cases cache.json --backend ref-f32 --keep cache_dumps
expect exits 0
run "$faulty" --cases five.json --backend faulty:hang --timeout 1
expect exits 1
expect says_line '^HANG thirteen .*not done after 1 s: killed'
expect lines '^PASS' 4
run "$faulty" --cases five.json --backend faulty:spent --jobs 1 # a new worker takes over
expect exits 1
expect lines '^PASS' 4
run "$faulty" --cases five.json --backend faulty:spent --no-isolate # no other process can
expect exits 1
expect lines '^PASS' 2
expect lines '^ERROR .*can run nothing more' 2
run "$faulty" --cases five.json --backend faulty:device_lost
expect exits 3
expect says_line '^ERROR thirteen .*the device is gone'
run "$faulty" --cases five.json --backend faulty:memory
expect exits 3
expect says_line '^ERROR thirteen .*out of memory'
expect lines '^PASS' 4
run "$faulty" --cases five.json --backend faulty:killed --jobs 2 # as the kernel does if memory is short
expect exits 3
expect says_line '^ERROR thirteen .*was killed \(SIGKILL\) 3 times; out of memory\?'
expect last_line "tests:5 passed:4 failed:0 skipped:0 error:1"
run "$faulty" --cases five.json --backend faulty:killed_once=marker --jobs 2
expect exits 0
expect last_line "tests:5 passed:5 failed:0 skipped:0 error:0"
expect [ -e marker ]
run "$faulty" --cases five.json --backend faulty:no_device
expect exits 3
expect complains "there is no such device"
run "$faulty" --cases five.json --backend faulty:crash_at_open
expect exits 3
expect complains "it crashed when opened"
run "$faulty" --cases five.json --backend faulty:unsupported
expect exits 0
expect says_line '^SKIP thirteen .*thirteen is unlucky'
run "$faulty" --cases five.json --backend faulty:forward_only -v
expect exits 0
expect lines '^PASS .*  fwd  .*backward not judged: faulty: it has no backward' 5
expect says "only the forward pass judged: 5 (-v says why)"
run "$faulty" --cases five.json --backend faulty:crash --fail-fast --jobs 1
expect exits 1
expect lines '^(PASS|CRASH)' 3
run "$faulty" --cases five.json --backend faulty:crash --backend ref-f32
expect exits 1
expect last_line "tests:10 passed:9 failed:1 skipped:0 error:0"

# ---- expect: reject ----
reject='{"name":"thirteen","head_dim":16,"seqlen_q":13,"expect":"reject"}'
run "$faulty" run --case "$reject" --backend faulty:reject
expect exits 0
run "$faulty" run --case "$reject" --backend faulty:unsupported
expect exits 0
run "$faulty" run --case "$reject" --backend faulty:reject_silently
expect exits 1
run "$faulty" run --case "$reject" --backend ref-f32
expect exits 1
expect says_line '^NOT_REJECTED thirteen '

# ---- an interrupt: no new cases start, finished ones are reported ----
: >out
"$faulty" --cases five.json --backend faulty:hang --timeout 3 --jobs 1 --report cut.json --filter 'one|thirteen|five' >out 2>err &
pid=$!
wait_for 'PASS one' out && sleep 0.3
kill -INT $pid
wait $pid
rc=$? what="an interrupt"
expect exits 130
expect complains "interrupted after 2 cases"
expect last_line "tests:2 passed:1 failed:1 skipped:0 error:0"
expect grep -q '"HANG"' cut.json
expect complains "the same command with --resume goes on (cut.json.journal)"
"$faulty" --cases five.json --backend faulty:hang --timeout 3 --jobs 1 --report cut.json --filter 'one|thirteen|five' --resume >out 2>err
rc=$? what="going on after the interrupt"
expect exits 1
expect last_line "tests:3 passed:2 failed:1 skipped:0 error:0"
expect lines '^(PASS|HANG) ' 1
expect missing cut.json.journal
: >out
"$faulty" --cases five.json --backend faulty:hang --jobs 1 >out 2>err & # a second interrupt does not wait
pid=$!
wait_for 'PASS two' out && sleep 0.3
kill -INT $pid
sleep 0.3
kill -INT $pid
wait $pid
rc=$? what="two interrupts"
expect exits 130
: >out # the same request twice, to the program and to its whole group: no worker dies of it
setsid "$faulty" --cases five.json --backend faulty:hang --timeout 3 --jobs 1 >out 2>err &
pid=$!
wait_for 'PASS two' out && sleep 0.3
kill -TERM $pid
kill -TERM -- -$pid
wait $pid
rc=$? what="SIGTERM for all"
expect exits 143
expect lines '^HANG thirteen' 1
expect lines '^CRASH' 0
expect complains "interrupted after 3 cases"
# A killed run leaves its journal: one JSON object per finished case.
"$faulty" --cases five.json --backend faulty:hang --jobs 1 --report killed.json >out 2>err &
pid=$!
wait_for '"two"' killed.json.journal
{ kill -KILL $pid && wait $pid; } 2>/dev/null # without bash's own remark on it
what="a killed run"
expect [ "$(grep -c '"name":"\(one\|two\)","state":"PASS"' killed.json.journal)" = 2 ]
expect missing killed.json

# ---- report round trips ----
run "$faulty" --cases five.json --backend faulty:wrong_o --report report.json --schedule-seed 7
expect exits 1
run "$faulty" repro report.json:0 --report again.json -v
expect exits 1
expect says_line '^FAIL thirteen  faulty:wrong_o .* --schedule-seed 7 --case '
grep -m1 -A40 '"tensors"' report.json | grep -v '"seconds"' >a
grep -m1 -A40 '"tensors"' again.json | grep -v '"seconds"' >b
expect same a b
run "$faulty" repro report.json --backend ref-f32
expect exits 0
run "$faulty" repro report.json:1
expect exits 2
expect complains "the report has 1"
# Shrunk at the end of a run, and repeated by name.
run "$faulty" --cases five.json --backend faulty:wrong_o --report shrunk.json --shrink
expect exits 1
expect grep -q '"repro":	"fa-verify repro shrunk.json:0.shrunk"' shrunk.json
run "$faulty" repro shrunk.json:0.shrunk
expect exits 1
run "$faulty" repro report.json:0.shrunk
expect exits 2
expect complains "this failure was not shrunk"
run "$faulty" shrink shrunk.json:0 --out small.json -q
expect exits 1
run "$faulty" --cases small.json --backend faulty:wrong_o
expect exits 1
long=plugin:/none/$(printf 'x%.0s' {1..80}).so # a backend's name is taken from a report whole
sed "s|faulty:wrong_o|$long|g" shrunk.json >long.json
run "$faulty" shrink long.json:0
expect exits 2
expect complains "--backend $long:"
run "$verify" random --count 1 --backend ref-f32 --report passed.json -q
run "$verify" shrink passed.json
expect exits 4
expect complains "there is no failure to shrink"
run "$faulty" shrink --case '{"seqlen_q":12}' --backend faulty:wrong_o
expect exits 0
odd='{"name":"t","head_dim":16,"seqlen_q":13,"memory":{"poison":"finite"},"repeat":5,"schedule_seed":"77"}'
run "$faulty" run --case "$odd" --backend faulty:wrong_o --shrink -q # without a report it is printed, even with -q
expect exits 1
expect lines "^shrunk failure 0, t: 5 of 5 runs, .* --case '\{\"name\":\"t\"" 1
expect lines '^shrunk.*(memory|repeat|schedule)' 0
# ^C while shrinking: what was found so far is printed.
: >out
"$faulty" --cases five.json --backend faulty:hang --timeout 1 --jobs 2 --report cut.json --shrink >out 2>err &
pid=$!
wait_for 'PASS five' out && sleep 1
kill -INT $pid
wait $pid
rc=$? what="an interrupt while shrinking"
expect exits 130
expect complains "interrupted while shrinking; cut.json has all results and what was shrunk; fa-verify shrink cut.json shrinks"
expect last_line "tests:5 passed:4 failed:1 skipped:0 error:0"
expect grep -q '"HANG"' cut.json
"$faulty" shrink cut.json --timeout 1 --jobs 2 --out cut_small.json >out 2>err &
pid=$!
for _ in $(seq 300); do
  [ -n "$(cat "/proc/$pid/task/$pid/children")" ] && break
  sleep 0.1
done
sleep 2 # the first child may be the one that probes the backend, before interrupts are handled
kill -INT $pid
wait $pid
rc=$? what="an interrupt of shrink"
expect exits 130
expect complains "interrupted; the smallest case so far is in cut_small.json: shrink goes on from it"
expect grep -q '"seqlen_q"' cut_small.json
rm cut.json*
run "$faulty" report shrunk.json --html page.html
expect exits 0
# The printed command works when pasted into sh.
"$faulty" --cases five.json --backend faulty:wrong_o 2>/dev/null | sed -n 's/.*  repro: //p' >paste.sh
run sh paste.sh
expect exits 1
expect lines '^FAIL thirteen' 1
run "$faulty" report report.json again.json --merge both.json --junit both.xml
expect exits 0
expect grep -q 'tests="5" failures="1"' both.xml # the failure is in both, and counts once
expect grep -q '<failure type="FAIL" message=' both.xml
run "$verify" --cases good.json --backend host --backend ref-f32 --report kernels.json -v # counts by kernel, in every shard's and in all
expect says_line '^kernel flash_forward: passed:[1-9][0-9]* failed:0 '
expect says_line '^kernel ref_f32: passed:[1-9][0-9]* failed:0 '
grep '^kernel\|^tests' out >a
run "$verify" report kernels.json
expect exits 0
grep '^kernel\|^tests' out >b
expect same a b
for i in 0 1; do run "$verify" --cases good.json --backend host --backend ref-f32 --report shard.$i.json --shard $i/2 -q; done
run "$verify" report shard.0.json shard.1.json kernels.json
grep '^kernel\|^tests' out >b
expect same a b
if command -v python3 >/dev/null; then
  run python3 -c "import xml.dom.minidom, json; xml.dom.minidom.parse('both.xml'); r = json.load(open('both.json'))
assert r['summary'] == {'total': 5, 'passed': 4, 'failed': 1, 'skipped': 0, 'error': 0, 'backward_left_out': 0, 'skip_reasons': {}}, r['summary']
assert r['failures'][0]['tensors'][0]['worst'][0]['index'] == [0, 12, 0, 0]"
  expect exits 0
fi

# ---- dumps are recorded runs: check finds the same fault ----
run "$faulty" --cases five.json --backend faulty:wrong_o --keep dumps
expect says "tensors: dumps/thirteen-"
run "$verify" check dumps/thirteen-*.safetensors --report check.json
expect exits 1
expect says_failure '^FAIL thirteen  recorded .*o: 1 of 208 bad.*  worst: o\[0,12,0,0\].*  repro: .* check dumps/thirteen-.* --filter .\^thirteen\$.$'
expect grep -q '"repro":	"fa-verify check dumps/' check.json

# Of two cases of one name, whose text ends alike, both are kept.
for keys in 20 21; do
  echo '{ "fa_cases": 1, "cases": [ { "name": "alike", "seqlen_q": 13, "seqlen_k": '$keys', "head_dim": 16, "scale": 0.123456789012345 } ] }' >alike_$keys.json
done
run "$faulty" --cases alike_20.json alike_21.json --backend faulty:wrong_o --keep alike --report alike.json
expect lines '^FAIL alike' 2
expect test "$(ls alike | wc -l)" = 2
expect grep -q '"device":	"CPU, one thread"' alike.json

# For every family, with every kind of input tensor.
cat >families.json <<EOF
{ "fa_cases": 1, "defaults": { "head_dim": 16, "seqlen_q": 13 }, "cases": [
  { "name": "cache", "family": "kvcache", "seqlen_k": 64, "batch": 2, "mask": { "type": "causal" },
    "kvcache": { "len": [20, 7], "new": 13, "page_size": 16, "leftpad": [3, 0], "rotary": { "dim": 8, "interleaved": true } } },
  { "name": "rows", "family": "kvcache", "seqlen_k": 64, "batch": 2, "kvcache": { "len": [20, 7], "batch_idx": [3, 1] } },
  { "name": "bias", "family": "memeff", "head_dim_v": 24, "bias": { "shape": ["b", "h", 1, "k"], "grad": true }, "heads_q": 4,
    "heads_kv": 2, "dropout": { "p": 0.25, "seed": "7", "offset": "4" }, "grad_lse": true, "seqlen_k": 17 },
  { "name": "debug", "dropout": { "p": 0.25, "seed": "7", "offset": "4" }, "return_softmax": true, "heads_q": 6, "batch": 2,
    "alibi": { "slopes": "standard" } },
  { "name": "packed", "cu_seqlens_q": [0, 0, 3, 16], "cu_seqlens_k": [0, 5, 9, 20], "seqused_k": [2, 4, 11],
    "leftpad_k": [1, 0, 2], "packed": "kv", "softcap": 3.5 },
  { "name": "blocks", "family": "flex", "dtype": "f32", "heads_q": 2, "seqlen_k": 40,
    "block_sparse": { "q_block": 4, "kv_block": 8, "density": 0.5, "seed": "3" } },
  { "name": "strides", "layout": "sbhd", "packed": "qkv", "batch": 2, "dtype": "bf16",
    "strides": { "q": { "gap": [3, 2, 1], "offset": 3 } } },
  { "name": "expanded", "layout": "bhsd", "heads_q": 2, "strides": { "k": { "expand": ["h"] }, "o": { "gap": [0, 16, 0] } } } ] }
EOF
run "$faulty" --cases families.json --backend ref-f32
expect last_line "tests:8 passed:8 failed:0 skipped:0 error:0"
run "$faulty" --cases families.json --backend faulty:wrong_o --keep families
expect lines '^FAIL' 8
run "$verify" check families/*.safetensors
expect lines '^    o: 1 of [0-9,]* bad' 8

# ---- goldens ----
cat >golden.json <<EOF
{ "fa_cases": 1, "defaults": { $small }, "cases": [ { "name": "plain" }, { "name": "causal/gqa", "mask": { "type": "causal" },
  "heads_q": 4, "heads_kv": 2, "layout": "bhsd" }, { "name": "inference", "backward": false } ] }
EOF
run "$verify" golden write gold --cases golden.json
expect exits 0
expect [ "$(ls gold | wc -l)" = 5 ]
run "$verify" golden check gold --cases golden.json
expect exits 0
expect last_line "tests:3 passed:3 failed:0 skipped:0 error:0"
run "$verify" golden check gold
expect exits 0
run "$verify" check gold/*.safetensors
expect exits 0
sed 's/"plain"/"plain", "data_seed": "2"/' golden.json >other.json
run "$verify" golden check gold --cases other.json
expect exits 1
expect says_line '^FAIL plain .*plain.forward.safetensors: q\[0,0,0,0\]: stored '
mv gold/plain.backward.safetensors gold/lost
run "$verify" golden check gold --cases golden.json
expect exits 2
expect complains "plain.backward.safetensors"

done_checking
