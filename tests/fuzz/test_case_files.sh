#!/usr/bin/env bash
# Every case file of cases/ loads, has a note on each case, and passes: with ref-f32, which can do nearly
# everything, and with the host kernel as far as it can; what host kernels do for them is what it was.
# usage: test_case_files.sh FA_VERIFY BACKEND [--days N] FILE...   --days: in shares a day runs one file in N
set -euo pipefail
fa_verify=$1 backend=$2 days=1
shift 2
if [ "$1" = --days ]; then
  days=$2
  shift 2
fi
[ $# -gt 0 ]
failed=0
reports=()
source tests/support/share.sh
part=() least=1
# Under sanitizers, which make a case ten times as slow, a file is a long list too; a share of a short one may have none that run.
if grep -qa __asan_init "$fa_verify" && [ "${FA_TEST_SHARE:-1}" -gt 1 ]; then part=(--shard "$(share_shard)") least=0 days=1; fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
i=0
for file in "$@"; do
  if [ "$(grep -c '"name": ' "$file")" != "$(grep -c '"note": ' "$file")" ]; then
    echo "$file: a case without a note"
    failed=1
  fi
  share_of_has "$days" $((i++)) || continue
  rc=0
  out=$("$fa_verify" run --backend "$backend" --cases "$file" ${part[@]+"${part[@]}"} --report "$work/${#reports[@]}.json" 2>&1) || rc=$?
  reports+=("$work/${#reports[@]}.json")
  last=$(grep '^tests:' <<<"$out" | tail -n 1)
  if [ $rc = 4 ] && [ $least = 0 ]; then rc=0; fi # nothing of the share was judged
  printf '%s on %s: exit %d, %s\n' "$file" "$backend" "$rc" "$last"
  if [ $rc != 0 ] || ! grep -qE "^tests:[0-9]+ passed:[$least-9][0-9]* failed:0 skipped:[0-9]+ error:0" <<<"$last"; then
    grep -vE '^(PASS|SKIP)' <<<"$out" | head -n 40
    failed=1
  fi
done
if [[ $backend == host* && ${#part[@]} == 0 ]]; then # several runs of a sweep have one name, of which the last counts
  if ! command -v python3 >/dev/null; then
    echo "what the kernels did is not compared: no python3"
  elif ! python3 tests/kernels/work.py "${reports[@]}"; then
    echo "tests/kernels/work.py --write takes it as it is"
    failed=1
  fi
fi
exit $failed
