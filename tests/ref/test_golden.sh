#!/usr/bin/env bash
# The reference still computes what tests/golden/reference holds, and a golden with one changed byte is noticed.
# To renew after an intended change:
#   fa-verify golden write tests/golden/reference --cases tests/golden/reference.json
# usage: test_golden.sh FA_VERIFY
set -euo pipefail
fa_verify=$1
golden=tests/golden/reference
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
failed=0

"$fa_verify" golden check $golden --cases tests/golden/reference.json || failed=1

changed() { # FILE OFFSET_FROM_END
  cp $golden/* "$copy/"
  local at
  at=$(($(stat -c %s "$copy/$1") - $2))
  local byte
  byte=$(od -An -tu1 -j $at -N 1 "$copy/$1")
  printf '%b' "\\x$(printf '%02x' $((byte ^ 32)))" | dd of="$copy/$1" bs=1 seek=$at conv=notrunc status=none
  local rc=0 out
  out=$("$fa_verify" golden check "$copy" 2>&1) || rc=$?
  if [ $rc != 1 ] || ! grep -q "^FAIL ${1%%.*} .*$1" <<<"$out"; then
    printf 'a changed byte in %s: exit %d\n%s\n' "$1" $rc "$out"
    failed=1
  fi
}
changed causal_gqa.forward.safetensors 2
changed tall_dlse.backward.safetensors 10
exit $failed
