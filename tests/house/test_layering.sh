#!/usr/bin/env bash
# Folders only include downwards (layers.txt has a row for each) and are small enough to read: at most 30 sources, none of
# which repeats its folder's name. Reads every include of every source; then plants each kind of violation in a separate
# tree and expects it to be reported.
# usage: test_layering.sh [ROOT]
set -euo pipefail
here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
root=${1:-$here/../..}
layers=$here/layers.txt
most_sources=30

# What a folder's library may link: the first layers' rule for the linker.
declare -A may_link=([cases]='' [ref]='fa_cases' [gpu]='fa_cases' [report]='fa_cases fa_ref')

# shellcheck disable=SC2015 # finding nothing is no error
# Sources below TREE, one per line; the suffixes say which files count.
sources() { # TREE [MORE SUFFIXES...]
  local tree=$1 suffix
  local -a names=(-name '*.c')
  for suffix in h cpp cu cuh def "${@:2}"; do names+=(-o -name "*.$suffix"); done
  (cd -- "$tree" && find cases ref gpu report fuzz tests -type f \( "${names[@]}" \) 2>/dev/null || true)
}

# shellcheck disable=SC2015
# "file:included" for quoted includes, and for angled ones that name a folder of ours; "file:" for every source.
includes() { # TREE
  sources "$1" inc | sed 's/$/:/'
  (cd -- "$1" && sources . inc | tr '\n' '\0' | xargs -0 -r grep -HE '^[[:space:]]*#[[:space:]]*include' || true) |
    sed -nE -e 's/^([^:]*):[^"<]*"([^"]*)".*/\1:\2/p' \
      -e 's/^([^:]*):[^"<]*<((cases|ref|gpu|report|fuzz|tests)\/[^>]*)>.*/\1:\2/p'
}

linked() { # TREE
  local folder library
  for folder in "${!may_link[@]}"; do
    [ -e "$1/$folder/CMakeLists.txt" ] || continue
    while read -r library; do
      case " ${may_link[$folder]} fa_flags fa_$folder " in
      *" $library "*) ;;
      *) printf '%s/CMakeLists.txt: %s\n' "$folder" "$library" ;;
      esac
    done < <(grep -v 'add_library\|add_executable' "$1/$folder/CMakeLists.txt" | grep -oE '\bfa_(cases|ref|gpu|report|fuzz)\b' || true)
  done
}

crowded() { # TREE
  sources "$1" | sed 's,/[^/]*$,,' | sort | uniq -c |
    awk -v most=$most_sources '$1 > most { print $2 ": " $1 " sources, more than " most }'
}

# Equal to the folder's name or beginning with it, also with the s of a plural taken off; of a test, what comes after test_.
repeating() { # TREE
  sources "$1" inc py sh | awk -F/ '{
    folder = $(NF - 1); single = folder; name = $NF
    sub(/s$/, "", single); sub(/\.[^.]*$/, "", name)
    if ($1 == "tests") sub(/^test_/, "", name)
    if (name == folder || name == single || index(name, folder "_") == 1 || index(name, single "_") == 1)
      print $0 ": repeats the name of its folder"
  }'
}

violations() { # TREE [LAYERS]
  includes "$1" | awk -f "$here/layers.awk" "${2:-$layers}" -
  linked "$1"
  crowded "$1"
  repeating "$1"
}

failed=0
n_includes=$(includes "$root" | grep -vc ':$')
if [ "$n_includes" -lt 1000 ]; then
  echo "only $n_includes includes found under $root: this test looks at nothing"
  failed=1
fi
found=$(violations "$root")
if [ -n "$found" ]; then
  printf 'forbidden:\n%s\n' "$found"
  failed=1
fi

# ---- can the checks fail? ----

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
n_planted=0

write() { # FILE CONTENT, in the tree under test
  mkdir -p "$work/tree/$(dirname "$1")"
  printf '%s\n' "$2" >"$work/tree/$1"
}
look() { # WHETHER WHAT: reported or allowed, then the tree is cleared
  local said
  said=$(violations "$work/tree" "${3:-$layers}" 2>/dev/null)
  if [ "$1" = reported ] && [ -z "$said" ] || { [ "$1" = allowed ] && [ -n "$said" ]; }; then
    printf 'not %s: %s\n%s' "$1" "$2" "${said:+$said
}"
    failed=1
  fi
  n_planted=$((n_planted + 1))
  rm -rf "$work/tree"
}
plant() { # FILE CONTENT: must be reported
  write "$1" "$2"
  look reported "$2 in $1"
}

