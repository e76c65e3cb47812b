#!/usr/bin/env bash
# usage: test_dictionaries.sh CORPORA (the folder where the archives are unpacked)
# Every key that a reader knows stands in its dictionary; the corpora stay small; every target has what OSS-Fuzz wants of it.
set -euo pipefail
root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd)
corpora=$1
failed=0
fail() { echo "failed: $*" >&2; failed=1; }

# missing DICT KEY... : prints the keys that the dictionary lacks
missing() {
  local dict=$1 key
  shift
  for key in "$@"; do grep -qF -- "\"\\\"$key\\\"\"" "$dict" || echo "$key"; done
}
mapfile -t keys < <(grep -hoE '\{"[a-z_]+", (read|fa_read|NULL)' "$root"/cases/codec/*.c | sed -E 's/\{"([a-z_]+)".*/\1/' | sort -u)
if [ ${#keys[@]} -lt 40 ]; then fail "only ${#keys[@]} keys found in cases/codec/*.c: this test looks at nothing"; fi
for key in $(missing "$root/fuzz/targets/case_json_fuzzer.dict" "${keys[@]}"); do fail "case_json_fuzzer.dict lacks $key"; done
for key in $(missing "$root/fuzz/targets/report_fuzzer.dict" fa_report summary failures cases state total passed); do fail "report_fuzzer.dict lacks $key"; done
if [ "$(missing "$root/fuzz/targets/case_json_fuzzer.dict" seqlen_q no_such_key)" != no_such_key ]; then fail "a missing key is not noticed"; fi

names=()
for target in "$root"/fuzz/targets/*_fuzzer.c; do
  name=$(basename -- "$target" .c)
  if [[ ! $name =~ ^[a-z_]+$ ]]; then fail "$name: letters and _ only"; fi
  if [ ! -e "$root/fuzz/targets/$name.options" ]; then fail "$name.options is missing"; fi
  if [ ! -e "$root/fuzz/corpus/${name%_fuzzer}.zip" ]; then fail "$name has no archive"; fi
  if [ -z "$(ls -- "$corpora/${name%_fuzzer}" 2>/dev/null)" ]; then fail "$name has no corpus in $corpora"; fi
  names+=("${name%_fuzzer}.zip")
done
# Any other file would not be unpacked or counted.
for file in "$root"/fuzz/corpus/*; do
  case " ${names[*]} " in *" $(basename -- "$file") "*) ;; *) fail "$file is no target's archive" ;; esac
done
bytes=$(find "$corpora" -mindepth 2 -type f -printf '%s\n' | awk '{n += $1} END {print n + 0}')
if [ "$bytes" -gt 5000000 ]; then fail "the corpora have $bytes bytes; 5 MB are enough"; fi
exit $failed
