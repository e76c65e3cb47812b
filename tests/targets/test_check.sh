#!/usr/bin/env bash
# fuzz/oss-fuzz/check.sh on folders that stand for what fuzz/build.sh leaves: it is silent on a good one and finds each fault. Then the project
# folders of ClusterFuzzLite and OSS-Fuzz: their build.sh is fuzz/build.sh.
# usage: test_check.sh CC (from the top of the source tree)
set -uo pipefail
here=$(realpath "$(dirname "$0")") root=$PWD cc=$1
command -v python3 >/dev/null || { echo "skipped: no python3"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
. "$here/../support/cli_check.sh"

# A target that does what libFuzzer's would say, whatever it is given.
cat >target.c <<'E2'
#include <stdio.h>
#include <string.h>
#ifndef STATUS
#define STATUS 0
#endif
#ifndef SILENT
#define SILENT 0
#endif
void __asan_init(void) {}
void from_library(void);
int main(int argc, char **argv) {
  for (int i = 1; i < argc; ++i)
    if (!SILENT && !strncmp(argv[i], "-runs=", 6)) fprintf(stderr, "Done %s runs in 0 second(s)\n", argv[i] + 6);
#ifdef LIBRARY
  from_library();
#endif
  return STATUS;
}
E2
echo 'void from_library(void) {}' >library.c
compile() { "$cc" -o built/a_fuzzer target.c "$@" || exit 1; }
"$cc" -shared -fPIC -o libneeded.so library.c || exit 1
good() { # a folder without a fault
  rm -rf built
  mkdir built
  compile "$@"
  printf '[libfuzzer]\ndict = a_fuzzer.dict\n' >built/a_fuzzer.options
  echo '"word"' >built/a_fuzzer.dict
  python3 -c 'import zipfile; zipfile.ZipFile("built/a_fuzzer_seed_corpus.zip", "w").writestr("one", b"1")'
}
check() { run bash "$root/fuzz/oss-fuzz/check.sh" built "${@:-address}"; }
finds() { # TEXT
  check
  expect exits 1
  expect says "$1"
}

good
check
expect exits 0
expect says "1 targets: 100 inputs each"
good "-Wl,-rpath,$work" -DLIBRARY libneeded.so
finds "a_fuzzer: libneeded.so is taken from $work/libneeded.so, not from lib/"
good '-Wl,-rpath,$ORIGIN/lib' -DLIBRARY libneeded.so
finds "a_fuzzer: libneeded.so is not found"
mkdir built/lib && cp libneeded.so built/lib/
check
expect exits 0
good -DSTATUS=3
finds "a_fuzzer: ends with 3"
good -DSILENT=1
finds "a_fuzzer: did not execute 100 inputs"
good -D__asan_init=other
finds "a_fuzzer: was built without AddressSanitizer"
check none
expect exits 0
for file in options dict; do
  good
  rm "built/a_fuzzer.$file"
  finds "a_fuzzer: no a_fuzzer.$file"
done
good
rm built/a_fuzzer_seed_corpus.zip
finds "a_fuzzer: no a_fuzzer_seed_corpus.zip"
good
python3 -c 'import zipfile; zipfile.ZipFile("built/a_fuzzer_seed_corpus.zip", "w").close()'
finds "a_fuzzer: its corpus cannot be read"
good
touch built/a_fuzzer.o
finds "a_fuzzer.o: does not belong there"
good
chmod -x built/a_fuzzer
finds "a_fuzzer: is no program"
rm built/a_fuzzer
finds "no targets in"

# ---- the folders ----
mkdir -p src/fa-verify/fuzz
printf '#!/bin/bash\necho "built in $PWD with $*" >"$OUT/said"\n' >src/fa-verify/fuzz/build.sh
chmod +x src/fa-verify/fuzz/build.sh
for folder in .clusterfuzzlite fuzz/oss-fuzz; do
  run env "SRC=$work/src" "OUT=$work" bash "$root/$folder/build.sh"
  expect exits 0
  expect grep -q '^built in .* with $' said
  rm -f said
  for package in libopenblas-dev libcjson-dev; do expect grep -q " $package" "$root/$folder/Dockerfile"; done
  expect grep -q '^language: c' "$root/$folder/project.yaml"
done
done_checking
