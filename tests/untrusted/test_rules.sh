#!/bin/bash
# The rules for a candidate that nobody trusts, each seen to fail a cheat by its name, and to let it through when it is left out.
# The wall is left out everywhere: these rules need nothing of the machine.
# usage: test_rules.sh FA_VERIFY
set -u
verify=$1 folder=$(mktemp -d) failed=0
trap 'rm -rf "$folder"' EXIT
command -v python3 >/dev/null || { echo "skipped: no python3"; exit 77; }
PATH=$(python3 -c 'import os, sys; print(os.path.dirname(sys.executable))'):$PATH # a version manager's stand-in takes ten times as long to start
here=$(cd "$(dirname "$0")" && pwd)
case='{"name": "plain", "dtype": "f32", "heads_q": 2, "seqlen_q": 9, "seqlen_k": 12, "head_dim": 8, "backward": false}'
wall=(processes network files environment seccomp limits memory stderr)

# run CHEAT [option...]: the output in $folder/out, the exit code in $code
run() {
  local cheat=$1 options=()
  shift
  for layer in "${wall[@]}"; do options+=(--without "$layer"); done
  "$verify" run --untrusted "${options[@]}" --no-progress -j 2 --case "$case" --backend "exec:exec python3 '$here/child.py' $cheat '$folder/kept'" \
    "$@" > "$folder/out" 2>&1
  code=$?
}
# expect CODE TEXT: of the last run; TEXT is a fixed string in its output, "" any
expect() {
  if [ "$code" != "$1" ] || { [ -n "$2" ] && ! grep -qF -- "$2" "$folder/out"; }; then
    echo "FAILED: line ${BASH_LINENO[0]}: exit code $code instead of $1, or no \"$2\" in:"
    tail -n 30 "$folder/out"
    failed=1
  fi
}
# caught CHEAT TEXT LAYER...: it fails with this text, and passes without the layers. One case each, for the sake of time: the
# contract of a cheat claims no more than that case has.
caught() {
  local cheat=$1 text=$2 without=()
  shift 2
  run "$cheat" --without hidden
  expect 1 "$text"
  for layer in "$@"; do without+=(--without "$layer"); done
  run "$cheat" --without hidden "${without[@]}"
  expect 0 "failed:0"
}

# ---- an honest one ----
run honest --report "$folder/report.json"
expect 0 "failed:0"
expect 0 "untrusted: LAYERS LEFT OUT: processes, network"
expect 0 "hidden-0"
expect 0 "NOT CLAIMED by "
commitment=$(sed -n 's/^untrusted: commitment //p' "$folder/out") secret=$(sed -n 's/^untrusted: secret //p' "$folder/out")
python3 - "$folder/report.json" "$commitment" <<'PY' || failed=1
import hashlib, json, sys
u = json.load(open(sys.argv[1]))["untrusted"]
lines = "".join(u[key] + "\n" for key in ("secret", "cases_sha256", "contract_sha256"))
assert hashlib.sha256(lines.encode()).hexdigest() == u["commitment"] == sys.argv[2], u
contract = json.dumps(u["contract"], sort_keys=True, separators=(",", ":"))
assert hashlib.sha256(contract.encode()).hexdigest() == u["contract_sha256"], contract
assert u["hidden"] * 2 >= u["cases"] > 1 and u["traps"]["data"] > 0 and u["traps"]["process"] > 0, u
assert not u["claims"]["untested"] and "causal" in u["claims"]["tested"], u
PY
cases() { grep -oE '^[A-Z]+ [^ ]+|r=[^ ]+' "$folder/out"; }
cases > "$folder/first"
run honest --secret "$secret"
expect 0 "untrusted: commitment $commitment"
cases | diff - "$folder/first" > "$folder/diff" || { echo "FAILED: the same secret makes another run"; cat "$folder/diff"; failed=1; }
run honest
cases | diff -q - "$folder/first" > /dev/null && { echo "FAILED: two runs have the same hidden cases"; failed=1; }

