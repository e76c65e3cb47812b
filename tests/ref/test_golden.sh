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
# What rounding decides has no golden, as it has no verdict.
undecided() { # SCORE_MOD MESSAGE
  local rc=0 out
  out=$("$fa_verify" golden write "$copy/new" --case "{\"name\":\"undecided\",\"family\":\"flex\",\"dtype\":\"f32\",\"seqlen_q\":24,\"head_dim\":8,\"score_mod\":\"$1\"}" 2>&1) || rc=$?
  if [ $rc != 2 ] || ! grep -qF "$2" <<<"$out" || compgen -G "$copy/new/undecided*" >/dev/null; then
    printf 'a golden of %s: exit %d\n%s\n' "$1" $rc "$out"
    failed=1
  fi
}
undecided 'score + int(0.3 * q_idx)' 'column 9: rounding decides it, at b 0, h 0, q_idx 10'
undecided 'score * 1e9' 'column 1: rounding in f32 may move the score by'

changed causal_gqa.forward.safetensors 2
changed tall_dlse.backward.safetensors 10
exit $failed
