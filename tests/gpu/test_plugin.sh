#!/usr/bin/env bash
# Backends that load the code they run: a plugin is judged like any other subject, and one that does not fit is
# rejected.
# usage: test_plugin.sh FA-VERIFY CC (from the top of the source tree)
set -uo pipefail
verify=$(realpath "$1") cc=$2 root=$PWD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
failed=0 n=0

build() { # NAME FLAGS...: tests/exec/example_plugin.c as NAME.so
  "$cc" -std=gnu11 -O1 -Wall -Wextra -Werror -shared -fPIC "-I$root" "${@:2}" -o "$1.so" "$root/tests/exec/example_plugin.c" -lm ||
    { echo "$1 does not compile"; exit 1; }
}
expect() { # EXIT-CODE TEXT ARGUMENTS...
  local code=$1 text=$2 rc
  shift 2
  n=$((n + 1))
  "$verify" run --jobs 1 --no-progress --color never "$@" >out 2>&1 </dev/null
  rc=$?
  if [ $rc != "$code" ] || ! grep -q -e "$text" out; then
    printf 'exit %d instead of %d, or no "%s": %s\n' $rc "$code" "$text" "$*"
    sed 's/^/  /' out | head -20
    failed=1
  fi
}
case_of() { printf '{"name":"c","family":"flash","dtype":"f32","seqlen_q":70,"seqlen_k":90,"heads_q":4,"heads_kv":2,"backward":false%s}' "$1"; }

build good
expect 0 'passed:1' --backend plugin:./good.so --case "$(case_of '')"
expect 0 'passed:1' --backend plugin:good.so --case "$(case_of ',"mask":{"type":"causal"}')"
expect 0 'passed:1' --backend plugin:./good.so --case "$(case_of ',"mask":{"type":"window","left":3,"right":2},"layout":"bhsd","strides":{"o":{"gap":[8,8,8]}}')"
expect 0 'backward not judged' --backend plugin:./good.so -v --case '{"name":"b","family":"flash","dtype":"f32","seqlen_q":9}'
expect 4 'it takes f32 only' --backend plugin:./good.so -v --case '{"name":"h","family":"flash","seqlen_q":9}'
expect 4 'does little' --backend plugin:./good.so -v --case "$(case_of ',"softcap":2.0')"
# one key too many
build bad -DEXAMPLE_FAULT=1
expect 0 'passed:1' --backend plugin:./bad.so --case "$(case_of '')"
expect 1 '^FAIL c .*--backend plugin:./bad.so --case' --backend plugin:./bad.so --case "$(case_of ',"mask":{"type":"causal"}')"
# what does not fit is invalid input
build old -DEXAMPLE_VERSION=7
expect 2 'version 7' --backend plugin:./old.so --case "$(case_of '')"
build nameless -Dfa_plugin_table=something_else
expect 2 'exports no fa_plugin_table' --backend plugin:./nameless.so --case "$(case_of '')"
echo 'not a library' >text.so
expect 2 'cannot be loaded' --backend plugin:./text.so --case "$(case_of '')"
expect 2 'no such file' --backend plugin:./missing.so --case "$(case_of '')"
expect 2 'plugin:PATH.so' --backend plugin --case "$(case_of '')"
expect 2 'list mutants' --backend mutant --case "$(case_of '')"
expect 2 'there is no .*/nobody.so' --backend mutant:nobody --case "$(case_of '')"
FA_MUTANT_DIR=$work expect 2 'exports no fa_mutant_table' --backend mutant:good --case "$(case_of '')"
printf 'good\tmask\tnothing\tan example\nabsent\tmask\tnothing\tanother\n' >list.tsv
FA_MUTANT_DIR=$work "$verify" list mutants >out
grep -q '^good .*an example$' out && grep -q '^absent .*(not built)$' out || { echo "list mutants:"; cat out; failed=1; }
[ $failed = 0 ] && echo "$n runs"
exit $failed
