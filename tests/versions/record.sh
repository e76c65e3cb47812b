#!/usr/bin/env bash
# Records what a version of the program writes, for later versions to read: tests/versions/VERSION/. Run it once, with that
# version's own program, before the next one; what it has written is never changed.
# usage: record.sh FA-VERIFY PLUGIN-SOURCE FOLDER (from the top of that version's source tree; FOLDER has a cases.json)
set -euo pipefail
verify=$(realpath "$1") source=$(realpath "$2") out=$(realpath "$3") root=$PWD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
ln -s "$verify" fa-verify
PATH=$work:$PATH # so that the commands in reports name no folder of this machine
cp "$out/cases.json" .

# A subject that is wrong: every causal row sees one key too many.
cc -std=gnu11 -O2 -shared -fPIC "-I$root" -DEXAMPLE_FAULT=1 -o one_key_too_many.so "$source" -lm
subject=(--backend plugin:./one_key_too_many.so --jobs 1 --no-progress)
failing() { # COMMAND...: must find a mismatch
  local code=0
  "$@" >said 2>&1 || code=$?
  [ $code = 1 ] || { cat said; exit 1; }
}

failing fa-verify run --cases cases.json --backend ref-f32 "${subject[@]}" --report report.json --keep dump
# As if it had been killed while it wrote its last line: the second link outlives the journal, and is then cut.
touch cut.json.journal
ln cut.json.journal cut
failing fa-verify run --cases cases.json "${subject[@]}" --report cut.json --resume
truncate -s -60 cut

fa-verify golden write golden --cases cases.json >said
# Where the report was made is nobody's business.
sed -E -i 's/("system":[[:space:]]*)"[^"]*"/\1"Linux"/' report.json
cp report.json "$out/"
cp cut "$out/cut.json.journal"
cp dump/*causal*.safetensors "$out/recorded.safetensors"
mkdir -p "$out/golden"
for name in causal gradients cache; do cp golden/*"$name"*.safetensors "$out/golden/"; done
