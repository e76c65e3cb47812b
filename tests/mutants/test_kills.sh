#!/usr/bin/env bash
# Every patch of tests/mutants/ fits the kernels as they are; some mutants, built here, are killed, by both judges where it
# is many cases; and a mutant that is none is reported as surviving.
# usage: test_kills.sh FA-VERIFY MUTATE_SERVE CXX CC   (from the top of the source tree)
set -euo pipefail
command -v python3 >/dev/null || { echo 'skipped: no python3'; exit 77; }
verify=$(realpath "$1") serve=$(realpath "$2") cxx=$3 cc=$4
FA_MUTANT_DIR=$(mktemp -d)
export FA_MUTANT_DIR
trap 'rm -rf "$FA_MUTANT_DIR"' EXIT
. tests/support/share.sh
few='max_of_half_quad delta_missing softcap_derivative_missing dropout_heads_share_backward lse_without_max barrier_missing_ds
     dq_tile_lost alibi_slope_of_kv_head'

python3 tests/mutants/build.py --check
build() { python3 tests/mutants/build.py "$1" "$FA_MUTANT_DIR/$2.so" --cxx "$cxx" --cc "$cc"; }
build - unchanged
i=0 shared=delta_missing # whose place a mutant that is none takes below
for name in $few; do
  ! share_has $((i++)) || shared+="|$name"
done
for name in $(tr '|' '\n' <<<"$shared" | sort -u); do build "tests/mutants/$name.patch" "$name"; done
python3 tests/mutants/kill.py "$verify" --judge host --only "^($shared)$" --files '^(softcap|alibi|dropout)$'

# On the case that killed, the GPU's judge refuses the mutant, and passes the kernels without a bug.
echo '{"delta_missing": ["one_token", "FAIL", ""], "delta_half_summed": ["one_token", "RACE", ""]}' >"$FA_MUTANT_DIR/killers"
python3 tests/mutants/by_gpu.py "$serve" --judge host --recorded "$FA_MUTANT_DIR/killers" --only '^delta_(missing|half_summed)$' --jobs 1 |
  tee "$FA_MUTANT_DIR/out"
grep -q '^| all | 1 | 1 |' "$FA_MUTANT_DIR/out" && grep -q 'on the 1 cases: 1 PASS' "$FA_MUTANT_DIR/out" &&
  grep -q 'nothing to judge: 1 RACE' "$FA_MUTANT_DIR/out"

# One that no case kills is given up.
mkdir "$FA_MUTANT_DIR/none"
cp "$FA_MUTANT_DIR/unchanged.so" "$FA_MUTANT_DIR/none/"
cp "$FA_MUTANT_DIR/unchanged.so" "$FA_MUTANT_DIR/none/delta_missing.so"
! FA_MUTANT_DIR=$FA_MUTANT_DIR/none python3 tests/mutants/by_gpu.py "$serve" --judge host --only '^delta_missing$' --jobs 1 --patience 0 \
  >"$FA_MUTANT_DIR/out" || exit 1
grep -q 'not answered: delta_missing: no case has killed it in 0 s' "$FA_MUTANT_DIR/out"

# Right outputs, and more work than is recorded.
build tests/mutants/waste_hidden_query_tiles.patch waste_hidden_query_tiles
python3 tests/mutants/kill.py "$verify" --only '^waste_hidden_query_tiles$' --files '^causal$'

# Those of the kernels over a cache and with expressions, each on one case.
one_case() { # NAME FILE CASE
  "$verify" run --backend "mutant:$1" --jobs 1 --no-progress -q --cases "cases/$2.json" --filter "^$3\$"
}
is_killed() { # NAME FILE CASE: by a mismatch; one that does not run at all also fails, with another code
  local status=0
  one_case "$@" >"$FA_MUTANT_DIR/out" 2>&1 || status=$?
  [ $status = 1 ]
}
while read -r name file case; do
  share_has $((i++)) || continue
  build "tests/mutants/$name.patch" "$name"
  one_case unchanged "$file" "$case"
  if ! is_killed "$name" "$file" "$case"; then
    echo "$name is not killed:"
    cat "$FA_MUTANT_DIR/out"
    exit 1
  fi
done <<'END'
cache_fully_masked_split_nan kvcache leftpad_all_splits
cache_append_over_page_border kvcache page_append_crosses
cache_combine_not_waited_for kvcache splits_2
flex_hidden_by_addition flex mod_hidden_nan
flex_index_not_clamped flex blocks_and_mod
END

if is_killed no_such_mutant kvcache page_append_crosses || is_killed unchanged kvcache page_append_crosses ||
  is_killed unchanged kvcache no_such_case; then
  echo 'a mutant that does not run, or is none, counts as killed'
  exit 1
fi

# The text after a comma is an argument of the host backend.
one_case unchanged,shared=99 flex mod_noop
status=0
one_case unchanged,nonsense flex mod_noop 2>"$FA_MUTANT_DIR/err" || status=$?
[ $status = 2 ] && grep -q 'shared=KIB' "$FA_MUTANT_DIR/err"

cp "$FA_MUTANT_DIR/unchanged.so" "$FA_MUTANT_DIR/delta_missing.so"
if python3 tests/mutants/kill.py "$verify" --only '^delta_missing$' --files '^softcap$' >"$FA_MUTANT_DIR/out"; then
  echo 'a mutant that is none does not survive:'
  cat "$FA_MUTANT_DIR/out"
  exit 1
fi
grep -q 'delta_missing: SURVIVES' "$FA_MUTANT_DIR/out"

# A patch that does not fit is named.
sed 's/^-  .*/-  no such line/' tests/mutants/delta_missing.patch >"$FA_MUTANT_DIR/misfit.patch"
if build "$FA_MUTANT_DIR/misfit.patch" misfit 2>"$FA_MUTANT_DIR/err"; then
  echo 'a patch that does not fit was applied'
  exit 1
fi
grep -q 'these lines are not there' "$FA_MUTANT_DIR/err"
