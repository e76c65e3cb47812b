#!/usr/bin/env bash
# --sample from outside: what is said of a sampled result, that repro and shrink take the same places, and what is refused.
# usage: test_sample.sh FA_VERIFY FAULTY (tests/support/faulty_backend.c; from the top of the source tree)
set -uo pipefail
here=$(realpath "$(dirname "$0")")
verify=$(realpath "$1") faulty=$(realpath "$2") recorded=$PWD/tests/golden/recorded-flash.safetensors
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
. "$here/../support/cli_check.sh"
case='{"name":"few","heads_q":2,"seqlen_q":13,"seqlen_k":600,"head_dim":16}'
sampled() { run "$faulty" run --backend faulty:wrong_o --case "$case" --no-progress --jobs 1 "$@"; }

# ---- a sampled PASS says so ----
run "$verify" run --backend ref-f32 --case "$case" --sample rows=20,strips=2 --report out.json
expect exits 0
expect says_line '^PASS few .*  sampled: 20 of 26 rows and 2 of 6 strips of keys; a fault in at least 14 % of the rows or 78 % of the strips is found with 95 %$'
expect last_line "tests:1 passed:1 failed:0 skipped:0 error:0 sampled:1"
expect grep -qF '"sample":{"asked":"rows=20,strips=2","rows":20,"of_rows":26,"strips":2,"of_strips":6,"rows_found":0.139,"strips_found":0.776}' out.json
expect grep -qE '"sampled":	1' out.json
run "$verify" report out.json
expect last_line "tests:1 passed:1 failed:0 skipped:0 error:0 sampled:1"
run "$verify" run --backend ref-f32 --case "$case" --sample rows=26,strips=6
expect last_line "tests:1 passed:1 failed:0 skipped:0 error:0"
run "$verify" random --backend ref-f32 --count 40 --seed 3 --sample rows=30,strips=1 --jobs 2
expect exits 0
expect says_line 'passed:40 .* sampled:[23][0-9]$'
run "$verify" check "$recorded" --sample rows=10,strips=1
expect says_line 'error:0 sampled:[1-9]'

# ---- whoever reads a report elsewhere sees it too; --require counts it, but not as whole ----
mark='sampled: 20 of 26 rows and 2 of 6 strips of keys'
run "$verify" report out.json --junit out.xml --html out.html --score score.json
expect exits 0
expect grep -qF "<properties><property name=\"sampled\" value=\"$mark;" out.xml
expect grep -qF "\"sample\":[\"$mark;" out.html
expect grep -qF '<li class="count sampled" data-n="1"><b>1</b> judged in a sample</li>' out.html
expect grep -qF '1 of 1 cases were judged in a sample of their places' score.json
run "$verify" report out.json --require all
expect exits 0
echo '{"whole":["f*"]}' >require.json
run "$verify" report out.json --require require.json
expect exits 1
expect complains 'required, but not judged: whole f*: 0 of 1 case (0 %); the first reason: it was judged in a sample of its places'
run "$verify" run --backend ref-f32 --case "$case" --require require.json --report plain.json
expect exits 0
run "$verify" report plain.json --junit plain.xml --html plain.html --score plain-score.json
expect exits 0
expect test "$(cat plain.xml plain.html plain-score.json | grep -cE 'property name="sampled"|count sampled|in a sample of their')" = 0
run "$verify" run --backend ref-f32 --case "$case" --sample rows=20,strips=2 --require all --report all.json
expect exits 0
expect grep -qE '"sampled":	1' <(sed -n '/"require"/,$p' all.json)

# ---- a fault in row 12 of head 0 is found if that row is judged, and then again ----
found=0 missed=0
for seed in 1 2 3 4 5 6 7 8; do
  sampled --sample rows=9,strips=0,seed=$seed --report $seed.json
  if [ "$rc" = 1 ]; then
    found=$seed
    expect says 'worst: o[0,12,0,'
  else
    missed=$seed
    expect says_line '^PASS .*sampled: 9 of 26 rows'
  fi
done
expect test "$found" != 0 -a "$missed" != 0
expect grep -qF "\"asked\":	\"rows=9,strips=0$([ "$found" = 1 ] || echo ",seed=$found")\"" "$found.json"
run "$faulty" repro "$found.json:0"
expect exits 1
expect says 'sampled: 9 of 26 rows'
run "$faulty" repro "$found.json:0" --sample rows=9,strips=0,seed=$missed
expect exits 0
sampled --sample rows=9,strips=0,seed=$found -v
expect says "--sample rows=9,strips=0"
run "$faulty" shrink "$found.json:0" --jobs 1
expect says_line '^SHRUNK few'

# ---- a run is resumed with its own sample alone ----
sampled --sample rows=9,strips=0 --report again.json
run "$faulty" run --backend faulty:wrong_o --case "$case" --sample rows=8,strips=0 --report again.json --resume
expect exits 2

# ---- refused ----
for text in rows=0,strips=0 rows=1,rows=2 strips=x rows=5, rows=-1 'rows=1 ,strips=2' seed=3 rows=1000000000 5 ''; do
  run "$verify" run --case "$case" --sample "$text"
  expect exits 2
  expect complains "rows=N,strips=M is needed"
done
run "$verify" run --case "$case" --sample rows=5 --laws
expect exits 2
expect complains "laws compare two runs"
run "$verify" run --case "$case" --backend 'exec:true' --untrusted --sample rows=5
expect exits 2
expect complains "not with --untrusted"
run "$verify" bench --case "$case" --sample rows=5
expect exits 2
done_checking
