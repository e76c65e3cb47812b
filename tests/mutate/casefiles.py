"""The files of named cases, as they lie in the tree: one that is added is asked without being listed anywhere."""
import glob
import os

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")


def stems(pattern):
    return tuple(sorted(os.path.basename(path).partition(".")[0] for path in glob.glob(os.path.join(TOP, pattern))))


# entries.json has calls of up to 65,535 sequences or 4 million keys, of which one takes minutes on the host.
NAMES = tuple(name for name in stems("cases/*.json") if name not in ("schema", "entries"))
# Those whose reference values tests/held/test_recorded.c has.
RECORDED = tuple(name for name in stems("tests/ref/recorded/*.txt") if name in NAMES)