# ---- several reports ----
run honest --secret "$secret" --without hidden --report "$folder/part.json"
expect 1 "CLAIMED, AND TESTED BY NO CASE: " # but in the first report there are cases
"$verify" report "$folder/report.json" "$folder/part.json" > "$folder/out" 2>&1
code=$?
expect 0 "untrusted: LAYERS LEFT OUT, and what they keep off is not kept off: processes"
expect 0 "untrusted: THE REPORTS DIFFER, and what is in force is so in all of them: layers"
expect 0 "untrusted: contract: "
grep -q "TESTED BY NO CASE" "$folder/out" && { echo "FAILED: claims of one contract are not tested together"; failed=1; }
expect 0 "untrusted: layers in force: contract, profile, seeds, replay, fresh, final, bounds"

# ---- contract ----
run asked --without hidden
expect 1 "refused inside its contract: too hard today"
run asked --without hidden --without contract
expect 4 "skipped:1"
caught other_hello "its hello is not the first one" contract
run late --without hidden
expect 1 "refused inside its contract: no more of these"
run late --without hidden --without contract
expect 4 "skipped:1"
run leaves_out --without hidden
expect 1 "lse is not written, which its contract promises"
run no_o
expect 2 "its contract promises no o"
run any --without hidden
expect 0 "NOT JUDGED: o of rows without keys may be anything"
run empty_claim --without hidden
expect 1 "CLAIMED, AND TESTED BY NO CASE: paged"

# ---- profile ----
run coarse --without hidden
expect 1 "claims that would widen its bounds are ignored: "
expect 1 "bad"
run coarse --without hidden --without profile
expect 0 "failed:0"
run honest --arithmetic recorded
expect 2 "no set that a candidate can be held to"

# ---- seeds ----
# same [option...]: the number of first calls that two runs have in common
same() {
  for i in 1 2; do
    rm -f "$folder/kept"
    run spy --without hidden --without replay "$@"
    sort -u "$folder/kept" > "$folder/kept.$i"
  done
  comm -12 "$folder/kept.1" "$folder/kept.2" | wc -l
}
[ "$(same)" = 0 ] || { echo "FAILED: two runs have the same data"; failed=1; }
[ "$(same --without seeds)" = 1 ] || { echo "FAILED: without secret seeds, other data"; failed=1; }

# ---- replay ----
caught replay "answered as for other data" replay
caught replay_q "answered as for other data" replay
caught replay_data "answered as for other data" replay

