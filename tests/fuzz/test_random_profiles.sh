#!/usr/bin/env bash
# Random cases of every profile, and their table; a second call has nothing to do; a failure, and a backend that does not run, are said.
# usage: test_random_profiles.sh FA_VERIFY FAULTY
set -euo pipefail
command -v python3 >/dev/null || { echo "skipped: no python3"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
script=tests/fuzz/random_profiles.py
python3 $script "$1" ref-f32 40 "$work/right" --seed 5 --jobs 2 >"$work/first"
python3 $script "$1" ref-f32 40 "$work/right" --seed 5 --jobs 2 >"$work/again"
cmp "$work/first" "$work/again"
python3 $script "$1" ref-f32 23 "$work/options" --seed 5 --jobs 2 -- --end-to-end >/dev/null # all laws of a long case take half a minute
grep -qE '"end_to_end":[[:space:]]*true' "$work/options"/*.json || { echo "options are not passed on"; exit 1; }
python3 $script "$1" ref-f32 90000 "$work/stopped" --seed 5 --jobs 2 --seconds 1 >/dev/null || true
grep -q '"total"' "$work/stopped/causal.json" && [ -e "$work/stopped/causal.json.journal" ] || { echo "what is stopped has no report"; exit 1; }
profiles=$("$1" list profiles | grep -vc '^rate-')
[ "$(grep -c '^| [a-z]* | [0-9]' "$work/first")" = $((profiles + 1)) ]
grep -qE '^\| all \| [0-9]+ \| [0-9]+ \| 0 \| [0-9]+ \| 0 \|' "$work/first"
rc=0
sed -i 's/"failed":[[:space:]]*0/"failed": 1/' "$work/right/gqa.json"
python3 $script "$1" ref-f32 40 "$work/right" --seed 5 >"$work/failed" || rc=$?
[ $rc = 1 ] && grep -qE '^\| gqa \| [0-9]+ \| [0-9]+ \| 1 ' "$work/failed" || { cat "$work/failed"; exit 1; }
rc=0
python3 $script "$2" faulty:no_device 40 "$work/none" --jobs 1 >"$work/none.txt" || rc=$?
[ $rc = 3 ] || { cat "$work/none.txt"; exit 1; }
