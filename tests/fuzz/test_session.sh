#!/usr/bin/env bash
# What a run says and writes, run by run, in a few seconds: what identifies it, what it keeps of cases, what it tells, and what it
# does not.
# usage: test_session.sh FA-VERIFY FAULTY   (FAULTY: tests/support/faulty_backend.c, the same program with a bad subject)
set -uo pipefail
here=$(realpath "$(dirname "$0")")
verify=$(realpath "$1") faulty=$(realpath "$2")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
. "$here/../support/cli_check.sh"

cat >two.json <<'EOF'
{ "fa_cases": 1, "defaults": { "dtype": "f16", "head_dim": 16, "seqlen_q": 8 },
  "cases": [ { "name": "one" }, { "name": "thirteen", "seqlen_q": 13 } ] }
EOF
flat() { tr -d '\n\t' <"$1"; }
has() { grep -qF -- "$2" <<<"$(flat "$1")"; }
has_not() { ! has "$@"; }
quiet_err() { [ ! -s err ]; }

# ---- what identifies a run, and what it keeps of cases ----
run env FA_HOPPER=a FA_NVRTC=b FA_FLEX_COMPILE=c "$verify" run --cases two.json --backend ref-f32 --report r.json --end-to-end
expect exits 0
expect quiet_err
expect has r.json '"command":"run"'
expect has r.json "run --cases two.json --backend ref-f32 --report r.json --end-to-end"
expect has r.json '"end_to_end":true'
expect has r.json '"environment":{"FA_HOPPER":"a","FA_NVRTC":"b","FA_FLEX_COMPILE":"c"}'
expect has r.json '"shard":"0/1"'
expect has r.json '"finished":true'
expect has_not r.json '"draws"'
run "$verify" run --cases two.json --backend ref-f32 --report s.json
expect has s.json '"end_to_end":false'
expect has_not s.json '"environment"'
model=$(sed -n 's/^model name[[:space:]]*:[[:space:]]*//p' /proc/cpuinfo | head -n 1)
expect has s.json "\"cpu\":\"${model:-unknown}\""
run "$verify" run --backend ref-f32 --case '{"seqlen_q":3}' --case '{"seqlen_q":2}' # their numbers are their names
expect exits 0
expect says_line '^PASS #0  ref-f32'
expect says_line '^PASS #1  ref-f32'
run "$verify" random --count 3 --profile causal --backend ref-f32 --report q.json --emit e.json
expect exits 0
expect has q.json '"profile":"causal","seed":"1","count":3'
expect has q.json '"draws":true'
expect has q.json '"causal":{"wanted":3,"judged":3}'
expect says_line '^tests:3 passed:3 '
expect lines '^PASS causal-1-[012]  ref-f32' 3
expect lines 'never judged' 0
emitted() { [ "$(grep -c '"name":"causal-1-' e.json)" = "$1" ]; }
expect emitted 3
# Two backends have the same cases, which are written once.
run "$verify" random --count 3 --profile causal --backend ref-f32 --backend host --emit e.json -q
expect exits 0
expect emitted 3
run "$verify" run --cases e.json --backend ref-f32
expect last_line "tests:3 passed:3 failed:0 skipped:0 error:0"
# As drawn, a case has its first draw: none is kept of a run without an end.
run "$verify" random --seconds 0.3 --profile causal --backend ref-f32 --as-drawn --emit e.json -q
expect exits 0
expect has e.json '"name":"causal-1-0"'
names() { grep -o '"name":"[^"]*"' e.json | tr '\n' ' '; }
is_named() { [ "$(names)" = "$1" ]; }
run "$faulty" random --count 2 --profile bias --backend faulty:none --as-drawn --emit e.json -q
expect is_named '"name":"bias-1-0" "name":"bias-1-1" '
# So are draws that several backends need instead of the first; other draws are other cases.
run "$faulty" random --count 4 --profile bias --backend faulty:f32_only --backend faulty:f32_only2 --emit e.json -q
expect is_named '"name":"bias-1-0.4" "name":"bias-1-1.1" "name":"bias-1-2" "name":"bias-1-3.1" '
run "$faulty" random --count 4 --profile bias --backend faulty:f32_only --backend faulty:none --emit e.json -q
expect is_named '"name":"bias-1-0.4" "name":"bias-1-1.1" "name":"bias-1-2" "name":"bias-1-3.1" "name":"bias-1-0" "name":"bias-1-1" "name":"bias-1-3" '
run "$faulty" random --count 4 --profile bias --backend faulty:f32_only --filter '[.]1$'
expect last_line "tests:2 passed:2 failed:0 skipped:0 error:0"
run "$faulty" random --count 1 --profile bias --backend faulty:f32_only --shard 1/2 --filter . # of nothing, a part
expect exits 4
expect last_line "tests:0 passed:0 failed:0 skipped:0 error:0"
run "$verify" run --cases two.json --backend ref-f32 --secret "$(printf '5c%.0s' {1..32})"
expect exits 2
expect complains "--secret goes with --untrusted"
# Whose bounds are too wide is no kernel's failure if it was drawn.
run "$verify" random --profile adversarial --seed 7000 --count 567 --filter 'adversarial-7000-566$' --backend ref-f32
expect exits 4
expect last_line "tests:1 passed:0 failed:0 skipped:1 error:0"
# Cases that are drawn but not judged count as wanted alone.
run "$faulty" random --count 2 --profile causal --backend faulty:refuse --as-drawn --report q.json
expect exits 4
expect complains "fa-verify: nothing was judged"
expect has q.json '"causal":{"wanted":2,"judged":0}'
expect says_line '^never judged: .*causal'

# ---- failures: reported with their cases, and told apart ----
run "$faulty" run --cases two.json --backend faulty:wrong_o --report f.json --html f.html
expect exits 1
expect quiet_err
expect lines '^PASS one' 1
expect lines '^FAIL thirteen' 1
expect has f.json '"case":{"name":"thirteen","family":"flash","dtype":"f16","seqlen_q":13,"head_dim":16}'
expect has f.json '"worst_ratio"'
expect says_failure '^FAIL thirteen .* r=[0-9.e+]+ '
run "$faulty" run --cases two.json --backend faulty:wrong_o --html only.html -q
expect exits 1
expect grep -qF '"index":[0,12,0,0]' only.html
expect grep -qF '"map"' only.html
run "$faulty" run --cases two.json --backend faulty:wrong_o --report only.json -q
expect has only.json '"map":{"panel"'
run "$faulty" run --cases two.json --backend faulty:wrong_o
few=$(wc -l <out)
run "$faulty" run --cases two.json --backend faulty:wrong_o -v
expect [ "$(wc -l <out)" -gt "$few" ]
run "$faulty" run --case '{"name":"x","head_dim":16,"seqlen_q":13}' --case '{"name":"y","head_dim":16}' --backend faulty:wrong_o --fail-fast -j 1
expect exits 1
expect quiet_err # there is no journal to go on with
expect says_line '^tests:1 passed:0 failed:1'
run "$faulty" run --cases two.json --backend faulty:wrong_o --fail-fast -j 1 --report g.json
expect has g.json '"finished":true'
run "$faulty" run --case '{"name":"x","head_dim":16,"seqlen_q":13}' --cases two.json --backend faulty:wrong_o --fail-fast -j 1 --report h.json
expect complains "ended by --fail-fast; the same command without it and with --resume goes on (h.json.journal)"
expect has h.json '"finished":false'
# One that is interrupted while it ends so is interrupted.
"$faulty" run --cases two.json --filter thirteen --backend faulty:wrong_o --backend faulty:hang --backend faulty:right -j 2 --timeout 3 --fail-fast \
  --report cut.json --no-progress >out 2>err &
pid=$!
wait_for '"item"' cut.json.journal
kill -INT $pid
wait $pid
rc=$? what="an interrupt after a failure"
expect exits 130
expect complains "interrupted after "
never_says() { ! grep -qF -- "$1" err; }
expect never_says "ended by --fail-fast"
# The time of a run that was stopped counts.
sed -i 's/"elapsed":[0-9.e+-]*/"elapsed":5000/' h.json.journal
run "$faulty" run --case '{"name":"x","head_dim":16,"seqlen_q":13}' --cases two.json --backend faulty:wrong_o -j 1 --report h.json --resume
expect complains " results of the last 5000 s are there"
expect grep -qE '"seconds":[[:space:]]*5[0-9]{3}[.0-9]*,?$' h.json
for how in nondeterministic oob input nan_o; do
  run "$faulty" run --cases two.json --backend faulty:$how
  expect exits 1
  expect says_line '^(NONDETERMINISTIC|OOB|INPUT_MODIFIED|FAIL) '
done
run "$faulty" run --cases two.json --backend faulty:wrong_o --keep kept
expect exits 1
kept() { [ "$(ls kept | wc -l)" = "$1" ]; }
expect kept 1
run "$verify" run --cases two.json --backend ref-f32 --keep none
kept_none() { [ "$(ls none 2>/dev/null | wc -l)" = 0 ]; }
expect kept_none

# ---- what is told, and what is not ----
run "$verify" run --cases two.json --backend ref-f32 --shard 1/2
expect quiet_err
expect last_line "tests:1 passed:1 failed:0 skipped:0 error:0"
run env GTEST_SHARD_INDEX=0 GTEST_TOTAL_SHARDS=2 "$verify" run --cases two.json --backend ref-f32
expect complains "shard: 0 of 2 (GTEST_SHARD_INDEX)"
run env GTEST_SHARD_INDEX=0 GTEST_TOTAL_SHARDS=2 "$verify" run --cases two.json --backend ref-f32 -q
expect quiet_err
many=()
for _ in $(seq 17); do many+=(--backend ref-f32); done
run "$verify" run --cases two.json "${many[@]}"
expect exits 2
expect complains "--backend: at most 16"
run "$verify" run --cases two.json "${many[@]:2}" -q
expect last_line "tests:32 passed:32 failed:0 skipped:0 error:0"
run "$verify" run --cases two.json --backend ref-f32 --color never
expect lines $'\033' 0
run "$verify" run --cases two.json --backend ref-f32 --color always
expect lines $'\033.*PASS' 2
run timeout -s INT 0.5 "$verify" random --count 100000 --profile causal --backend ref-f32 -q
expect grep -qE '^fa-verify: interrupted after [0-9]+ cases$' err # and there is nothing to go on with
run "$verify" run --cases two.json --backend ref-f32 --waivers missing.json
expect exits 2
expect complains "missing.json: No such file"
run "$verify" run --cases two.json "${many[@]}" --waivers missing.json # what is wrong first is said
expect exits 2
expect complains "missing.json: No such file"
run "$verify" run --cases two.json --backend ref-f32 --slower 2
expect exits 2
expect complains "--slower needs --baseline REPORT.json"
printf '{"fa_waivers":1,"waivers":[{"match":{"name":"thirteen"},"states":["FAIL"],"reason":"known","expires":"2999-01-01"}]}' >w.json
run "$faulty" run --cases two.json --backend faulty:wrong_o --waivers w.json
expect exits 0
run "$verify" run --cases two.json --backend ref-f32 --waivers w.json # nothing fails any more
expect exits 1
run "$verify" run --cases two.json --backend ref-f32 --waivers w.json --filter thirteen # of a part that is not said
expect exits 0
run "$verify" run --cases two.json --backend ref-f32 --waivers w.json --shard 1/2
expect exits 0

# ---- a baseline ----
run "$faulty" run --cases two.json --backend faulty:wrong_o --report b.json -q
run "$faulty" run --cases two.json --backend faulty:wrong_o --baseline b.json
expect exits 0
run "$faulty" run --cases two.json --backend faulty:refuse --baseline b.json # nothing is judged any more
expect exits 1

# ---- what a subject does not claim is said where something is required, and not to who asked for quiet ----
served=$(printf 'exec:%q serve --backend ref-f32' "$verify") # which claims no family merge
for asked in '' '-q' '--require all' '--require all -q'; do
  run "$verify" run --backend "$served" --case '{"seqlen_q":3}' $asked
  expect exits 0
  expect lines '^NOT CLAIMED by ' $([ "$asked" = '--require all' ] && echo 1 || echo 0)
done
done_checking
