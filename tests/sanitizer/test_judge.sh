#!/usr/bin/env bash
# judge.sh with stand-ins for compute-sanitizer, nvcc and a program that has a GPU: it fails where it has to.
# usage: test_judge.sh     from the top of the source tree
set -uo pipefail
here=$(dirname "$0")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat >"$work/compute-sanitizer" <<'EOF'
#!/bin/bash
[ "$1" = --help ] && echo --dump-kernel-launches && exit
tool=$2 log=
while [[ $1 == --* ]]; do
  [ "$1" = --log-file ] && log=$2
  [ "$1" = --dump-kernel-launches ] && shift || shift 2
done
if [[ $1 == */planted ]]; then own=${PLANTED:-1} usual=1; else own=${REPORTS:-0} usual=0; fi
[ "$tool" = "${TOOL:-$tool}" ] && reports=$own || reports=$usual
echo "========= ERROR SUMMARY: $reports errors" >"$log"
sed -n 's/^FA_JUDGE_KERNEL(\([a-z0-9_]*\),.*/========= Launch: fa_judge_entry_\1, 1/p' ref/cuda/kernels.def | grep -v "_${MISSING:-none}," >>"$log"
"$@" && [ "$reports" = 0 ] || exit 9
EOF
cat >"$work/nvcc" <<'EOF'
#!/bin/bash
while [ "$1" != -o ]; do shift; done
printf '#!/bin/sh\n' >"$2" && chmod +x "$2"
EOF
cat >"$work/verify" <<'EOF'
#!/bin/bash
[ "$1" = list ] && echo 'cuda  its kernels' && exit
echo 'tests:1 passed:1 failed:0 skipped:0 error:0'
exit "${CODE:-0}"
EOF
chmod +x "$work"/*
wrong=0
expect() { # EXIT TEXT VARIABLE=VALUE...
  local code=$1 text=$2
  shift 2
  env "$@" PATH="$work:$PATH" bash "$here/judge.sh" "$work/verify" >"$work/out" 2>&1
  local got=$?
  if [ $got != "$code" ] || ! grep -q "$text" "$work/out"; then
    echo "$* exit $got, not $code with '$text':" && cat "$work/out" && wrong=1
  fi
}
expect 0 'synccheck: tests:1 passed:1 .* SUMMARY: 0 errors'
expect 1 'FAILED: racecheck, exit status 9' REPORTS=1 TOOL=racecheck
expect 1 'FAILED: initcheck does not see the planted fault' PLANTED=0 TOOL=initcheck
expect 1 'FAILED: steepen was not launched' MISSING=steepen
expect 1 'FAILED: memcheck, exit status 9' CODE=1
expect 0 'racecheck: tests:1' JUDGE_TOOLS=racecheck JUDGE_SHARD=0/4 REPORTS=1 TOOL=memcheck
expect 1 'FAILED: racecheck, exit status 9' JUDGE_TOOLS='memcheck racecheck' REPORTS=1 TOOL=racecheck
expect 2 'JUDGE_TOOLS: race; known are' JUDGE_TOOLS=race
expect 2 'JUDGE_TOOLS: there is none' JUDGE_TOOLS=' '
expect 1 'FAILED: steepen was not launched' MISSING=steepen JUDGE_TOOLS=memcheck
exit $wrong
