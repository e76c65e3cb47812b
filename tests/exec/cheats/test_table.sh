#!/usr/bin/env bash
# Two cheats against every set of layers end in their named failure, and pass without it: test_table.sh FA-VERIFY VENV. All: run.py.
set -euo pipefail
. "$(dirname "$0")/../../python/venv.sh"
command -v bwrap >/dev/null || skip "no bubblewrap (Debian: apt install bubblewrap)"
bwrap --ro-bind / / --unshare-all true 2>/dev/null || skip "bubblewrap cannot make namespaces here"
python=${FA_PYTHON:-python3}
if ! "$python" -c 'import numpy' 2>/dev/null; then
  make_venv "$2" numpy
  python=$2/bin/python
fi
FA_PYTHON=$python exec "$python" "$(dirname "$0")/run.py" "$1" --each "${FA_CHEATS_EACH:-2}"
