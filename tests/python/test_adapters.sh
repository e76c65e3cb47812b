#!/usr/bin/env bash
# Adapters of libraries that are small enough to be fetched for a test: test_adapters.sh FA-VERIFY VENV
set -euo pipefail
. "$(dirname "$0")/venv.sh"
binary=$(realpath "$1")
make_venv "$2" numpy pytest onnxruntime onnx mlx mlx-cpu
root=$PWD
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
FA_VERIFY_BINARY=$binary PYTHONPATH=$root/python PYTHONDONTWRITEBYTECODE=1 \
  FA_VERIFY_ADAPTERS="numpy_reference ort_mha ort_gqa ort_attention mlx" \
  "$2/bin/python" -m pytest -q -rs -p no:cacheprovider "$root/python/tests/test_adapters.py"
