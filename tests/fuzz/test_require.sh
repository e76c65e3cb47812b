#!/usr/bin/env bash
# Random cases inside what a subject supports, what is said about the rest, and --require: when skips fail a run.
# usage: test_require.sh FAULTY (tests/support/faulty_backend.c; from the top of the source tree)
set -uo pipefail
here=$(realpath "$(dirname "$0")")
faulty=$(realpath "$1") recorded=$PWD/tests/golden/recorded-flash.safetensors
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
. "$here/../support/cli_check.sh"
draws() { run "$faulty" random --count 30 --seed 7 --backend faulty:f32_only --no-progress --jobs 1 "$@"; }
names() { sed -n 's/^[A-Z]* \([a-z]*-[0-9.-]*\) .*/\1/p' "${1:-out}" | sort; }

# ---- random cases are drawn again until the subject takes them ----
draws --as-drawn
expect exits 0
expect says_line ' skipped:(2[3-9]|30) error:0$'
grep '^PASS' out >taken
draws --report whole.json
expect exits 0
expect last_line "tests:30 passed:30 failed:0 skipped:0 error:0"
expect says_line '^PASS causal-7-[0-9]+\.[0-9]+  faulty:f32_only  fwd'
for name in $(names taken); do expect says "PASS $name  "; done # a seed keeps its meaning where it can
names >all
expect test "$(uniq all | wc -l)" = 30
expect says_line '^never judged: .*bf16'
expect grep -qE '"bf16":	\{' whole.json
draws -q
expect lines . 1

# The same cases whoever draws them: other workers, shards, one process, a resumed run.
draws --jobs 4
expect same all <(names)
draws --no-isolate
expect same all <(names)
for i in 0 1 2; do draws --shard $i/3 --report part.$i.json && cat out; done >parts
expect same all <(names parts)
"$faulty" random --count 400 --seed 7 --backend faulty:f32_only --no-progress --jobs 2 --report long.json >/dev/null 2>&1 &
pid=$!
wait_for '"item"' long.json.journal
kill -INT $pid
wait $pid
"$faulty" random --count 400 --seed 7 --backend faulty:f32_only --no-progress --jobs 2 --report long.json --resume -q >out 2>err
rc=$? what="resumed"
expect exits 0
run "$faulty" random --count 400 --seed 7 --backend faulty:f32_only --no-progress --jobs 2 --report other.json -q
for report in long other; do "$faulty" report $report.json --no-times --merge $report.plain >/dev/null 2>&1; done
without_command() { grep -v '"command":' "$1"; }
expect same <(without_command long.plain) <(without_command other.plain)
draws --report whole.json --resume --as-drawn
expect exits 2
expect complains 'its draws is true, now missing'

# Names, emitted cases and cases of crashed workers are those that ran.
name=$(grep -m 1 '\.' all)
draws --filter "^${name//./\\.}\$"
expect last_line "tests:1 passed:1 failed:0 skipped:0 error:0"
expect says "PASS $name  "
draws --emit cases.json
run "$faulty" run --cases cases.json --backend faulty:f32_only --as-drawn --no-progress
expect last_line "tests:30 passed:30 failed:0 skipped:0 error:0"
expect same all <(names)
run "$faulty" random --seconds 0.5 --seed 7 --backend faulty:f32_only --no-progress --emit endless.json
names >endless
run "$faulty" run --cases endless.json --backend faulty:f32_only --no-progress
expect says_line ' failed:0 skipped:0 error:0$'
expect same endless <(names)
run "$faulty" random --count 30 --seed 7 --backend faulty:f32_only_crash --no-progress --jobs 2
expect lines '^CRASH ' 30
expect same all <(names)

# Random parts of case files likewise; the file's own cases stay as they are.
printf '{"fa_cases":1,"cases":[{"name":"own","seqlen_q":5}],"random":[{"count":12,"seed":"7","profile":"causal"}]}' >random.json
run "$faulty" run --cases random.json --backend faulty:f32_only --no-progress
expect last_line "tests:13 passed:12 failed:0 skipped:1 error:0"
expect says 'SKIP own  '
run "$faulty" run --cases random.json --backend faulty:f32_only --no-progress --as-drawn
expect says_line ' skipped:(9|1[0-9]) error:0$'

# ---- --require ----
requires() { # EXIT-CODE REQUIRED ARGUMENTS...
  run "$faulty" "${@:3}" --no-progress --require "$2"
  expect exits "$1"
}
cat >two.json <<'JSON'
{ "fa_cases": 1, "defaults": { "dtype": "f16", "head_dim": 16, "seqlen_q": 8 },
  "cases": [ { "name": "half" }, { "name": "single", "dtype": "f32", "mask": { "type": "causal" } } ] }
