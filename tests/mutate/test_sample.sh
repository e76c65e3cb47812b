#!/usr/bin/env bash
# Runs a script of this folder in an environment with the parser: test_sample.sh VENV SCRIPT.py [argument...]
set -euo pipefail
. "$(dirname "$0")/../python/venv.sh"
venv=$1 script=$(dirname "$0")/$2
shift 2
for word in "$@"; do
  [ ! -d "$word" ] || { [ -e "$word/build.ninja" ] && command -v ninja >/dev/null; } || skip "the build was not made by ninja"
done
make_venv "$venv" tree-sitter tree-sitter-c tree-sitter-cpp
exec "$venv/bin/python" "$script" "$@"
