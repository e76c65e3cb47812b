#!/usr/bin/env bash
# Builds the fuzz targets as OSS-Fuzz and ClusterFuzzLite ask for it: with $CC $CXX $CFLAGS $CXXFLAGS, linked with $LIB_FUZZING_ENGINE,
# into $OUT: <name>_fuzzer, its .options, .dict and _seed_corpus.zip, and lib/ with libraries that a machine which only runs them may
# lack. By hand: OUT=/tmp/out fuzz/build.sh
# Without a sanitizer in $CFLAGS the kernels run a quarter faster; the tests replay the corpus under sanitizers anyway.
set -euo pipefail
unset CDPATH
root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
OUT=${OUT:?where the targets shall go}
WORK=${WORK:-$OUT/work}
export CC=${CC:-clang} CXX=${CXX:-clang++}
mkdir -p -- "$OUT" "$WORK"
OUT=$(cd -- "$OUT" && pwd) WORK=$(cd -- "$WORK" && pwd)
# Targets do not run where they are built, and cJSON may be missing there: link a static one if there is one (the
# compiler prints a path if it finds the file, otherwise the bare name); else copy the shared one into lib/.
cjson=()
static=$("$CC" -print-file-name=libcjson.a)
case $static in */*) cjson=(-DCJSON_LIBRARY="$static") ;; esac
generator=()
if command -v ninja >/dev/null; then generator=(-G Ninja); fi
# fuzzers.cmake removes the sanitizers in $CFLAGS from trusted code.
cmake -S "$root" -B "$WORK/build" ${generator[@]+"${generator[@]}"} -DCMAKE_BUILD_TYPE=Release -DFA_FUZZ=ON -DFA_CUDA=OFF -DFA_TESTS=OFF -DFA_WERROR=OFF \
  -DCMAKE_C_COMPILER="$CC" -DCMAKE_CXX_COMPILER="$CXX" -DFA_FUZZ_ENGINE="${LIB_FUZZING_ENGINE:--fsanitize=fuzzer}" \
  -DCMAKE_BUILD_RPATH='$ORIGIN/lib' ${cjson[@]+"${cjson[@]}"}
cmake --build "$WORK/build" --target fuzzers --parallel "$(nproc)"
for target in "$root"/fuzz/targets/*_fuzzer.c; do
  name=$(basename -- "$target" .c)
  cp -- "$WORK/build/$name" "$OUT/"
  # Five times as large otherwise; symbols stay, for stack traces. Who gives flags has said how much of that is wanted.
  if [ -z "${CFLAGS:-}" ]; then strip --strip-debug -- "$OUT/$name"; fi
  # All libraries except those of the system or the compiler.
  ldd "$OUT/$name" | awk '$2 == "=>" && $3 ~ /^\// && $1 !~ /^(libc|libm|libdl|librt|libpthread|libstdc\+\+|libc\+\+|libc\+\+abi|libgcc_s)\.so/ {print $3}' |
    while IFS= read -r library; do
      mkdir -p -- "$OUT/lib"
      case $library in "$OUT/lib/"*) ;; *) cp -L -- "$library" "$OUT/lib/" ;; esac
    done
  for extra in options dict; do
    if [ -e "$root/fuzz/targets/$name.$extra" ]; then cp -- "$root/fuzz/targets/$name.$extra" "$OUT/"; fi
  done
  cp -- "$root/fuzz/corpus/${name%_fuzzer}.zip" "$OUT/${name}_seed_corpus.zip"
done
