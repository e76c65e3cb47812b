#!/usr/bin/env bash
# A judge that does not look: the run ends with exit code 3, whichever command asked. usage: test_lying.sh FA_VERIFY LYING_VERIFY
set -uo pipefail
honest=$(realpath "$1") lying=$(realpath "$2") recorded=$PWD/tests/golden/recorded-flash.safetensors
bad=0

# expect CODE TEXT COMMAND...: its exit code, and a text that it prints
expect() {
  code=$1 text=$2
  shift 2
  said=$("$@" 2>&1)
  got=$?
  if [ $got -ne "$code" ] || ! grep -q -- "$text" <<<"$said"; then # no pipe: grep leaves at the first hit, and who still writes then dies
    echo "$*: exit code $got, not $code, or not \"$text\":"
    printf '%s\n' "$said"
    bad=1
  fi
}

case='{"dtype":"f16","seqlen_q":65}'
for command in "run --case $case --backend ref-f32" "random --count 2 --seed 1 --profile rate-host --backend ref-f32" "check $recorded"; do
  # shellcheck disable=SC2086
  expect 0 'by both: ' "$honest" $command --judge host
  # shellcheck disable=SC2086
  expect 3 'a canary lives: the judge on the GPU does not name' "$lying" $command --judge host
  # shellcheck disable=SC2086
  expect 0 ' passed' "$lying" $command
done
expect 3 '^tests:1 passed:0 ' "$lying" run --case "$case" --case "$case" --case "$case" --backend ref-f32 -j 1 --judge host # no other case after it
# The run ends so though what another process has at that time is right, and says why at the end.
expect 3 '^fa-verify: a canary lives' "$lying" run --case "$case" --case '{"law":"repeat","seqlen_q":3}' --backend ref-f32 -j 2 --judge host
[ $bad -eq 0 ] && echo "three commands, each with an honest judge, a lying one, and none"
exit $bad
