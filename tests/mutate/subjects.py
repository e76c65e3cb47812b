"""What can be mutated: which sources, compiled in which target, and what kills."""
import glob
from dataclasses import dataclass

import mutants
import source


@dataclass
class Subject:
    """sources: patterns below the top; without: parts of paths that are left out; target: of the build."""
    sources: tuple
    target: str
    suite: str
    without: tuple = ()


# The executor's side of the thin layer is judged by its own tests, the device's needs a device.
SUBJECTS = {
    "kernels": Subject(("gpu/kernels/*/*.cuh",), "fa_host_kernels", "cases", ("/machine/",)),
    "plan": Subject(("gpu/plan/*.c", "gpu/call/*.c", "gpu/args/*.c", "gpu/kernels/registry/*.c"), "fa_gpu", "cases"),
    "ref": Subject(("ref/*/*.c",), "fa_ref", "tests"),
    "formulas": Subject(("ref/*/*.h",), "fa_ref", "tests", ("/cuda/", "gemm_body")),
    "cases": Subject(("cases/data/*.c", "cases/tensors/*.c", "cases/codec/*.c"), "fa_cases", "tests"),
    "fuzz": Subject(("fuzz/one/*.c", "fuzz/judging/*.c", "fuzz/laws/*.c", "fuzz/campaign/*.c"), "fa_fuzz", "tests"),
}


def find(subject, only=None):
    """All mutants, numbered from 1 in the order of the files."""
    found = []
    for pattern in subject.sources:
        for path in sorted(glob.glob(pattern)):
            if any(w in path for w in subject.without) or (only and only not in path):
                continue
            with open(path, "rb") as f:
                found += mutants.find(source.Source(path, f.read()))
    for number, m in enumerate(found, 1):
        m.number = number
    return found
