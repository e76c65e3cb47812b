#!/usr/bin/env bash
# Called with $SRC, $OUT, $WORK, $CC, $CFLAGS and the others; the repository's own script does it all.
set -euo pipefail
exec "$SRC/fa-verify/fuzz/build.sh"
