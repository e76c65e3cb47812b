#!/usr/bin/env bash
# Tiers, baselines and annotations on the command line, with a subject that misbehaves on purpose.
# usage: test_runs.sh FAULTY (tests/support/faulty_backend.c)
set -uo pipefail
here=$(realpath "$(dirname "$0")")
faulty=$(realpath "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
. "$here/../support/cli_check.sh"
unset GITHUB_WORKSPACE GITHUB_STEP_SUMMARY
mkdir known
cat >known/five.json <<END
{ "fa_cases": 1, "defaults": { "dtype": "f16", "head_dim": 16, "seqlen_q": 8 },
  "cases": [ { "name": "one" }, { "name": "two", "data_seed": "2" },
             { "name": "thirteen", "seqlen_q": 13 },
             { "name": "single", "dtype": "f32" }, { "name": "causal", "mask": { "type": "causal" } } ] }
END
five() { run "$faulty" --cases known/five.json --backend "faulty:$1" --no-progress "${@:2}"; }

# ---- baseline ----
five wrong_o --report base.json
expect exits 1
five wrong_o --baseline base.json --report again.json
expect exits 0
expect says_line '^KNOWN thirteen  faulty:wrong_o  .*  FAIL  known \(in the baseline\)$'
expect says "baseline base.json: new:0 known:1 not judged:0 fixed:0"
expect last_line "tests:5 passed:4 failed:0 skipped:0 error:0 known:1"
expect lines '^    ' 0
five wrong_o --baseline base.json --report again.json --resume
expect exits 0
expect complains "the run is over"
expect last_line "tests:5 passed:4 failed:0 skipped:0 error:0 known:1"
cp again.json chained.json
five wrong_o --baseline chained.json
expect exits 0
run "$faulty" report again.json --junit out.xml --html out.html --merge merged.json
expect exits 0
expect grep -qF '<skipped message="known (in the baseline)"/>' out.xml
expect grep -qF 'name="thirteen" time="' out.xml
expect grep -qF 'file="known/five.json" line="3"' out.xml
expect grep -qF '"known":	1' merged.json
run "$faulty" report again.json again.json --merge merged.json
expect grep -qF '"known":	1' merged.json
expect exits 0
five nan_o --baseline base.json # the same case, another class
expect exits 1
expect says "new:1 known:0"
expect last_line "tests:5 passed:4 failed:1 skipped:0 error:0"
five unsupported --baseline base.json
expect exits 1
expect says "not judged: thirteen  faulty:unsupported  faulty: thirteen is unlucky"
expect complains "the baseline's backend is \"faulty:wrong_o\", this run's \"faulty:unsupported\""
five none --baseline base.json
expect exits 0
expect says_line '^fixed: thirteen  faulty:none$'
five wrong_o --baseline base.json --filter one
expect exits 0
expect says "; 4 of its 5 cases were not in this run"
five memory --baseline base.json # an error of the world is no known failure
expect exits 3
five wrong_o --baseline base.json --fail-fast --jobs 1
expect exits 0
expect last_line "tests:5 passed:4 failed:0 skipped:0 error:0 known:1"
run "$faulty" random --count 20 --seed 3 --backend faulty:none --report random.json
run "$faulty" random --count 20 --seed 3 --backend faulty:none --baseline random.json
expect exits 0
expect says "baseline random.json: new:0 known:0 not judged:0 fixed:0"
echo '{' >bad.json
echo '{}' >other.json
for bad in bad.json other.json none.json; do
  five none --baseline $bad
  expect exits 2
  expect complains "--baseline: $bad"
done
five none --slower 2
expect exits 2
five none --baseline base.json --slower 1
expect exits 2

# ---- annotations ----
five wrong_o --annotations github -q
expect exits 1
expect lines '^::error ' 1
expect says_line '^::error file=known/five.json,line=3,title=fa-verify%3A FAIL%3A o outside its bound; also dq dk::1 of 5 cases fail so'
expect says_line '^::notice title=fa-verify%3A summary::5 cases: 4 passed, 1 failed'
expect last_line "tests:5 passed:4 failed:1 skipped:0 error:0"
five wrong_o --annotations github -q --baseline base.json
expect lines KNOWN 0
expect lines '^::error ' 0
echo '{"features": ["causal", "gqa"]}' >wanted.json
five none --annotations github -q --require wanted.json
expect exits 1
expect lines '^::warning ' 1
expect says "::warning title=fa-verify%3A required%2C but not judged::features gqa: 0 of 0 cases. "
run env GITHUB_STEP_SUMMARY="$work/summary.md" "$faulty" report base.json --annotations github
expect exits 0
expect lines '^::error ' 1
expect grep -qF '### fa-verify: faulty:wrong&#95;o fails' summary.md
five none --annotations gitlab
expect exits 2
expect complains "there are: github"

# ---- tiers ----
tier() { run "$faulty" --tier smoke --cases known/five.json --backend "faulty:$1" --no-progress "${@:2}"; }
tier none --filter . --report tier.json # finite: named cases alone
expect exits 0
expect says "tier smoke: ran 5 of 5 named cases and 0 random ones;"
expect last_line "tests:5 passed:5 failed:0 skipped:0 error:0"
expect complains "tier smoke, 30 s: of 5 named cases 5"
expect grep -qF '"named_run":	5' tier.json
names() { sed -nE 's/^(PASS|SKIP|FAIL) ([^ ]+)  .*/\2/p' out; }
names >order
expect [ "$(sort order | tr '\n' ' ')" = "causal one single thirteen two " ]
expect [ "$(head -n 3 order | sort | tr '\n' ' ')" = "causal one single " ] # the others have nothing that "one" has not
tier none --filter . --report tier.json --resume
expect exits 0
expect complains "the run is over"
tier none --filter . --laws --law batch-alone --law key-permutation # two items a case
expect says "tier smoke: ran 5 of 5 named cases and 0 random ones;"
tier none --filter . --seed 2 --report tier.json --resume
expect exits 2
expect complains "of another run: its seed"
tier wrong_o --filter . --report cut.json --fail-fast --jobs 1
expect exits 1
tier wrong_o --filter . --report cut.json --resume --jobs 1
expect exits 1
tier wrong_o --filter . --report whole.json --jobs 1
run "$faulty" report cut.json --no-times --merge a.json
run "$faulty" report whole.json --no-times --merge b.json
sed -i -E 's/"(command|repro)":.*//; s/(cut|whole)\.json//g' a.json b.json
expect same a.json b.json
: >shards
for i in 0 1 2; do
  tier none --filter . --shard $i/3
  names >>shards
done
expect [ "$(sort shards | tr '\n' ' ')" = "causal one single thirteen two " ]
# The time doubles until enough was run: how long that takes is the machine's affair.
long_tier() {
  local seconds
  for seconds in 1 4 16 64; do
    tier "$1" --seconds $seconds --jobs 1 "${@:2}"
    [ "$(names | wc -l)" -lt 8 ] || return
  done
}
long_tier none --report random.json # named ones, then random ones, and it ends
expect exits 0
expect says_line '^tier smoke: ran 5 of 5 named cases and [1-9][0-9]* random ones; features judged: [0-9]+ of [0-9]+; left out: 0 '
names | head -n 8 >first
expect [ "$(head -n 3 first)" = "$(head -n 3 order)" ]
expect [ "$(sed -n 4p first | cut -d- -f2)" = 1 ] # then in turn
long_tier none
names | head -n 8 >second
expect same first second
long_tier none --seed 5
expect [ "$(names | head -n 3)" = "$(head -n 3 first)" ]
names | head -n 8 >third
expect [ "$(cat third)" != "$(cat first)" ]
tier f32_only --filter .
expect exits 0
expect says "tier smoke: ran 1 of 5 named cases and 0 random ones;"
expect says " 4 not run by the backend,"
# What one of several subjects can run is run; one that dies when it is asked is taken to run everything.
tier f32_only --filter . --backend faulty:none
expect says "tier smoke: ran 5 of 5 named cases and 0 random ones;"
tier none --filter . --backend faulty:f32_only
expect says "tier smoke: ran 5 of 5 named cases and 0 random ones;"
tier crash_when_asked --filter .
expect complains "the subject died when it was asked what it can run; it is taken to run everything"
expect says "tier smoke: ran 5 of 5 named cases and 0 random ones;"
tier f32_only --seconds 1 --require 100%
expect exits 0 # random cases are drawn inside what it runs
tier wrong_o --filter . --baseline base.json
expect exits 0
expect says "known:1"
tier crash_at_open
expect exits 3
for wrong in "--tier never" "run --seconds 3 --cases known/five.json" "run --seed 3 --cases known/five.json" "random --count 3 --tier smoke"; do
  # shellcheck disable=SC2086 # words
  run "$faulty" $wrong
  expect exits 2
done
done_checking
