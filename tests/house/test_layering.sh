#!/usr/bin/env bash
# The folders only include downwards: the oracle (ref/) and the subjects (gpu/) never include each other, and
# nothing includes a folder above. Reads every include of every source; then plants each kind of violation in a
# copy and expects it to be reported.
# usage: test_layering.sh [ROOT]
set -euo pipefail
root=${1:-$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd)}

# Folder -> allowed beginnings of its includes (extended regular expression).
declare -A may=(
  [cases]='cases/'
  [ref]='(cases|ref)/'
  [gpu]='(cases|gpu)/'
  [report]='(cases/|report/|ref/compare/verdict\.h$)'
  [fuzz]='(cases|ref|gpu|report|fuzz)/'
  [tests]='(cases|ref|gpu|report|fuzz|tests)/'
)
# The same rule for the linker.
declare -A may_link=([cases]='' [ref]='fa_cases' [gpu]='fa_cases' [report]='fa_cases fa_ref')

# Prints "file: include" for every violation under $1.
violations() {
  local tree=$1 folder file name library
  for folder in "${!may[@]}"; do
    [ -d "$tree/$folder" ] || continue
    while IFS=: read -r file name; do
      [[ $name =~ ^${may[$folder]} ]] || printf '%s: %s\n' "$file" "$name"
    done < <(includes "$tree" "$folder")
  done
  for folder in "${!may_link[@]}"; do
    [ -e "$tree/$folder/CMakeLists.txt" ] || continue
    while read -r library; do
      case " ${may_link[$folder]} fa_flags fa_$folder " in
      *" $library "*) ;;
      *) printf '%s/CMakeLists.txt: %s\n' "$folder" "$library" ;;
      esac
    done < <(grep -v 'add_library\|add_executable' "$tree/$folder/CMakeLists.txt" | grep -oE '\bfa_(cases|ref|gpu|report|fuzz)\b' || true)
  done
}

# Prints "file:included" for quoted includes, and for angled ones that name a folder of ours.
# shellcheck disable=SC2015 # grep finding nothing is no error
includes() { # TREE FOLDER
  (cd -- "$1" && grep -rnE '^[[:space:]]*#[[:space:]]*include' --include='*.c' --include='*.h' --include='*.cu' \
    --include='*.cuh' --include='*.cpp' --include='*.inc' -- "$2" || true) |
    sed -nE -e 's/^([^:]*):[0-9]+:[^"<]*"([^"]*)".*/\1:\2/p' \
      -e 's/^([^:]*):[0-9]+:[^"<]*<((cases|ref|gpu|report|fuzz|tests)\/[^>]*)>.*/\1:\2/p'
}

failed=0
n_includes=0
for folder in "${!may[@]}"; do n_includes=$((n_includes + $(includes "$root" "$folder" | wc -l))); done
if [ "$n_includes" -lt 20 ]; then
  echo "only $n_includes includes found under $root: this test looks at nothing"
  failed=1
fi
found=$(violations "$root")
if [ -n "$found" ]; then
  printf 'forbidden includes:\n%s\n' "$found"
  failed=1
fi

plant() { # FILE CONTENT: must be reported
  local tree
  tree=$(mktemp -d)
  mkdir -p "$tree/$(dirname "$1")"
  printf '%s\n' "$2" >"$tree/$1"
  if [ -z "$(violations "$tree")" ]; then
    printf 'not reported: %s in %s\n' "$2" "$1"
    failed=1
  fi
  rm -rf "$tree"
}
plant ref/a.c '#include "gpu/backend.h"'
plant gpu/a.c '#include "ref/reference.h"'
plant gpu/kernels/a.cu '#  include <ref/compare/verdict.h>'
plant gpu/simt/a.cpp '	#include "fuzz/one/run_case.h"'
plant cases/a.h '#include "ref/compare/verdict.h"'
plant report/a.c '#include "gpu/backend.h"'
plant report/a.c '#include "ref/reference.h"'
plant report/a.c '#include "ref/compare/verdict.h.h"'
plant fuzz/a.c '#include "tests/support/check.h"'
plant cases/a.c '#include "case.h"'
plant gpu/kernels/a.h '#include "../../ref/compare.h"'
plant gpu/CMakeLists.txt 'target_link_libraries(fa_gpu PUBLIC fa_cases fa_ref)'
plant ref/CMakeLists.txt 'target_link_libraries(fa_ref PUBLIC fa_gpu)'

[ $failed = 0 ] && echo "$n_includes includes, all downwards"
exit $failed
