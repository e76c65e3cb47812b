#!/usr/bin/env bash
# A Python file of this folder, with a Python that has numpy: with_numpy.sh FILE.py VENV [ARGUMENT...]
set -euo pipefail
. "$(dirname "$0")/../python/venv.sh"
file=$1 venv=$2
shift 2
python=${FA_PYTHON:-python3}
if ! "$python" -c 'import numpy' 2>/dev/null; then
  make_venv "$venv" numpy
  python=$venv/bin/python
fi
PYTHONDONTWRITEBYTECODE=1 exec "$python" "$(dirname "$0")/$file" "$@"
