#!/usr/bin/env bash
# The tests of python/ with this build's program, from the source tree: test_package.sh FA-VERIFY VENV
set -euo pipefail
. "$(dirname "$0")/venv.sh"
binary=$(realpath "$1")
make_venv "$2" numpy pytest pytest-xdist
# From another folder, so that nothing is found by the accident of standing beside it. The golden path is the
# package's: its examples are run too.
root=$PWD
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
FA_VERIFY_BINARY=$binary PYTHONPATH=$root/python PYTHONDONTWRITEBYTECODE=1 \
  "$2/bin/python" -m pytest -q -p no:cacheprovider --doctest-modules --ignore "$root/python/fa_verify/adapters/_triton_example.py" \
  "$root/python/fa_verify" "$root/python/tests"
