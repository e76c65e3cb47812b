#!/usr/bin/env bash
# Runs all fuzz targets in parallel for some time and prints a table.
# usage: run_all.sh DIR SECONDS [JOBS]
#   DIR      made by build.sh, or any folder with <name>_fuzzer, such as the build folder of preset fuzz; <name>_fuzzer.dict and
#            .options are taken from there, else from targets/ beside this script. The corpus is DIR/corpus/<name>/; if there is
#            none, it is unpacked from corpus/<name>.zip beside this script (with cmake, unzip or python3), and again when that has
#            changed. DIR/artifacts receives the findings, DIR/logs the output, DIR/grown the corpora afterwards.
#   JOBS     processes per target, default 1; they share new inputs
#   SEED     in the environment: libFuzzer's seed for each target's first process, default 1000; one more for each further process
#   INPUTS   in the environment: of each corpus only so many inputs, chosen by SEED, so that a short run does not end among them
# Libraries in DIR/lib are found before the system's. Exit 1 if anything was found, or a target did not run to its end (the table says
# how it ended: a target that cannot be loaded, or that executed nothing, has shown nothing), 2 if a target is missing.
set -euo pipefail
unset CDPATH
here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
if [ $# -lt 2 ] || [ ! -d "$1" ]; then
  echo "usage: $0 DIR SECONDS [JOBS]" >&2
  exit 2
fi
dir=$(cd -- "$1" && pwd)
seconds=$2
jobs=${3:-1}
export LD_LIBRARY_PATH=$dir/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export OPENBLAS_NUM_THREADS=1
targets=()
for path in "$dir"/*_fuzzer; do
  if [ -x "$path" ]; then targets+=("$(basename -- "$path" _fuzzer)"); fi
done
if [ ${#targets[@]} -eq 0 ]; then
  echo "$dir holds no target (a program named <name>_fuzzer)" >&2
  exit 2
fi

unpack() { # ARCHIVE EMPTY_FOLDER
  if command -v cmake >/dev/null; then
    (cd -- "$2" && cmake -E tar xf "$1")
  elif command -v unzip >/dev/null; then
    unzip -q "$1" -d "$2"
  elif command -v python3 >/dev/null; then
    python3 -m zipfile -e "$1" "$2"
  else
    echo "$1 is to be unpacked: that takes cmake, unzip or python3" >&2
    return 1
  fi
}

# The copy of the archive beside the folder records what was unpacked. A folder without one belongs to the
# caller.
prepare_corpus() { # NAME
  local archive=$here/corpus/$1.zip folder=$dir/corpus/$1
  if [ -d "$folder" ]; then
    if [ ! -e "$folder.zip" ] || [ ! -e "$archive" ] || cmp -s -- "$archive" "$folder.zip"; then return; fi
  elif [ ! -e "$archive" ]; then
    echo "no corpus for $1" >&2
    return 1
  fi
  rm -rf -- "$folder" "$folder.new"
  mkdir -p -- "$folder.new"
  unpack "$archive" "$folder.new"
  cp -- "$archive" "$folder.zip"
  mv -- "$folder.new" "$folder" # last: an existing folder is complete
}

# The corpus, or DIR/chosen/<name>/ with some of its inputs.
inputs_of() { # NAME
  local name=$1 folder=$dir/chosen/$1 input
  if [ -z "${INPUTS:-}" ]; then
    echo "$dir/corpus/$name"
    return
  fi
  rm -rf -- "$folder"
  mkdir -p -- "$folder"
  find "$dir/corpus/$name" -type f | sort | awk -v seed="${SEED:-1000}" 'BEGIN {srand(seed)} {printf "%.9f %s\n", rand(), $0}' | sort |
    awk -v n="$INPUTS" 'NR <= n' | cut -d' ' -f2- | while IFS= read -r input; do cp -- "$input" "$folder/"; done
  echo "$folder"
}

beside() { # FILE: its path, if there is one
  local folder
  for folder in "$dir" "$here/targets"; do
    if [ -e "$folder/$1" ]; then
      echo "$folder/$1"
      return
    fi
  done
}

start() { # NAME JOB INPUTS
  local name=$1 log=$dir/logs/$1.$2.log artifacts=$dir/artifacts/$1 option file
  local -a more=()
  file=$(beside "${name}_fuzzer.dict")
  if [ -n "$file" ]; then more+=("-dict=$file"); fi
  file=$(beside "${name}_fuzzer.options")
  if [ -n "$file" ]; then
    option=$(sed -nE 's/^max_len *= */-max_len=/p' "$file")
    if [ -n "$option" ]; then more+=("$option"); fi
  fi
  FA_ARTIFACT_DIR=$artifacts "$dir/${name}_fuzzer" -max_total_time="$seconds" -rss_limit_mb=4096 -timeout=120 -error_exitcode=1 \
    -timeout_exitcode=1 -print_final_stats=1 -reload=10 -seed=$((${SEED:-1000} + $2)) -artifact_prefix="$artifacts/" ${more[@]+"${more[@]}"} \
    "$dir/grown/$name" "$3" >"$log" 2>&1 && echo 0 >"${log%.log}.status" || echo $? >"${log%.log}.status"
}

for name in "${targets[@]}"; do prepare_corpus "$name"; done
for name in "${targets[@]}"; do
  mkdir -p -- "$dir/artifacts/$name" "$dir/logs" "$dir/grown/$name"
  rm -f -- "$dir/logs/$name".*.status
  inputs=$(inputs_of "$name")
  for ((job = 0; job < jobs; ++job)); do start "$name" "$job" "$inputs" & done
done
wait

stat() { sed -nE "s/^stat::$2: *//p" "$1" | tail -1; }
last() { grep -oE "$2: [0-9]+" "$1" | tail -1 | tr -dc 0-9; }
found=0
printf '%-14s %12s %9s %7s %8s %8s %8s  %s\n' target executions exec/s edges features corpus findings ended
for name in "${targets[@]}"; do
  executions=0 edges=0 features=0 ended=well
  for ((job = 0; job < jobs; ++job)); do
    log=$dir/logs/$name.$job.log
    n=$(stat "$log" number_of_executed_units)
    executions=$((executions + ${n:-0}))
    status=$(cat -- "$dir/logs/$name.$job.status" 2>/dev/null || echo unknown)
    if [ "$status" != 0 ]; then ended="status $status"; elif [ "${n:-0}" -eq 0 ]; then ended="executed nothing"; fi
    n=$(last "$log" cov) && [ "${n:-0}" -le "$edges" ] || edges=${n:-0}
    n=$(last "$log" ft) && [ "${n:-0}" -le "$features" ] || features=${n:-0}
  done
  # libFuzzer's own artifact duplicates what the target itself wrote about the same finding.
  artifacts=$(find "$dir/artifacts/$name" -type f ! -name 'slow-unit-*' ! -name 'finding-*' | wc -l)
  found=$((found + artifacts))
  if [ "$ended" != well ]; then found=$((found + 1)); fi
  printf '%-14s %12d %9d %7d %8d %8d %8d  %s\n' "$name" "$executions" $((executions / seconds)) "$edges" "$features" \
    "$(find "$dir/grown/$name" -type f | wc -l)" "$artifacts" "$ended"
  if [ "$ended" != well ]; then
    for ((job = 0; job < jobs; ++job)); do tail -n 1 -- "$dir/logs/$name.$job.log" | sed "s/^/  $name.$job.log: /"; done
  fi
done
if [ "$found" -gt 0 ]; then
  find "$dir/artifacts" -type f ! -name 'slow-unit-*'
  exit 1
fi
