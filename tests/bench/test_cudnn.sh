#!/usr/bin/env bash
# tests/bench/cudnn.py as far as it works without a GPU: what it rejects, and that its call reaches the library field by
# field.
# usage: test_cudnn.sh BENCH_CALL LIBRARY
set -uo pipefail
call=$1 library=$2 failed=0
command -v python3 >/dev/null || { echo "skipped: no python3"; exit 77; }

refuses() { # MESSAGE ARGUMENT...
  local message=$1 said
  shift
  said=$(python3 tests/bench/cudnn.py "$@" 2>&1 >/dev/null)
  local status=$?
  if [ $status -ne 2 ] || [[ $said != *"$message"* ]]; then
    echo "tests/bench/cudnn.py $*: exit status $status, not 2, or it does not say '$message': $said"
    failed=1
  fi
}
refuses "no_such_call.so" ./no_such_call.so "$library"
refuses "no_such_library.so" "$call" "$library" other=./no_such_library.so
refuses "undefined symbol: fa_" "$call" "$call"
refuses "no row has such a name" "$call" "$library" --rows nothing
refuses "1 or more" "$call" "$library" --reps 0

python3 - "$call" "$library" <<'PY' || failed=1
import ctypes
import sys

sys.path.insert(0, "tests/bench")
import cudnn

libraries = cudnn.Libraries(sys.argv[1], {"ours": sys.argv[2]})
pointers = {n: 1 << 20 for n, kind in cudnn.Call._fields_ if kind is ctypes.c_void_p
            and n not in ("stream", "cu_seqlens", "bias", "dbias", "program", "buffer", "dbuffer")}
wrong = 0
for field, value, message in (("batch", -1, "batch"), ("seqlen", -1, "seqlen_q"), ("heads", -1, "heads_q"), ("head_dim", 0, "head_dim"),
                              ("heads_kv", -1, "heads_kv"), ("head_dim_v", -8, "head_dim_v"), ("window_left", -5, "window_left"),
                              ("dtype", 77, "dtype"), ("dropout_p", 2.0, "dropout_p"), ("q", None, "q is"), ("k", None, "k is"), ("v", None, "v is"),
                              ("o", None, "o is"), ("lse", None, "lse is"), ("d_o", None, "d_o is"), ("dq", None, "dq is"),
                              ("dk", None, "dk is"), ("dv", None, "dv is"), ("workspace", None, "workspace")):
    call = cudnn.Call(batch=1, seqlen=128, heads=2, head_dim=64, **pointers)
    setattr(call, field, value)
    run = libraries.calls.bench_backward
    said = (run(libraries.opened["ours"], ctypes.byref(call)) or b"nothing").decode()
    if not said.startswith(message):
        print(f"{field} = {value}: the library says '{said}'")
        wrong = 1
sys.exit(wrong)
PY
exit $failed