JSON
two=(run --cases two.json --backend)
run "$faulty" "${two[@]}" faulty:f32_only
expect exits 0 # a skip fails nothing
requires 1 all "${two[@]}" faulty:f32_only
expect complains 'fa-verify: required, but not judged: judged 100%: 1 of 2 cases (50 %); the first reason: faulty: it has no f16'
requires 1 50.1% "${two[@]}" faulty:f32_only
requires 0 50% "${two[@]}" faulty:f32_only
requires 0 all "${two[@]}" ref-f32
run "$faulty" "${two[@]}" faulty:refuse
expect exits 4
requires 1 all "${two[@]}" faulty:refuse
requires 1 0.5% random --count 20 --backend faulty:refuse
requires 4 all "${two[@]}" ref-f32 --filter nothing
requires 3 all run --case '{"name":"lost","dtype":"f32","seqlen_q":13}' --backend faulty:device_lost

file() { printf '%s' "$1" >need.json; }
needs() { # EXIT-CODE BACKEND JSON
  file "$3"
  requires "$1" need.json "${two[@]}" "$2"
}
needs 0 faulty:f32_only '{"judged":"50%","features":["causal","f32"],"dtypes":["f32"],"families":["flash"],"passes":["forward","backward"],"outputs":["o","lse","dq"],"cases":["sing*"]}'
needs 1 faulty:f32_only '{"features":["causal","window"]}'
expect complains 'features window: no selected case is of that kind'
needs 1 faulty:f32_only '{"dtypes":["f16"]}'
expect complains 'dtypes f16: 0 of 1 case (0 %); the first reason: faulty: it has no f16'
needs 1 faulty:f32_only '{"cases":["*"]}'
needs 1 faulty:f32_only '{"cases":["no-such"]}'
needs 1 faulty:f32_only '{"outputs":["dbias"]}'
needs 1 faulty:forward_only '{"passes":["forward","backward"]}'
expect complains 'passes backward: 0 of 2 cases (0 %); the first reason: backward not judged: faulty: it has no backward'
needs 0 faulty:forward_only '{"passes":["forward"]}'
needs 1 faulty:forward_only '{"features":["backward"]}'

malformed() { # JSON TEXT
  needs 2 ref-f32 "$1"
  expect complains "$2"
  expect silent
}
malformed '{"features":["colour"]}' 'need.json: $.features[0]: "colour" is none of f16, bf16'
malformed '{"outputs":["o","oo"]}' 'need.json: $.outputs[1]: "oo" is none of o, lse, dq, dk, dv, dbias'
malformed '{"passes":"forward"}' 'need.json: $.passes: a list of words is needed'
malformed '{"judged":"all"}' 'need.json: $.judged: a share above 0 is needed'
malformed '{"judge":"90%"}' 'need.json: $: "judge" is no key; allowed are judged, features'
malformed '{}' 'need.json: $: it requires nothing'
malformed '[]' 'need.json: $: an object is needed'
malformed '{"judged": }' 'need.json:1:'
for text in 0% 100.1% x% nowhere.json ''; do
  requires 2 "$text" "${two[@]}" ref-f32
  expect complains '--require'
done

# Recorded runs, resumed runs, reports, shards, JUnit.
run "$faulty" check "$recorded" --require all -q
expect exits 0
file '{"features":["paged"]}'
run "$faulty" check "$recorded" --require need.json -q
expect exits 1
file '{"features":["causal"],"outputs":["lse"]}'
run "$faulty" check "$recorded" --require need.json -q
expect exits 0
requires 1 all "${two[@]}" faulty:f32_only --report out.json
expect grep -qE '"met":	false' out.json
requires 1 all "${two[@]}" faulty:f32_only --report out.json --resume
expect complains 'the run is over'
requires 0 50% "${two[@]}" faulty:f32_only --report out.json --resume
run "$faulty" report out.json --junit out.xml
expect exits 0
expect grep -qE 'tests="3" failures="1" errors="0" skipped="1"' out.xml
expect grep -qF 'name="judged 100%" time="0.000"><failure type="NOT_JUDGED" message="1 of 2 cases were judged. faulty: it has no f16"/>' out.xml
file '{"judged":"50%","features":["causal"]}'
requires 1 need.json "${two[@]}" faulty:f32_only --shard 0/2 --report part.0.json
requires 0 need.json "${two[@]}" faulty:f32_only --shard 1/2 --report part.1.json
run "$faulty" report part.0.json part.1.json --merge whole.json
expect exits 0
expect grep -qE '"met":	true' whole.json
run "$faulty" report part.0.json part.1.json --require all
expect exits 1
expect complains 'judged 100%: 1 of 2 cases'
run "$faulty" report part.0.json part.1.json --require need.json --junit out.xml
expect exits 0
expect grep -qF 'name="features causal" time="0.000"></testcase>' out.xml
run "$faulty" report part.0.json out.json --merge mixed.json
lacks() { ! grep -qF "$1" "$2"; }
expect lacks '"require"' mixed.json
done_checking
