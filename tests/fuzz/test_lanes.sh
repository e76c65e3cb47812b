#!/usr/bin/env bash
# Several cases at a time in one process: whatever goes wrong in one of them, the report is that of processes of their own.
# usage: test_lanes.sh FAULTY   (tests/support/faulty_backend.c, the program with a bad subject that has lanes)
set -uo pipefail
here=$(realpath "$(dirname "$0")")
faulty=$(realpath "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
. "$here/../support/cli_check.sh"

# Cases with 13 rows get the fault.
sweep() { # LENGTHS
  cat <<EOF
{ "fa_cases": 1, "sweeps": [ { "base": { "name": "s", "dtype": "f16", "head_dim": 16 },
  "over": { "mask.type": ["none", "causal"], "heads_q": [1, 2, 3], "seqlen_q": [$1] } } ] }
EOF
}
sweep '1, 2, 3, 5, 8, 7' >none.json
sweep '1, 2, 3, 13, 8, 7' >few.json
sweep '13, 2, 13, 5, 13, 7, 4, 13' >many.json
sed 's/"heads_q": \[1, 2, 3\]/"heads_q": [2]/; s/\["none", "causal"\]/["none"]/' few.json >one.json # of six cases the fourth

cat >results.py <<'EOF'
import json, sys
def bare(x):  # without times, and what the program was told
    if isinstance(x, dict):
        return {k: bare(v) for k, v in x.items() if "seconds" not in k and k not in ("argv", "arguments", "command", "started", "run", "jobs")}
    return [bare(v) for v in x] if isinstance(x, list) else x
print(json.dumps(bare(json.load(open(sys.argv[1]))), indent=1, sort_keys=True))
EOF
lines_of() { sed -E 's/  [0-9.]+ (ms|s)( |$)/\2/' out; }

# With four lanes in a process, eight cases at a time, as with processes of their own.
as_alone() { # HOW CASES EXIT [OPTION...]
  local how=$1 cases=$2 code=$3
  shift 3
  rm -f marker
  run "$faulty" --cases "$cases" --backend "faulty:$how" --jobs 8 --lanes 1 --report out.json --no-progress "$@"
  mv out.json alone.json
  expect exits "$code"
  lines_of >alone.out
  rm -f marker
  run "$faulty" --cases "$cases" --backend "faulty:$how" --jobs 8 --lanes 4 --report out.json --no-progress "$@"
  mv out.json lanes.json
  expect exits "$code"
  lines_of >lanes.out
  expect same alone.out lanes.out
  python3 results.py alone.json >alone.results
  python3 results.py lanes.json >lanes.results
  expect [ "$(wc -l <lanes.results)" -gt 50 ]
  expect same alone.results lanes.results
  rm -f out.json.journal* # which a run with errors leaves
}
as_alone right none.json 0
for how in wrong_o oob input nondeterministic crash exit context spent; do as_alone "$how" few.json 1; done
as_alone wrong_o many.json 1 # so often that all run alone
as_alone crash many.json 1
as_alone context many.json 1
as_alone hang one.json 1 --timeout 1
as_alone killed few.json 3
as_alone killed_once=marker few.json 0
as_alone device_lost few.json 3
as_alone unsupported few.json 0
as_alone forward_only few.json 0

# What goes wrong only beside others is an ERROR that names all of them, for whose doing it was is not known.
beside() { # HOW WORDS [OPTION...]; WORDS: a pattern
  local how=$1 words=$2
  shift 2
  run "$faulty" --cases one.json --backend "faulty:$how" --jobs 4 --lanes 1 --no-progress "$@"
  expect exits 0
  run "$faulty" --cases one.json --backend "faulty:$how" --jobs 4 --lanes 4 --no-progress "$@"
  expect exits 3
  expect lines '^ERROR ' 1
  expect says_line "^ERROR .*  passes alone, not beside others \(.*\?\): $words"
  expect last_line 'tests:6 passed:5 failed:0 skipped:0 error:1'
}
beside wrong_beside 'FAIL; beside it: s/.*, s/'
beside crash_beside 'the process (died of SIGSEGV|ended with status 1) .*; beside it: s/.*, s/'
beside hang_beside 'not done after 1 s: killed' --timeout 1 # by then it is alone

# The case with the fault is not among those of the process that is killed from outside, which is nobody's doing.
"$faulty" --cases one.json --backend faulty:hang --timeout 4 --jobs 4 --lanes 4 --report cut.json --no-progress >out 2>err &
pid=$!
for _ in $(seq 100); do
  [ "$(grep -c '"item"' cut.json.journal 2>/dev/null)" = 5 ] && break
  sleep 0.1
done
kill -KILL "$(tr ' ' '\n' </proc/$pid/task/$pid/children | grep . | head -n 1)"
wait $pid
rc=$? what="a worker of four lanes that is killed"
expect exits 1
expect lines '^HANG .*seqlen_q=13.*  not done after 4 s: killed' 1
expect last_line 'tests:6 passed:5 failed:1 skipped:0 error:0'

# Interrupted, and resumed: the journal has the results of all lanes that ended, and no suspicion.
"$faulty" --cases few.json --backend faulty:hang --timeout 3 --jobs 4 --lanes 4 --report cut.json --no-progress >out 2>err &
pid=$!
wait_for '"item"' cut.json.journal
kill -INT $pid
wait $pid
rc=$? what="an interrupt"
expect exits 130
expect complains 'interrupted after '
expect [ -e cut.json.journal ]
run "$faulty" --cases few.json --backend faulty:hang --timeout 3 --jobs 4 --lanes 4 --report cut.json --no-progress --resume
expect exits 1
expect last_line 'tests:36 passed:30 failed:6 skipped:0 error:0'
expect missing cut.json.journal

# While the first failure is run again, others go on; but not all 7,200.
sed "s/\"over\": {/\"over\": { \"data_seed\": [$(seq -s , -f '"%.0f"' 200)],/" few.json >long.json
run "$faulty" --cases long.json --backend faulty:wrong_o --jobs 4 --lanes 4 --fail-fast --no-progress -q
expect exits 1
expect says_line '^tests:[1-6]?[0-9]{1,3} passed:'
run "$faulty" --cases few.json --backend faulty:wrong_o --jobs 4 --lanes 4 --report kept.json --keep dumps --no-progress
expect exits 1
expect [ "$(find dumps -name '*.safetensors' | wc -l)" = 6 ]

run "$faulty" --cases none.json --backend ref-f32 --lanes 2
expect exits 2
expect complains '--lanes: not with ref-f32'
run "$faulty" --cases none.json --backend faulty:right --lanes 2 --no-isolate
expect exits 2
expect complains '--lanes: not with --no-isolate'
run "$faulty" --cases none.json --backend faulty:right --lanes 200 --jobs 40 -q # more than there may be
expect exits 0

done_checking
