#!/usr/bin/env bash
# What the guide promises: `pip install ./python` in a new virtual environment, then a kernel is judged.
set -euo pipefail
. "$(dirname "$0")/venv.sh"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
command -v ccache >/dev/null && export CMAKE_C_COMPILER_LAUNCHER=ccache CMAKE_CXX_COMPILER_LAUNCHER=ccache
make_venv "$scratch/venv" scikit-build-core numpy # what needs the network; the rest must work
root=$PWD
PIP_DISABLE_PIP_VERSION_CHECK=1 "$scratch/venv/bin/pip" install -q "$root/python"
cd "$scratch"
unset FA_VERIFY_BINARY PYTHONPATH
"$scratch/venv/bin/fa-verify" --cases causal --filter square_1 -q | grep -q '^tests:.* failed:0 skipped:0'
cp "$root/python/tests/kernels.py" .
"$scratch/venv/bin/python" - <<'PYTHON'
import fa_verify, kernels
from pathlib import Path

package = Path(fa_verify.__file__).parent
assert fa_verify.binary().is_relative_to(package) and fa_verify.cases_folder().is_relative_to(package)
assert (package / "py.typed").exists() and (package / "include/gpu/plugin.h").exists() and (package / "cases/schema.json").exists()
print(fa_verify.check(kernels.attention, "causal", require="all"))
try:
    fa_verify.check(kernels.scaled, "causal", filter="square_1")
except fa_verify.Mismatch as wrong:
    print(str(wrong).splitlines()[1][:100])
else:
    raise SystemExit("a kernel that is 1 % off passed")
PYTHON
