#!/usr/bin/env bash
# Known failures: what a waiver lets pass, what it does not, and when a waiver itself fails the run.
# usage: test_waivers.sh FAULTY (tests/support/faulty_backend.c)
set -uo pipefail
here=$(realpath "$(dirname "$0")")
faulty=$(realpath "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
. "$here/../support/cli_check.sh"
cat >five.json <<EOF
{ "fa_cases": 1, "defaults": { "dtype": "f16", "head_dim": 16, "seqlen_q": 8 },
  "cases": [ { "name": "one" }, { "name": "two", "data_seed": "2" }, { "name": "thirteen", "seqlen_q": 13 },
             { "name": "four", "data_seed": "4" }, { "name": "five", "data_seed": "5" } ] }
EOF
waive() { # WAIVER...: into w.json
  local IFS=,
  printf '{ "fa_waivers": 1, "waivers": [ %s ] }\n' "$*" >w.json
}
entry() { # MATCH HOW [EXPIRES]
  printf '{ "match": { %s }, %s, "reason": "a known one", "expires": "%s", "link": "https://example.org/1" }' "$1" "$2" "${3:-9999-12-31}"
}
judged() { run "$faulty" --cases five.json --backend "faulty:$1" --waivers w.json --report out.json "${@:2}"; }

# ---- an expected failure is reported, but does not fail the run ----
waive "$(entry '"name": "^thirteen$"' '"states": ["FAIL"]')"
judged wrong_o
expect exits 0
expect says_failure '^WAIVED thirteen  faulty:wrong_o .*  FAIL  waiver 0 until 9999-12-31: a known one  o: 1 of 208 bad'
expect last_line "tests:5 passed:4 failed:0 skipped:0 error:0 waived:1"
expect grep -qF '"waived":	true' out.json
expect grep -qF '"waived":	1' out.json
cp out.json other.json
run "$faulty" report out.json other.json --junit out.xml --merge both.json
expect grep -q 'tests="5" failures="0" errors="0" skipped="1"' out.xml
expect grep -qF '<skipped message="waiver 0 until 9999-12-31: a known one"/>' out.xml
expect grep -qF '"waived":	1' both.json
judged wrong_o --fail-fast --jobs 1
expect exits 0
expect last_line "tests:5 passed:4 failed:0 skipped:0 error:0 waived:1"
judged wrong_o --filter '^thirteen'
expect exits 0
expect last_line "tests:1 passed:0 failed:0 skipped:0 error:0 waived:1"
for match in '"backend": "faulty", "family": "flash", "dtype": "f16"' '"device": "CPU", "name": "teen"'; do
  waive "$(entry "$match" '"tensors": ["o", "dq", "dk"]')"
  judged wrong_o
  expect exits 0
  expect last_line "tests:5 passed:4 failed:0 skipped:0 error:0 waived:1"
done
for how in crash:CRASH hang:HANG oob:OOB race:RACE; do
  waive "$(entry '"name": "thirteen"' "\"states\": [\"${how#*:}\"]")"
  judged "${how%:*}" --timeout 1
  expect exits 0
  expect says_line '^WAIVED thirteen '
done

# ---- a failure of another kind, or of another case, fails ----
refused_by() { # MATCH HOW
  waive "$(entry "$1" "$2")"
  judged wrong_o
  expect exits 1
  expect last_line "tests:5 passed:4 failed:1 skipped:0 error:0"
}
refused_by '"name": "thirteen"' '"states": ["CRASH", "HANG"]'
refused_by '"name": "thirteen"' '"tensors": ["dv"]'
refused_by '"name": "thirteen"' '"tensors": ["o"]' # dq and dk are wrong too
refused_by '"name": "thirteen", "dtype": "bf16"' '"states": ["FAIL"]'
refused_by '"name": "thirteen", "family": "flex"' '"states": ["FAIL"]'
refused_by '"name": "thirteen", "backend": "^cuda"' '"states": ["FAIL"]'
refused_by '"name": "thirteen", "device": "H100"' '"states": ["FAIL"]'

