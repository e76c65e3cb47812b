#!/usr/bin/env bash
# Products and bulk copies of the kernels for sm_90a on a real GPU, element by element. Skipped without one.
# usage: test_hopper_probe.sh PROBE NVCC
set -uo pipefail
probe=$1 nvcc=$2
"$probe"
code=$?
[ $code = 0 ] || exit $code
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$nvcc" -std=c++17 -I. -cubin -arch=sm_90a tests/kernels/hopper_probe.cu -o "$work/probe.cubin" || exit 1
"$probe" "$work/probe.cubin"
