#!/usr/bin/env bash
# fuzz/build.sh with stubs for the compiler, cmake and ldd: how it calls them, and what it leaves in $OUT.
set -euo pipefail
root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT
failed=0
fail() { echo "failed: $*" >&2; failed=1; }
mkdir "$work/bin"
stub() { # NAME, body on stdin
  { echo '#!/bin/bash' && cat; } >"$work/bin/$1"
  chmod +x "$work/bin/$1"
}
stub cc <<<"case \$1 in -print-file-name=*) if [ -e '$work/libcjson.a' ]; then echo '$work/libcjson.a'; else echo libcjson.a; fi ;; esac"
stub cmake <<EOF
echo "\$*" >>'$work/calls'
if [ "\$1" = --build ]; then for t in '$root'/fuzz/targets/*_fuzzer.c; do : >"\$2/\$(basename "\$t" .c)"; done; else
while [ "\$1" != -B ]; do shift; done; mkdir -p "\$2"; fi
EOF
stub strip <<<true
stub ldd <<EOF
printf '\tlinux-vdso.so.1 (0x1)\n\tlibc.so.6 => /lib/libc.so.6 (0x2)\n\tlibstdc++.so.6 => /lib/libstdc++.so.6 (0x3)\n'
if [ ! -e '$work/libcjson.a' ]; then printf '\tlibcjson.so.1 => $work/libcjson.so.1 (0x4)\n'; fi
EOF
echo shared >"$work/libcjson.so.1.7"
ln -s libcjson.so.1.7 "$work/libcjson.so.1"

build() { # SCENE
  rm -rf "$work/here" "$work/calls"
  mkdir "$work/here"
  (cd -- "$work/here" && PATH=$work/bin:$PATH CC=cc CXX=cc OUT=out "$root/fuzz/build.sh") >"$work/said" 2>&1 || fail "$1: exit $?: $(cat "$work/said")"
  # The folder was given relative to the caller's.
  for target in "$root"/fuzz/targets/*_fuzzer.c; do
    name=$(basename -- "$target" .c)
    for file in "$name" "$name.options" "${name}_seed_corpus.zip"; do
      if [ ! -e "$work/here/out/$file" ]; then fail "$1: no out/$file"; fi
    done
    if ! cmp -- "$root/fuzz/corpus/${name%_fuzzer}.zip" "$work/here/out/${name}_seed_corpus.zip"; then fail "$1: ${name}_seed_corpus.zip is not the corpus"; fi
  done
}

build 'shared cJSON'
if [ "$(cd -- "$work/here/out" && find lib -type f)" != lib/libcjson.so.1 ]; then fail "lib/ holds: $(find "$work/here/out/lib")"; fi
if ! grep -qF -- '-DCMAKE_BUILD_RPATH=$ORIGIN/lib' "$work/calls"; then fail "no rpath: $(cat "$work/calls")"; fi
if grep -q CJSON_LIBRARY "$work/calls"; then fail "a cJSON that is not there: $(cat "$work/calls")"; fi

: >"$work/libcjson.a"
build 'static cJSON'
if [ -e "$work/here/out/lib" ]; then fail "lib/ though nothing is needed: $(find "$work/here/out/lib")"; fi
if ! grep -qF -- "-DCJSON_LIBRARY=$work/libcjson.a" "$work/calls"; then fail "the static cJSON is not asked for: $(cat "$work/calls")"; fi
exit $failed