# ---- tensors alone: failures that name no tensor, or another one ----
judged_by() { # HOW STATE MATCH TENSORS OPTION...
  waive "$(entry "$3" "\"tensors\": $4")"
  judged "$1" "${@:5}"
  if [ "$2" = WAIVED ]; then expect exits 0; else expect exits 1; fi
  expect says_line "^$2 thirteen"
}
judged_by reject FAIL '"name": "thirteen"' '["o", "lse", "dq", "dk", "dv"]' # refused: about no tensor
judged_by wrong_o FAIL '"name": "thirteen"' '["dv"]' --law merge-ranges
judged_by wrong_o FAIL '"name": "thirteen"' '["lse"]' --law merge-ranges
judged_by wrong_o WAIVED '"name": "thirteen"' '["o", "dq"]' --law merge-ranges
expect says_line '^WAIVED thirteen .* merge-ranges: o: 1 of 208 elements break it'
expect grep -q '"law_broken":' out.json
judged_by nan_o FAIL '"name": "thirteen"' '["dv"]' --law repeat
judged_by nan_o WAIVED '"name": "thirteen"' '["o"]' --law repeat
waive "$(entry '"name": "thirteen"' '"states": ["NONDETERMINISTIC"], "tensors": ["dq"]')"
judged nondeterministic
expect exits 1 # it is o that differs
waive "$(entry '"name": "thirteen"' '"states": ["NONDETERMINISTIC"], "tensors": ["o"]')"
judged nondeterministic
expect exits 0

# ---- expired ----
waive "$(entry '"name": "thirteen"' '"states": ["FAIL"]' 2026-01-01)"
judged wrong_o
expect exits 1
expect says_failure '^FAIL thirteen .*  waiver 0 expired on 2026-01-01: a known one  .*  repro: '
expect complains 'w.json: $.waivers[0]: expired on 2026-01-01; its 1 failures count'
waive "$(entry '"name": "thirteen"' '"states": ["FAIL"]' "$(date -u +%F)")" # valid for the whole last day
judged wrong_o
expect exits 0
waive "$(entry '"name": "thirteen"' '"states": ["FAIL"]' 2026-01-01)" "$(entry '"name": "thirteen"' '"states": ["FAIL"]')"
judged wrong_o # another one holds
expect exits 0
expect says_line '^WAIVED thirteen .*waiver 1 until'

# ---- obsolete: fails the run, if every case ran ----
waive "$(entry '"name": "^(one|two)$"' '"states": ["FAIL"]')" "$(entry '"name": "thirteen"' '"states": ["FAIL"]')"
judged wrong_o
expect exits 1
expect complains 'w.json: $.waivers[0] (a known one): all 2 cases that it matches passed; remove it'
expect last_line "tests:5 passed:4 failed:0 skipped:0 error:0 waived:1"
judged wrong_o --shard 0/2
expect exits 0
expect complains 'is it still needed?'
judged wrong_o --filter 'one|thirteen'
expect exits 0
waive "$(entry '"name": "no such case"' '"states": ["FAIL"]')" "$(entry '"name": "four"' '"states": ["FAIL"]' 2026-01-01)"
run "$faulty" --cases five.json --backend ref-f32 --waivers w.json # matches nothing; has expired
expect exits 0

# ---- a resumed run judges by today's waivers ----
waive "$(entry '"name": "thirteen"' '"states": ["FAIL"]')"
two=("$faulty" --cases five.json --backend faulty:wrong_o --backend faulty:hang --report on.json --waivers w.json)
"${two[@]}" --jobs 1 >out 2>err &
pid=$!
wait_for '"backend":"faulty:hang"' on.json.journal
{ kill -KILL $pid && wait $pid; } 2>/dev/null
expect grep -q '"state":"FAIL"' on.json.journal
expect [ "$(grep -c waive on.json.journal)" = 1 ] # the header's command, no result
run "${two[@]}" --timeout 1 --resume
expect exits 1 # the hang
expect last_line "tests:10 passed:8 failed:1 skipped:0 error:0 waived:1"
expect [ "$(grep -cE '"waived":\s*true' on.json)" = 2 ] # the case and its failure

# ---- the same for failures of laws ----
waive "$(entry '"name": "thirteen"' '"tensors": ["dv"]')"
two=("$faulty" --cases five.json --law merge-ranges --backend faulty:wrong_o --backend faulty:hang --report on.json --waivers w.json)
"${two[@]}" --jobs 1 >out 2>err &
pid=$!
wait_for '"backend":"faulty:hang"' on.json.journal
{ kill -KILL $pid && wait $pid; } 2>/dev/null
run "${two[@]}" --timeout 1 --resume
expect exits 1
expect last_line "tests:10 passed:8 failed:2 skipped:0 error:0" # o is not dv
waive "$(entry '"name": "thirteen"' '"tensors": ["o"]')"
rm -f on.json*
"${two[@]}" --jobs 1 >out 2>err &
pid=$!
wait_for '"backend":"faulty:hang"' on.json.journal
{ kill -KILL $pid && wait $pid; } 2>/dev/null
run "${two[@]}" --timeout 1 --resume
expect last_line "tests:10 passed:8 failed:1 skipped:0 error:0 waived:1"

