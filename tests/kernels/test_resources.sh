#!/usr/bin/env bash
# The check of ptxas's reports: passes clean logs, and fails on a spill, on a warning, and without anything to check.
set -u
script=gpu/kernels/resources.cmake
dir=$(mktemp -d) && trap 'rm -rf "$dir"' EXIT
failed=0

log() { # log FILE STORES LOADS EXTRA-LINE
  cat >"$dir/$1" <<END
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'kernel_one' for 'sm_80'
ptxas info    : Function properties for kernel_one
    8 bytes stack frame, $2 bytes spill stores, $3 bytes spill loads
ptxas info    : Used 212 registers, used 1 barriers, 1024 bytes smem, 600 bytes cmem[0]
$4
END
}
expect() { # expect WHAT STATUS WORDS LOGS
  local said status
  said=$(cmake "-DLOGS=$4" "-DOUT=$dir/out.txt" -P $script 2>&1)
  status=$?
  if { [ "$2" = 0 ] && [ $status != 0 ]; } || { [ "$2" != 0 ] && [ $status = 0 ]; }; then
    echo "$1: exit status $status: $said"; failed=1
  fi
  if [ "$2" != 0 ] && ! grep -q "$3" <<<"$said"; then echo "$1: \"$3\" is not in: $said"; failed=1; fi
}

log clean 0 0 ""
log spill 16 8 ""
log loads 0 4 ""
log serial 0 0 "ptxas info    : (C7510) Potential Performance Loss: wgmma.mma_async instructions are serialized"
: >"$dir/empty"
expect clean 0 "" "$dir/clean"
grep -q "^212  1024  0  0  kernel_one sm_80$" "$dir/out.txt" || { echo "no line for the clean kernel"; failed=1; }
expect spill 1 "16 bytes stored and 8 loaded" "$dir/clean;$dir/spill"
expect loads 1 "kernel_one sm_80: spills" "$dir/loads"
expect serialised 1 "C7510" "$dir/serial"
expect empty 1 "no kernel found" "$dir/empty"
exit $failed