# ---- repro ----
# What is said of the case that was named, without times and commands.
found() { awk '/^[A-Z]+ /{mine = $2 == "plain"} /^[a-z]/{mine = 0} mine' "$folder/out" | grep -v '    repro: ' | sed -E 's/  [0-9]+ ms//'; }
# repeats WHAT: the last command has found the same as the run before, whose words are in $folder/first
repeats() {
  expect 1 "FAIL plain "
  found | diff "$folder/first" - > "$folder/diff" || { echo "FAILED: line ${BASH_LINENO[0]}: $1 finds something else"; cat "$folder/diff"; failed=1; }
}
drawn=$(printf '5c%.0s' {1..32})
# Its number decides which traps stand where, so that it must not be the first.
run replay --no-explain --secret "$drawn" --report "$folder/failing.json"
expect 1 "answered as for other data"
found > "$folder/first"
number=$(python3 - "$folder/failing.json" <<'PY'
import json, sys
failures = json.load(open(sys.argv[1]))["failures"]
k = [f["case"]["name"] for f in failures].index("plain")
assert failures[k]["item"] > 0, failures[k]["item"]
print(k)
PY
) || failed=1
"$verify" repro --no-progress --no-explain "$folder/failing.json:$number" > "$folder/out" 2>&1
code=$?
repeats "repro of a report"
expect 1 "untrusted: secret $drawn"
expect 1 "untrusted: layers in force: contract, profile, seeds, replay, fresh"
"$verify" repro --no-progress --no-explain --backend ref-f32 "$folder/failing.json:$number" > "$folder/out" 2>&1
code=$?
expect 0 "PASS plain"
python3 - "$folder/failing.json" <<'PY'
import json, sys
report = json.load(open(sys.argv[1]))
report["untrusted"]["contract_sha256"] = "0" * 64
json.dump(report, open(sys.argv[1] + ".other", "w"))
report["untrusted"].update(differ=["layers"])
json.dump(report, open(sys.argv[1] + ".merged", "w"))
PY
"$verify" repro --no-progress "$folder/failing.json.other:$number" > "$folder/out" 2>&1
code=$?
expect 2 "its hello is not that of the report"
"$verify" repro --no-progress "$folder/failing.json.merged:$number" > "$folder/out" 2>&1
code=$?
expect 2 "no one secret and no one set of rules"
# A limit of the wall is one of its rules.
run replay --no-explain --memory-limit 1G --hide /usr/lib/os-release --report "$folder/limited.json" --html "$folder/limited.html"
expect 1 "answered as for other data"
grep -q '"memory_limit_bytes":[[:space:]]*1073741824' "$folder/limited.json" || { echo "FAILED: no memory limit in the report"; failed=1; }
"$verify" repro --no-progress --no-explain "$folder/limited.json:0" --report "$folder/again.json" > "$folder/out" 2>&1
code=$?
expect 1 "answered as for other data"
grep -q '"memory_limit_bytes":[[:space:]]*1073741824' "$folder/again.json" || { echo "FAILED: repro has no memory limit"; failed=1; }
grep -q '"/usr/lib/os-release"' "$folder/again.json" || { echo "FAILED: repro hides nothing"; failed=1; }
# While the run is under way its rules are not known.
echo '{"fa_journal": 1, "run": {"untrusted": {"secret": "'"$drawn"'"}}}' > "$folder/night.json.journal"
for command in repro shrink; do
  "$verify" "$command" "$folder/night.json" > "$folder/out" 2>&1
  code=$?
  expect 2 "its run is not over"
done
# Every command that is printed or on the page repeats the mode.
trusts() { grep -hE "run (--schedule-seed [0-9]+ )?--backend" "$@" && { echo "FAILED: line ${BASH_LINENO[0]}: a command trusts the candidate"; failed=1; }; }
trusts "$folder/limited.html"
grep -qF -- "run --untrusted --without processes" "$folder/limited.html" || { echo "FAILED: no command on the page"; failed=1; }
grep -qF -- "--hide /usr/lib/os-release --arithmetic flash --memory-limit 1073741824" "$folder/limited.html" || { echo "FAILED: neither hidden files nor a limit on the page"; failed=1; }
"$verify" report "$folder/failing.json.merged" --html "$folder/merged.html" > /dev/null 2>&1
grep -qF -- "run --untrusted --without seeds --without hidden --arithmetic" "$folder/merged.html" || { echo "FAILED: merged by several rules, not all layers"; failed=1; }
run near --no-explain -v
expect 1 "cause 1: "
trusts "$folder/out"

# ---- shrink ----
"$verify" shrink --no-progress -j 2 "$folder/failing.json:$number" --out "$folder/small.json" > "$folder/out" 2>&1
code=$?
expect 1 "SHRUNK plain "
expect 1 "answered as for other data"
expect 1 "untrusted: layers in force: contract, profile, seeds, replay, fresh"
trusts "$folder/out"
# By the rules of its trap alone it fails: trusted, it passes.
"$verify" shrink --no-progress -j 2 --backend "exec:exec python3 '$here/child.py' replay" "$folder/failing.json:$number" > "$folder/out" 2>&1
code=$?
expect 0 "it does not fail"
for rule in other:"its hello is not that of the report" merged:"no one secret and no one set of rules"; do
  "$verify" shrink --no-progress "$folder/failing.json.${rule%%:*}:$number" > "$folder/out" 2>&1
  code=$?
  expect 2 "${rule#*:}"