# ---- malformed: exit 2, the place is named ----
bad() { # MESSAGE JSON
  printf '%s' "$2" >w.json
  judged wrong_o
  expect exits 2
  expect complains "w.json: $1"
  expect silent
}
bad_text() { # PLACE AND MESSAGE, JSON
  printf "$2" >w.json
  judged wrong_o
  expect exits 2
  expect complains "w.json$1"
  expect silent
}
bad_text ':1:2: $' '{'
bad_text ':3:3: $: a key in double quotes expected' '{ "fa_waivers": 1,\n  "waivers": [],\n  }'
bad_text ':2:1: $: text after the end' '{ "fa_waivers": 1, "waivers": [] }\n}'
bad_text ': $.waivers: this key is given twice' '{ "fa_waivers": 1, "waivers": [], "waivers": [] }'
bad '$.fa_waivers: missing' '{ "waivers": [] }'
bad '$.waiver: unknown; allowed: fa_waivers, note, waivers' '{ "fa_waivers": 1, "waiver": [] }'
bad '$.waivers: an array' '{ "fa_waivers": 1, "waivers": {} }'
bad_entry() { # MESSAGE ENTRY
  bad "\$.waivers[1]$1" "{ \"fa_waivers\": 1, \"waivers\": [ $(entry '"name": "x"' '"states": ["FAIL"]'), $2 ] }"
}
rest='"reason": "r", "expires": "2027-01-31"'
bad_entry ': an object' '3'
bad_entry '.until: unknown; allowed: match, states, tensors, reason, expires, link' '{ "until": "tomorrow" }'
bad_entry '.reason: missing' '{ "match": { "name": "x" }, "states": ["FAIL"], "reason": " ", "expires": "2027-01-31" }'
bad_entry '.expires: missing or no date' '{ "match": { "name": "x" }, "states": ["FAIL"], "reason": "r" }'
bad_entry '.expires: missing or no date' '{ "match": { "name": "x" }, "states": ["FAIL"], "reason": "r", "expires": "2027-13-01" }'
for day in 2027-02-29 2027-02-31 2100-02-29 2027-04-31 2027-01-00 2027-1-31; do
  bad_entry '.expires: missing or no date' "{ \"match\": { \"name\": \"x\" }, \"states\": [\"FAIL\"], \"reason\": \"r\", \"expires\": \"$day\" }"
done
bad_entry '.reason: this key is given twice' "{ \"match\": { \"name\": \"x\" }, \"states\": [\"FAIL\"], $rest, \"reason\": \"s\" }"
bad_entry '.match.name: this key is given twice' "{ \"match\": { \"name\": \"x\", \"name\": \"y\" }, \"states\": [\"FAIL\"], $rest }"
waive "$(entry '"name": "thirteen"' '"states": ["FAIL"]' 2096-02-29)" # a leap day
judged wrong_o
expect exits 0
bad_entry ': states or tensors is needed' "{ \"match\": { \"name\": \"x\" }, $rest }"
bad_entry '.match: an object' "{ \"states\": [\"FAIL\"], $rest }"
bad_entry '.match: empty' "{ \"match\": {}, \"states\": [\"FAIL\"], $rest }"
bad_entry '.match.nam: unknown' "{ \"match\": { \"nam\": \"x\" }, \"states\": [\"FAIL\"], $rest }"
bad_entry '.match.name: no POSIX extended' "{ \"match\": { \"name\": \"(\" }, \"states\": [\"FAIL\"], $rest }"
bad_entry '.match.family: flash, memeff, flex, kvcache or merge is allowed' "{ \"match\": { \"family\": \"flush\" }, \"states\": [\"FAIL\"], $rest }"
bad_entry '.match.dtype: f16' "{ \"match\": { \"dtype\": 16 }, \"states\": [\"FAIL\"], $rest }"
bad_entry '.states: states of failures' "{ \"match\": { \"name\": \"x\" }, \"states\": [\"PASS\"], $rest }"
bad_entry '.states: an array' "{ \"match\": { \"name\": \"x\" }, \"states\": \"FAIL\", $rest }"
bad_entry '.tensors: names of outputs' "{ \"match\": { \"name\": \"x\" }, \"tensors\": [\"q\"], $rest }"
bad_entry '.link: a string' "{ \"match\": { \"name\": \"x\" }, \"states\": [\"FAIL\"], \"link\": 7, $rest }"
rm w.json
judged wrong_o
expect exits 2
expect complains "w.json: No such file"

done_checking
