#!/usr/bin/env bash
# Findings show where their libraries can be had: test_reproduce.sh FA-VERIFY VENV [PACKAGE...]
set -euo pipefail
. "$(dirname "$0")/../python/venv.sh"
binary=$(realpath "$1")
venv=$2
shift 2
[ $# -gt 0 ] || set -- numpy onnx onnxruntime openvino
make_venv "$venv" "$@"
export PYTHONPATH=$PWD/python PYTHONDONTWRITEBYTECODE=1
exec "$venv/bin/python" "$(dirname "$0")/reproduce.py" "$binary"
