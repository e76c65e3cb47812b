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

build() { # NAME FLAGS...: tests/exec/$source as NAME.so
  "$cc" -std=gnu11 -O1 -Wall -Wextra -Werror -shared -fPIC "-I$root" "${@:2}" -o "$1.so" "$root/tests/exec/$source" -lm ||
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

causal=$(case_of ',"mask":{"type":"causal"}')

# Both versions of the interface.
for source in example_plugin.c example_plugin_v1.c; do
  build good
  expect 0 'passed:1' --backend plugin:./good.so --case "$(case_of '')"
  expect 0 'passed:1' --backend plugin:good.so --case "$causal"
  expect 0 'passed:1' --backend plugin:./good.so --case "$(case_of ',"mask":{"type":"window","left":3,"right":2},"layout":"bhsd","strides":{"o":{"gap":[8,8,8]}}')"
  expect 0 'backward not judged' --backend plugin:./good.so -v --case '{"name":"b","family":"flash","dtype":"f32","seqlen_q":9}'
  # one key too many
  build bad -DEXAMPLE_FAULT=1
  expect 0 'passed:1' --backend plugin:./bad.so --case "$(case_of '')"
  expect 1 '^    repro: .*--backend plugin:./bad.so --case' --backend plugin:./bad.so --case "$causal"
  build other -DEXAMPLE_VERSION=7
  expect 2 'version 7 of the plugin interface; this program has 1 to 2' --backend plugin:./other.so --case "$causal"
  build third -DEXAMPLE_VERSION=3
  expect 2 'version 3 of the plugin interface' --backend plugin:./third.so --case "$causal"
  build nameless -Dfa_plugin_table=something_else
  expect 2 'exports no fa_plugin_table' --backend plugin:./nameless.so --case "$(case_of '')"
done
# Version 1 has no captured buffers, and what came after it is not asked of it.
expect 4 'it takes f32 only' --backend plugin:./good.so -v --case '{"name":"h","family":"flash","seqlen_q":9}'
expect 4 'does little' --backend plugin:./good.so -v --case "$(case_of ',"softcap":2.0')"
buffers='"family":"flex","dtype":"f32","seqlen_q":9,"score_mod":"score + w[h]","buffers":{"w":{"shape":[1]}}'
expect 4 'version 1 of the plugin interface has no captured buffers' --backend plugin:./good.so -v --case "{\"name\":\"w\",$buffers}"

# What version 2 says about itself.
source=example_plugin.c
build good
expect 0 'kernel example_rows: passed:1' --backend plugin:./good.so -v --case "$causal"
expect 4 'it has no f16' --backend plugin:./good.so -v --case '{"name":"h","family":"flash","seqlen_q":9}'
expect 4 'it has no softcap' --backend plugin:./good.so -v --case "$(case_of ',"softcap":2.0')"
expect 4 'weights are for 100000 keys' --backend plugin:./good.so -v --case '{"name":"l","family":"flash","dtype":"f32","seqlen_q":1,"seqlen_k":100001}'
# without an LSE; and with one that it does not write
build o_only -DEXAMPLE_MORE='"\"outputs\": [\"o\"]"'
expect 0 'not delivered, not judged: lse' --backend plugin:./o_only.so -v --case "$causal"
expect 0 'passed:1' --backend plugin:./o_only.so --report o_only.json --case "$causal"
grep -q '"not_delivered":\["lse"\]' o_only.json || { echo "the report does not tell what was not delivered"; failed=1; }
build nothing -DEXAMPLE_MORE='"\"outputs\": [\"dq\"]"'
expect 4 'delivers none of this call' --backend plugin:./nothing.so -v --case "$causal"
build wrong -DEXAMPLE_FAULT=1 -DEXAMPLE_MORE='"\"outputs\": [\"o\"]"'
expect 1 '^FAIL c ' --backend plugin:./wrong.so --keep kept --case "$causal"
expect_check() { "$verify" check --color never kept/*.safetensors >out 2>&1; [ $? = 1 ] && grep -q '^FAIL' out || { echo "check of a dump without lse:"; cat out; failed=1; }; }
expect_check
# an LSE in base 2: wrong, unless declared
build base2 -DEXAMPLE_LSE_FACTOR=1.4426950408889634
expect 1 '^    lse: 280 of 280 bad' --no-probe --backend plugin:./base2.so --case "$causal"
expect 1 'LSE in base 2' --no-probe --backend plugin:./base2.so --case "$causal"
expect 0 'probed: plugin:./base2.so, f32: LSE base 2' --backend plugin:./base2.so --case "$causal"
build declared -DEXAMPLE_LSE_FACTOR=1.4426950408889634 -DEXAMPLE_MORE='"\"lse\": {\"base\": \"2\"}"'
expect 0 'passed:1' --backend plugin:./declared.so --case "$causal"
expect 0 'passed:1' --backend plugin:./declared.so --case "${causal/70/95}" # five rows see no key
build false -DEXAMPLE_MORE='"\"lse\": {\"base\": \"2\"}"'
expect 1 'lse: 280 of 280 bad' --backend plugin:./false.so --case "$causal"
build unscaled -DEXAMPLE_LSE_FACTOR=8 -DEXAMPLE_MORE='"\"lse\": {\"scaled\": false}"'
expect 0 'passed:1' --backend plugin:./unscaled.so --case "$causal"
# a hello that makes no sense
build key -DEXAMPLE_MORE='"\"output\": [\"o\"]"'
expect 2 'key.so: "output"' --backend plugin:./key.so --case "$causal"
build word -DEXAMPLE_MORE='"\"outputs\": [\"lsd\"]"'
expect 2 '"outputs": "lsd" is none of o, lse' --backend plugin:./word.so --case "$causal"
build text -DEXAMPLE_MORE='"nonsense"'
expect 2 'text.so' --backend plugin:./text.so --case "$causal"
# tables of other sizes: a longer one is of a later header, a shorter one lacks what is needed
build longer -DEXAMPLE_SIZE='sizeof(fa_plugin) + 8'
expect 0 'passed:1' --backend plugin:./longer.so --case "$causal"
build shorter -DEXAMPLE_SIZE='sizeof(fa_plugin) - 8'
expect 2 'bytes; version 2 has at least' --backend plugin:./shorter.so --case "$causal"

# What is no plugin at all.
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