# For every row: what it names is allowed, everything from its own neighbour upwards is not.
mapfile -t rows < <(awk -v print_rows=1 -f "$here/layers.awk" "$layers" /dev/null 2>/dev/null)
folders=("${rows[@]%% *}")
if [ "${#folders[@]}" -lt 50 ]; then
  echo "only ${#folders[@]} rows in $layers"
  failed=1
fi
for i in "${!folders[@]}"; do
  read -ra row <<<"${rows[i]}"
  write "${row[0]}/x.c" "$(for item in "${row[@]:1}"; do
    case $item in *.h) printf '#include "%s"\n' "$item" ;; *) printf '#include "%s/x.h"\n' "$item" ;; esac
  done)"
done
look allowed "what the rows name"
for i in "${!folders[@]}"; do write "${folders[i]}/x.c" "#include \"${folders[i + 1]:-tests/nowhere}/x.h\""; done
said=$(violations "$work/tree" 2>/dev/null)
for folder in "${folders[@]}"; do
  if ! grep -q "^$folder/x.c: " <<<"$said"; then
    echo "not reported: the next row's in $folder/x.c"
    failed=1
  fi
done
n_planted=$((n_planted + ${#folders[@]}))
rm -rf "$work/tree"

plant ref/math/x.c '#include "gpu/backend.h"'
plant gpu/plan/x.c '#include "ref/reference.h"'
plant gpu/kernels/flash/x.cu '#  include <ref/compare/verdict.h>'
plant gpu/simt/x.cpp '	#include "fuzz/one/run_case.h"'
plant report/x.c '#include "ref/reference.h"'
plant report/x.c '#include "ref/compare/verdict.h.h"'
plant gpu/host/x.c '#include "gpu/plugin.h"'
plant cases/codec/x.c '#include "json.h"'
plant gpu/kernels/params/x.h '#include "../../../ref/compare/verdict.h"'
plant gpu/kernels/registry/x.def '#include "gpu/plan/x.h"'
plant tests/gpu/x.c '#include "tests/cases/x.h"'
plant gpu/attic/x.c '#include "gpu/fa.h"'
plant gpu/attic/x.c ''

# A cycle of two folders has an arrow upwards, whichever row comes first; a row that closes one is
# invalid.
write fuzz/laws/x.c '#include "fuzz/one/x.h"'
write fuzz/one/x.c '#include "fuzz/laws/x.h"'
look reported 'fuzz/laws and fuzz/one in a circle'
for row in 'cases/base: cases/data' 'ref/bounds: ref/attention' 'gpu/call: {nothing}' 'fuzz/laws: fuzz/laws'; do
  sed "s,^${row%%:*}:.*,$row," "$layers" >"$work/layers"
  write "${row%%:*}/x.c" ''
  look reported "the row '$row'" "$work/layers"
done

plant gpu/CMakeLists.txt 'target_link_libraries(fa_gpu PUBLIC fa_cases fa_ref)'
plant ref/CMakeLists.txt 'target_link_libraries(fa_ref PUBLIC fa_gpu)'
plant report/CMakeLists.txt 'target_link_libraries(fa_report PUBLIC fa_gpu)'

# Crowded folders, of every suffix, and repeated names.
for suffix in c h cpp cu cuh def; do
  for ((i = 0; i < most_sources; ++i)); do write "gpu/plan/x$i.c" ''; done
  [ $suffix = c ] && look allowed "$most_sources sources" && for ((i = 0; i < most_sources; ++i)); do write "gpu/plan/x$i.c" ''; done
  write "gpu/plan/x.$suffix" ''
  look reported "$((most_sources + 1)) sources, one .$suffix"
done
for name in gpu/plan/plan.c gpu/plan/plan_make.h fuzz/laws/law.c fuzz/laws/laws_all.c gpu/kernels/mods/mod_a.cuh \
  gpu/kernels/registry/registry.def tests/cases/test_case_file.c tests/simt/test_simt.cpp tests/gpu/test_gpu.sh tests/plans/plan.py; do
  plant "$name" ''
done
for name in gpu/plan/planner.c fuzz/laws/lawful.c tests/fuzz/test_laws.c gpu/call/check_call.c; do
  write "$name" ''
  look allowed "$name"
done

[ $failed = 0 ] && echo "$n_includes includes and ${#folders[@]} rows, all downwards; $n_planted plants"
exit $failed
