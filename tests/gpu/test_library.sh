#!/usr/bin/env bash
# gpu/fa.h as other programs get it: installed; the program of docs/reference/c-library.md built from it word for word, against the
# static and the shared library, and run (without a GPU it says so in the interface's words); nothing but the interface exported, nothing else needed.
# usage: test_library.sh BUILD-FOLDER CC CXX LIBDIR CUDA-INCLUDE LIBCUDART [FLAG...]   (empty: not found)
set -uo pipefail
build=$1 cc=$2 cxx=$3 libdir=$4 cuda=$5 cudart=$6
shift 6
flags=(-Wall -Wextra -Werror) may_need='libc|libm|libdl|libpthread|ld-linux.*'
for flag; do [ -n "$flag" ] && flags+=("$flag"); done
if [[ "${flags[*]}" == *-fsanitize* ]]; then may_need+='|libasan|libubsan|libstdc\+\+|libgcc_s'; fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
check() { # WHAT COMMAND...
  local what=$1
  shift
  "$@" >"$work/said" 2>&1 || { failed=1; printf '%s: %s\n%s\n' "$what" "$*" "$(head -c 1500 "$work/said")"; }
}

cmake --install "$build" --component library --prefix "$work/at" >"$work/said" || { cat "$work/said"; exit 1; }
include=$work/at/include/fa-verify lib=$work/at/$libdir
check "the header alone, as C" "$cc" -std=c11 -pedantic "${flags[@]}" -fsyntax-only -x c -I"$include" - <<<'#include "gpu/fa.h"'
check "the header alone, as C++" "$cxx" -std=c++17 -pedantic "${flags[@]}" -fsyntax-only -x c++ -I"$include" - <<<'#include "gpu/fa.h"'

check "headers by the paths of version 0.1" "$cc" -std=c11 -pedantic "${flags[@]}" -fsyntax-only -x c -I"$include" - <<<'#include "cases/dtype.h"
#include "cases/status.h"
fa_dtype dtype; fa_status status;'
# what the header declares is what the library exports
grep -ohE '\bfa_[a-z_]+\(' "$include/gpu/fa.h" | tr -d '(' | sort -u >"$work/declared"
nm -D --defined-only "$lib/libfa_attention.so" | awk '$2 ~ /[TDBR]/ { print $3 }' | grep -v '^_\|^__asan\|^__ubsan' | sort -u >"$work/exported"
check "exported is what is declared" diff "$work/declared" "$work/exported"
readelf -d "$lib/libfa_attention.so" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' >"$work/needed"
check "libraries that the shared one needs" sh -c "! grep -vE '^($may_need)\.so' '$work/needed'"

# the documents' program, and README.md's excerpt, of which every line must be one of the program's
page=docs/reference/c-library.md
program_under() { sed -n "/^## $2\$/,/^## /p" "$1" | sed -n '/^```c$/,/^```$/p' | sed '1d;$d'; } # FILE HEADING
program_under $page "A program" >"$work/attention.c"
[ "$(wc -l <"$work/attention.c")" -gt 20 ] || { echo "$page has no program under \"A program\""; exit 1; }
program_under README.md "Use the kernels in a C program" | sed 's/^ *//' | grep -v '^$' >"$work/excerpt"
[ "$(wc -l <"$work/excerpt")" -gt 5 ] || { echo "README.md has no excerpt under \"Use the kernels in a C program\""; exit 1; }
sed 's/^ *//' "$work/attention.c" >"$work/lines"
check "README.md's excerpt is of $page" sh -c "! grep -vxF -f '$work/lines' '$work/excerpt'"
if [ -z "$cuda" ] || [ -z "$cudart" ]; then
  [ $failed = 0 ] && echo "skipped: no CUDA runtime library to build $page's program with"
  [ $failed = 0 ] && exit 77
  exit 1
fi
program() { # NAME LIBRARY-ARGUMENTS...: builds and runs
  local name=$1
  shift
  check "building against the $name library" "$cc" "${flags[@]}" -I"$include" -isystem "$cuda" "$work/attention.c" "$@" \
    "$cudart" -Wl,-rpath,"$(dirname "$cudart")" -ldl -lpthread -lm -o "$work/$name"
  ASAN_OPTIONS=detect_leaks=0:protect_shadow_gap=0 "$work/$name" >"$work/out" 2>"$work/err"
  local rc=$?
  if [ $rc = 0 ] && grep -qx 'o\[0\] = 0x3c00' "$work/out"; then
    echo "$name: ran on a GPU: $(head -n 1 "$work/out")"
  elif [ $rc = 1 ] && [ ! -s "$work/out" ] &&
    grep -qE '^fa_describe: (no CUDA driver|the CUDA driver finds no device|cuInit|no CUDA context|this build)' "$work/err"; then
    echo "$name: $(cat "$work/err")"
  else
    failed=1
    printf '%s: exit %s\nstdout: %s\nstderr: %s\n' "$name" "$rc" "$(cat "$work/out")" "$(head -c 1000 "$work/err")"
  fi
}
program static "$lib/libfa_attention.a"
program shared -L"$lib" -lfa_attention -Wl,-rpath,"$lib"
if command -v pkg-config >/dev/null; then
  export PKG_CONFIG_PATH=$lib/pkgconfig
  check "pkg-config" pkg-config --exists fa_attention
  read -ra found < <(pkg-config --cflags --libs fa_attention)
  check "building with what pkg-config says" "$cc" "${flags[@]}" -isystem "$cuda" "$work/attention.c" "${found[@]}" "$cudart" -o "$work/found"
fi
exit $failed
