#!/usr/bin/env bash
# usage: test_corpus_tool.sh CORPUS_TOOL REPLAY_SCHEDULE CORPORA: how corpus_tool converts inputs.
set -euo pipefail
tool=$1 replay=$2 corpus=$3
work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT
failed=0
fail() { echo "failed: $*" >&2; failed=1; }

# A case line for each input, with the families that the target runs.
families() { # TARGET [OPTION...]
  local target=$1
  shift
  "$tool" to-cases "$@" "$corpus/$target"/* 2>"$work/err" | grep -oE '"family":"[a-z]+"' | cut -d'"' -f4 | sort | uniq -c | awk '{printf "%s:%s ", $2, $1}'
}
count() { find "$corpus/$1" -type f | wc -l; }
got=$(families attention)
if [ "$got" != "flash:$(count attention) " ]; then fail "attention: $got"; fi
got=$(families families --target families)
if [[ ! $got =~ ^flash:([0-9]+)\ flex:([0-9]+)\ kvcache:([0-9]+)\ memeff:([0-9]+)\ merge:([0-9]+)\ $ ]] ||
  ((BASH_REMATCH[1] + BASH_REMATCH[2] + BASH_REMATCH[3] + BASH_REMATCH[4] + BASH_REMATCH[5] != $(count families))); then fail "families: $got"; fi

# Inputs of nothing but a profile and a key.
"$tool" draws "$work" 1 >"$work/out"
n=$(find "$work" -type f -name '*-0' | wc -l)
if [ "$n" -lt 20 ] || [ "$(<"$work/out")" != "$n inputs" ]; then fail "draws: $n inputs, and it says $(cat "$work/out")"; fi
if ! "$tool" to-cases --target families "$work/merge-0" | grep '"family":"merge"' >/dev/null; then fail "draws: merge-0 is no merge"; fi
got=$(families schedule --target schedule)
if [ "$got" != "flash:$(count schedule) " ]; then fail "schedule: $got"; fi
if ! grep -q 'replay_schedule runs it' "$work/err"; then fail "schedule: nothing says that the tape is missing"; fi

code=0
"$tool" to-cases --target case_json "$corpus/case_json"/* >"$work/out" 2>&1 || code=$?
if [ $code != 2 ] || ! grep -q 'those are: attention, families, schedule, hopper' "$work/out"; then fail "case_json: exit $code: $(cat "$work/out")"; fi
code=0
"$tool" to-cases --target schedule >"$work/out" 2>&1 || code=$?
if [ $code != 2 ]; then fail "without an input: exit $code"; fi

# The command that reproduces a schedule's finding takes one file.
input=$(find "$corpus/schedule" -type f | sort | sed -n 1p)
if ! "$replay" "$input" | grep "^1 inputs" >/dev/null; then fail "replay_schedule does not take one input"; fi
exit $failed
