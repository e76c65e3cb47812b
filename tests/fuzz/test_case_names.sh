#!/usr/bin/env bash
# Case files by name, from any folder: where they are looked for and in which order, what a path or a file of the working folder
# means beside them, what an unknown name is told; the same wherever --cases is taken.
# usage: test_case_names.sh FA_VERIFY
set -euo pipefail
root=$PWD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset FA_CASES_DIR
failed=0
complain() { failed=1; printf 'FAILED: %s\n' "$*"; }

# expect WHAT EXIT PATTERN ARGUMENT...: exit code and a line of the output, in folder $at
expect() {
  local what=$1 want=$2 pattern=$3 rc=0 said
  shift 3
  said=$(cd "$at" && "$program" "$@" 2>&1) || rc=$?
  [ $rc = "$want" ] || complain "$what: exit $rc, not $want: $said"
  grep -qE -- "$pattern" <<<"$said" || complain "$what: no line with \"$pattern\": $said"
}

# An installed program, and later the same as the Python package and a build folder have it.
mkdir -p "$work/p/bin" "$work/p/share/fa-verify" "$work/empty" "$work/own"
cp "$1" "$work/p/bin/fa-verify"
cp -r "$root/cases" "$work/p/share/fa-verify/cases"
at=$work/empty program=$work/p/bin/fa-verify
one=(--filter '^square_7$' --backend ref-f32)

expect "by name" 0 '^PASS square_7 ' --cases causal "${one[@]}"
expect "by name with .json" 0 '^tests:1 ' run --cases causal.json "${one[@]}"
expect "two names" 0 '^tests:1 passed:1' --cases causal window "${one[@]}"
expect "by path" 0 '^tests:1 ' --cases "$root/cases/causal.json" "${one[@]}"
expect "list, by name" 0 '"name":"square_7"' list cases --cases causal
expect "list, without --cases" 0 "^causal +90 cases  $work/p/share/fa-verify/cases/causal.json\$" list cases
expect "list, --filter without --cases" 2 '^fa-verify: list cases: --filter is for the cases of --cases' list cases --filter x
expect "the schema is no case file" 4 'schema.json: the schema of case files, left out' --cases schema
expect "golden write" 0 '^PASS square_7 ' golden write "$work/golden" --cases causal --filter '^square_7$'
expect "golden check" 0 '^PASS square_7 ' golden check "$work/golden" --cases causal --filter '^square_7$'
expect "bench" 2 '^fa-verify: nothing_like_it: No such file' bench --cases nothing_like_it
(cd "$at" && "$program" list cases | grep schema >/dev/null) && complain "list cases names the schema"

expect "unknown" 2 '^fa-verify: windo: No such file or directory, nor a case file of this program; the nearest is window, of alibi, amax, causal, ' --cases windo
expect "a missing path" 2 '^fa-verify: no/causal: No such file or directory$' --cases no/causal
expect "a folder" 2 '^fa-verify: \.\.: Is a directory$' --cases ..

# A file of the working folder comes first, a folder of that name does not.
at=$work/own
echo '{"name": "mine", "seqlen_q": 7}' >"$work/own/causal"
mkdir "$work/own/window"
expect "a file of that name here" 0 '^PASS mine ' --cases causal --backend ref-f32
expect "a folder of that name here" 0 '"name":"narrow_7_0"' list cases --cases window
at=$work/empty

# $FA_CASES_DIR comes before what is beside the program, which still has the others.
echo '{"name": "first", "seqlen_q": 7}' >"$work/own/gqa.json"
export FA_CASES_DIR=$work/own
expect "FA_CASES_DIR" 0 '^\{"name":"first"' list cases --cases gqa
expect "FA_CASES_DIR in the list" 0 "^gqa +1 cases  $work/own/gqa.json\$" list cases
expect "what FA_CASES_DIR lacks" 0 '"name":"square_7"' list cases --cases causal
FA_CASES_DIR=$work/nowhere expect "a FA_CASES_DIR that is not there" 0 '"name":"square_7"' list cases --cases causal
unset FA_CASES_DIR

# The unnamed cases of a file, a report and what its failures are run again by do not depend on how the file was named.
(cd "$at" && "$program" list cases --cases flex >"$work/by_name" && "$program" list cases --cases "$work/p/share/fa-verify/cases/flex.json" >"$work/by_path")
cmp -s "$work/by_name" "$work/by_path" || complain "cases differ by how their file is named"
for way in name path; do
  if [ $way = name ]; then given=causal; else given=$work/p/share/fa-verify/cases/causal.json; fi
  (cd "$at" && "$program" --cases "$given" "${one[@]}" -q --report "$work/r.json" >"$work/said" && "$program" report "$work/r.json" --no-times --merge "$work/m.json" >>"$work/said")
  grep -v -e '"command":' -e '"place":' "$work/m.json" >"$work/report_by_$way" # what was typed, and where the case was found
done
cmp -s "$work/report_by_name" "$work/report_by_path" || complain "reports differ by how their file is named: $(diff "$work"/report_by_{name,path} | head -c 600)"

# Beside a program in a folder of its own: the source tree and the Python package. Without any: the path is needed.
mv "$work/p/share/fa-verify/cases" "$work/p/cases"
expect "../cases" 0 "^causal +90 cases  $work/p/cases/causal.json\$" list cases
rm -r "$work/p/cases"
expect "none" 2 '^fa-verify: causal: No such file or directory; no case files came with this program, so a path is needed$' --cases causal
expect "none to list" 0 '^no case files came with this program' list cases
exit $failed
