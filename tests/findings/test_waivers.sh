#!/usr/bin/env bash
# The waiver files that the package ships are taken by --waivers; one with a fault is not: test_waivers.sh FA-VERIFY
set -euo pipefail
binary=$1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
case_='{"name":"plain","dtype":"f32","family":"memeff","seqlen_q":4,"head_dim":8,"backward":false}'

taken() { # FILE
  "$binary" run --backend ref-f32 --case "$case_" -q --waivers "$1" >"$scratch/out" 2>&1
}

n=0
for file in python/fa_verify/waivers/*.json; do
  taken "$file" || { cat "$scratch/out"; echo "$file is not taken"; exit 1; }
  sed 's/"expires"/"expired"/' "$file" >"$scratch/bad.json"
  if taken "$scratch/bad.json"; then echo "$file without its days is taken"; exit 1; fi
  n=$((n + 1))
done
[ "$n" -gt 0 ] || { echo "no waiver files"; exit 1; }
echo "$n waiver files"