done
"$verify" shrink --no-progress -j 2 --untrusted --secret "$drawn" $(printf -- '--without %s ' "${wall[@]}") --case "$case" \
  --backend "exec:exec python3 '$here/child.py' replay" > "$folder/out" 2>&1
code=$?
expect 1 "SHRUNK plain "
"$verify" shrink --case "$case" --backend ref-f32 --secret "$drawn" > "$folder/out" 2>&1
code=$?
expect 2 "--secret goes with --untrusted"

# ---- filter ----
echo '{"fa_cases": 1, "cases": [{"name": "bound", "law": "repeat"},' "$case" ']}' > "$folder/laws.json"
named=$case case=$(echo "$case" | sed 's/plain/other/')
run honest --without hidden --cases "$folder/laws.json"
expect 2 "case bound is judged by a law"
run honest --cases "$folder/laws.json" --filter 'plain|other|hidden'
expect 0 "failed:0"
# A tier chooses among the cases, and leaves laws out by itself.
run honest --without hidden --without contract --cases "$folder/laws.json" --tier smoke --seconds 2
expect 0 "failed:0"
# What is committed to is what the filter leaves.
committed() { sed -n 's/^untrusted: commitment //p' "$folder/out"; }
run honest --without hidden --secret "$drawn" --cases "$folder/laws.json" --filter other
committed > "$folder/first"
run honest --without hidden --secret "$drawn"
committed | diff - "$folder/first" || { echo "FAILED: a filter, and another commitment"; failed=1; }
case=$named

# ---- without a report ----
# Without a report, the line that is printed has the data in its recipe, and draws other traps.
run near --no-explain --without hidden --allow "$here"
expect 1 "repro: "
found | grep -v '    note: ' | sed -E 's/  trap .*//' > "$folder/first"
grep -qF -- "--without seeds --without hidden" "$folder/out" || { echo "FAILED: no layers in the repro line"; failed=1; }
eval "$(sed -n 's/^    repro: //p' "$folder/out") --no-progress --no-explain" > "$folder/again" 2>&1
code=$?
mv "$folder/again" "$folder/out"
expect 1 "untrusted: LAYERS LEFT OUT: processes, network, files, environment, seccomp, limits, memory, stderr, seeds, hidden"
found | grep -v '    note: ' | sed -E 's/  trap .*//' | diff "$folder/first" - > "$folder/diff" || { echo "FAILED: its repro line finds something else"; cat "$folder/diff"; failed=1; }

# ---- fresh, final ----
caught by_process "differ between two runs" fresh
run error --without hidden
expect 1 "a bad day"
run error --without hidden --without final
expect 3 "a bad day"

# ---- what trusted runs have too ----
caught near "bad" bounds
caught counts "differ between two runs" repeat fresh
caught input "q" guards
case='{"name": "zero", "dtype": "f32", "seqlen_q": 4, "seqlen_k": 4, "head_dim": 8, "backward": false, "fill": {"v": "zero"}}'
run lazy --without hidden
expect 1 "written"
run lazy --without hidden --without poison
grep -qE "^    o: |unwritten|never written" "$folder/out" && { echo "FAILED: it does not find zeros"; cat "$folder/out"; failed=1; }

# ---- what does not go together ----
run honest --laws && expect 2 "laws compare two runs"
run honest --shrink && expect 2 "--shrink would tell"
run honest --shard 0/2 && expect 2 "shards need the same --secret"
run honest --secret 12 && expect 2 "64 hexadecimal digits"
"$verify" run --case "$case" --backend ref-f32 --secret "$secret" > "$folder/out" 2>&1
code=$?
expect 2 "goes with --untrusted"
"$verify" run --untrusted --case "$case" --backend connect:/nowhere > "$folder/out" 2>&1
code=$?
expect 2 "untrusted"

exit $failed
