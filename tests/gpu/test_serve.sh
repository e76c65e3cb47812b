#!/usr/bin/env bash
# serve: a backend in a process of its own gets the verdicts that it has in the judge's, right or wrong; and what a child
# must answer to requests that make no sense.
# usage: test_serve.sh FA-VERIFY CC (from the top of the source tree)
set -uo pipefail
command -v python3 >/dev/null || { echo 'skipped: no python3'; exit 77; }
verify=$(realpath "$1") cc=$2 root=$PWD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
. "$root/tests/support/cli_check.sh"
. "$root/tests/support/share.sh"
# Where lists are tried in shares, a day has a quarter of the two longest.
quarter=$([ "${FA_TEST_SHARE:-1}" -lt 4 ] || FA_TEST_SHARE=4; share_shard)

judge() { # BACKEND REPORT ARGUMENTS...
  run "$verify" run --jobs 1 --no-progress --no-explain --color never -q --backend "$1" --report "$2" "${@:3}"
}
served() { printf 'exec:%q serve --backend %q' "$verify" "$1"; }
same_as_served() { # BACKEND ARGUMENTS...
  judge "$1" here.json "${@:2}"
  local here=$rc
  judge "$(served "$1")" there.json "${@:2}"
  expect exits $here
  run python3 "$root/tests/gpu/same_verdicts.py" here.json there.json
  expect exits 0
}
build() { # NAME FLAGS...: the example as NAME.so
  "$cc" -std=gnu11 -O1 -shared -fPIC "-I$root" "${@:3}" -o "$1.so" "$root/tests/exec/$2" -lm || exit 1
}

# ---- a plugin: right, wrong, with conventions of its own, of version 1 ----
for file in causal window gqa offset; do
  "$verify" list cases --cases "$root/cases/$file.json" | sed 's/"dtype":"b*f16"/"dtype":"f32"/' >"$file.json"
done
build good example_plugin.c
build bad example_plugin.c -DEXAMPLE_FAULT=1
build "it's base 2" example_plugin.c -DEXAMPLE_LSE_FACTOR=1/0.6931471805599453 '-DEXAMPLE_MORE="\"lse\": {\"base\": \"2\"}"'
build silent example_plugin.c -DEXAMPLE_LSE_FACTOR=1/0.6931471805599453 '-DEXAMPLE_MORE="\"empty_o\": \"0\""'
build o_only example_plugin.c '-DEXAMPLE_MORE="\"outputs\": [\"o\"]"'
build old example_plugin_v1.c
for file in causal window gqa offset; do
  part=(--cases "$file.json")
  case $file in causal | window) part+=(--shard "$quarter") ;; esac
  same_as_served plugin:./good.so "${part[@]}"
  same_as_served plugin:./bad.so "${part[@]}"
done
for plugin in "it's base 2" silent o_only old; do
  same_as_served "plugin:./$plugin.so" --cases gqa.json
done
# what it prints is not taken for answers, and what it says in no encoding is not taken for nonsense
cat >loud.c <<'END'
#include "gpu/plugin.h"
#include <stdio.h>
static int run(void *self, const fa_plugin_problem *p, const fa_plugin_tensors *t, fa_plugin_run *run) {
  (void)self, (void)p, (void)t;
  printf("computing\n"), fflush(stdout);
  snprintf(run->message, sizeof run->message, "not \xff\xfe today");
  return FA_PLUGIN_REFUSED;
}
const fa_plugin fa_plugin_table = {.version = FA_PLUGIN_VERSION, .size = sizeof(fa_plugin), .name = "loud", .run = run};
END
"$cc" -shared -fPIC "-I$root" -o loud.so loud.c || exit 1
run "$verify" run --jobs 1 --no-progress --no-probe --backend "$(served plugin:./loud.so)" --case '{"name":"c","seqlen_q":9}'
expect exits 1
expect says_failure 'refused: not \?\? today'
expect complains computing
# memory of the judge that it must not touch
build reach example_plugin.c '-DEXAMPLE_FAULT=0*((float*)t->q.data)[1]++'
judge "$(served plugin:./reach.so)" there.json --case '{"name":"c","dtype":"f32","backward":false,"mask":{"type":"causal"},"seqlen_q":9}'
expect exits 1
expect says_line '^INPUT_MODIFIED c '

# ---- backends of this program ----
for file in causal alibi crossattn dropout edge entries flex gqa kvcache memeff mixed offset softcap varlen; do
  same_as_served ref-f32 --cases "$root/cases/$file.json" --shard 0/8
done
same_as_served host --cases "$root/cases/varlen.json" "$root/cases/kvcache.json" --shard 0/8
far='{"name":"far","dtype":"f16","seqlen_q":2,"seqlen_k":3,"head_dim":8,"batch":2,"strides":{"k":{"gap":[0,0,1200000000]}}}'
same_as_served ref-f32 --case "$far"
same_as_served host --case '{"name":"packed","seqlen_q":1,"head_dim":64,"heads_q":2,"packed":"qkv"}'

# ---- what cannot be served ----
run "$verify" serve
expect exits 2
expect complains 'one --backend is needed'
run "$verify" serve --backend exec:true
expect exits 2
expect complains 'a process of its own already'
run "$verify" serve --backend nobody
expect exits 2
run "$verify" serve --backend plugin:./missing.so
expect exits 2
expect complains 'no such file'
judge "$(served plugin:./missing.so)" there.json --case '{}'
expect exits 2
expect complains 'no such file'

# ---- requests ----
ask() { # LINE...: the answers
  what="requests: $*"
  printf '%s\n' "$@" | "$verify" serve --backend ref-f32 >out 2>err
  rc=$?
}
run_of='"fa_exec":2,"type":"run","id":7,"passes":["forward"],"threads":1,"case":{"dtype":"f32","seqlen_q":2,"head_dim":8}'
tensor='{"dtype":"f32","shape":[1,2,1,8],"strides":[16,8,8,1],"offset":65536,"access":"read"}'
truncate -s 1M region
ask '{"fa_exec":1,"type":"hello","versions":[1,2],"id":1}'
expect exits 0
expect says '"fa_exec":2'
expect says '"id":1'
ask 'nonsense' '[]' '{"type":"dance","id":3}' '{"type":"run","id":4}'
expect exits 0
expect lines '"state":"error"' 4
expect says_line 'hello, supports or run.*"id":3'
ask "{$run_of,\"memory\":\"nowhere\",\"bytes\":4096,\"tensors\":{}}"
expect says_line '"state":"error","text":"memory nowhere: .*"id":7'
ask "{$run_of,\"memory\":\"region\",\"bytes\":10000000,\"tensors\":{}}"
expect says 'has less than 10000000 bytes'
ask "{$run_of,\"memory\":\"region\",\"bytes\":1e300,\"tensors\":{}}"
expect says 'must be a number of bytes'
inside() { # CHANGE: of an entry by sed
  ask "{$run_of,\"memory\":\"region\",\"bytes\":1048576,\"tensors\":{\"q\":$(sed "$1" <<<"$tensor")}}"
}
for change in s/65536/0/ s/65536/1000000/ 's/\[16,/[9007199254740992,/;s/\[1,2/[9007199254740992,2/' 's/"offset":65536/"offset":1e18/' 's/f32/f31/' 's/\[1,2,1,8\]/[1,2,1]/' 's/\[1,2,1,8\]/[1,2,1,1,1,8]/' 's/\[16/[-16/'; do
  inside "$change"
  expect exits 0
  expect says_line '"state":"error","text":"tensor q (must have|does not lie)'
done
done_checking
