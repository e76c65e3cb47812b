#!/usr/bin/env bash
# check.py as far as it works without a GPU: what it makes of the tools' words, which a stand-in says in their place.
set -uo pipefail
command -v python3 >/dev/null || { echo "skipped: no python3"; exit 77; }
dir=$(mktemp -d) failed=0
trap 'rm -rf "$dir"' EXIT

printf 'mla decode scale\n' >"$dir/cases.txt"
printf '# none\nracecheck | hopper_one | Race reported between Read access | some.cu\n' >"$dir/known.txt"
cat >"$dir/tool" <<'TOOL'
#!/usr/bin/env bash
cat "$(dirname "$0")/says"
sleep "$(cat "$(dirname "$0")/sleeps")"
TOOL
chmod +x "$dir/tool"
echo 0 >"$dir/sleeps"

# expect STATUS WORDS [ARGUMENT...]: check.py ends so, and says so, of what stdin says
expect() {
  local status=$1 words=$2 said is
  shift 2
  cat >"$dir/says"
  said=$(python3 tests/sanitizer/check.py --sanitizer "$dir/tool" --list "$dir/cases.txt" --known "$dir/known.txt" --tools racecheck "$@" 2>&1)
  is=$?
  if [ $is -ne "$status" ] || [[ $said != *"$words"* ]]; then
    echo "not '$words' with $status, but with $is: $said"
    failed=1
  fi
}
passes=$'PASS decode  cuda  fwd  r=0.5  9 ms\nPASS scale  cuda  fwd  r=0.5  9 ms\n'
summary='========= RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)'
race() { # KERNEL
  printf '========= COMPUTE-SANITIZER\n========= Error: Race reported between Read access at %s+0x10\n' "$1"
  printf '=========     and Write access at %s+0x20 [200 hazards]\n========= \n' "$1"
}
barrier='========= Barrier error detected. Divergent thread(s) in block.
=========     at hopper_two+0x4110
=========     by thread (96,0,0) in block (0,0,0)
========= '

expect 0 'nothing unknown' <<<"$passes$summary"
expect 0 'known: 1 x racecheck, hopper_one' < <(race hopper_one; echo "$passes$summary")
expect 1 '1 x hopper_other: Error: Race reported' < <(race hopper_other; echo "$passes$summary")
expect 1 '1 x hopper_one: Error: Race reported' --tools synccheck < <(race hopper_one; echo "$passes$summary")
expect 1 '2 x hopper_two: Barrier error detected. Divergent thread(s) in block.' < <(echo "$barrier"; echo "$barrier"; echo "$passes$summary")
expect 1 '1 of 2 cases passed: SKIP scale  cuda  why' <<<"PASS decode"$'\n'"SKIP scale  cuda  why"$'\n'"$summary"
expect 1 'the tool came to no summary' <<<"$passes"
expect 2 'tools are memcheck' --tools memchk <<<"$passes$summary"
expect 77 'skipped: no ' --sanitizer "$dir/none" <<<"$passes$summary"
echo 9 >"$dir/sleeps"
expect 1 'not done after 0.3 s' --limit 0.3 <<<"$passes$summary"
echo 0 >"$dir/sleeps"
printf 'mla decode no_such_case\n' >"$dir/cases.txt"
expect 2 'no such cases: mla/no_such_case' <<<"$passes$summary"

# The list itself: its cases are there.
said=$(python3 tests/sanitizer/check.py --sanitizer "$dir/none" 2>&1)
[ $? -eq 77 ] || { echo "$said"; failed=1; }
# What shows that known.txt is right about the kernels in pairs fits them.
if command -v patch >/dev/null; then
  patch -p1 --dry-run -f <tests/sanitizer/pair_followed.patch >"$dir/said" 2>&1 || { cat "$dir/said"; failed=1; }
fi
exit $failed
