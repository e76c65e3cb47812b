#!/usr/bin/env bash
# Looks at what fuzz/build.sh has left in a folder, as OSS-Fuzz does before it takes a build: every target is there with its options and
# corpus, needs no library that a machine which only runs targets may lack, has the sanitizer that was asked for, starts, and runs its corpus'
# first inputs. Nothing else lies there. It runs anywhere: copy the folder and this file.
# usage: check.sh FOLDER [address|undefined|none [RUNS]]
# Exit codes: 1 if something is wrong, with a line for each, 2 for wrong usage.
set -uo pipefail
out=${1:?usage: check.sh FOLDER [address|undefined|none [RUNS]]}
sanitizer=${2:-none} runs=${3:-100}
out=$(cd -- "$out" && pwd) || exit 2
scratch=$(mktemp -d)
trap 'rm -rf -- "$scratch"' EXIT
wrong=0 n=0
say() { printf '%s\n' "$*"; wrong=1; }

# Libraries of the system and the compiler, which every such machine has.
base='^(linux-vdso|ld-linux-x86-64|ld-linux-aarch64|libc|libm|libdl|librt|libpthread|libresolv|libstdc\+\+|libgcc_s)\.so'
libraries() { # TARGET
  (cd / && env -u LD_LIBRARY_PATH ldd "$out/$1" 2>/dev/null) | while read -r library arrow place _; do
    library=${library##*/}
    if [ "$arrow" = "=>" ] && [ "$place" = not ]; then
      echo "$1: $library is not found"
    elif ! [[ $library =~ $base ]] && [ "$place" != "$out/lib/$library" ]; then
      echo "$1: $library is taken from ${place:-elsewhere}, not from lib/"
    fi
  done
}

sanitized() { # TARGET
  case $sanitizer in
  address) grep -qa __asan_init "$out/$1" || echo "$1: was built without AddressSanitizer" ;;
  undefined) grep -qa __ubsan_handle "$out/$1" || echo "$1: was built without UndefinedBehaviorSanitizer" ;;
  esac
}

# The first inputs of the corpus, then random ones.
executes() { # TARGET
  mkdir -p "$scratch/corpus" "$scratch/here"
  python3 - "$out/$1_seed_corpus.zip" "$scratch/corpus" <<'PYTHON' || { echo "$1: its corpus cannot be read"; return; }
import sys, zipfile
archive = zipfile.ZipFile(sys.argv[1])
names = [n for n in archive.namelist() if not n.endswith("/")]
sys.exit("empty") if not names else None
for i, name in enumerate(sorted(names)[:20]):
    open(f"{sys.argv[2]}/{i}", "wb").write(archive.read(name))
PYTHON
  local -a dict=()
  if [ -e "$out/$1.dict" ]; then dict=("-dict=$out/$1.dict"); fi
  (cd -- "$scratch/here" && FA_ARTIFACT_DIR=$scratch timeout 300 "$out/$1" "-runs=$runs" -seed=1 -timeout=60 ${dict[@]+"${dict[@]}"} "$scratch/corpus") \
    >"$scratch/log" 2>&1 || { echo "$1: ends with $?:"; tail -n 5 "$scratch/log" | sed 's/^/  /'; }
  grep -q '^Done [0-9]* runs' "$scratch/log" || echo "$1: did not execute $runs inputs"
  rm -rf -- "$scratch/corpus" "$scratch/here"
}

known=' lib work '
for target in "$out"/*_fuzzer; do
  name=${target##*/}
  if ! [ -f "$target" ] || ! [ -x "$target" ]; then
    say "$name: is no program"
    continue
  fi
  n=$((n + 1))
  known+="$name $name.options $name.dict ${name}_seed_corpus.zip "
  for file in "$name.options" "${name}_seed_corpus.zip"; do [ -e "$out/$file" ] || say "$name: no $file"; done
  words=$(sed -n 's/^dict *= *//p' "$out/$name.options" 2>/dev/null)
  if [ -n "$words" ] && [ ! -e "$out/$words" ]; then say "$name: no $words"; fi
  found=$(libraries "$name"; sanitized "$name"; executes "$name")
  if [ -n "$found" ]; then say "$found"; fi
done
for file in "$out"/*; do
  case $known in *" ${file##*/} "*) ;; *) say "${file##*/}: does not belong there" ;; esac
done
[ $n -gt 0 ] || say "no targets in $out"
[ $wrong = 0 ] && echo "$n targets: $runs inputs each, all libraries there"
exit $wrong
