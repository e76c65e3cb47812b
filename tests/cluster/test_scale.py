"""Merging holds some hundred bytes of each case, not the case: memory over the number of cases, of reports as large as CI can make.

    test_scale.py FA-VERIFY PLANTED.so [FOLDER]

FOLDER has made reports already (make_reports.py): they are merged, and time and memory are printed.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent
MOST_BYTES = 1000  # of memory for a case more; the implementation that held reports needed 8000


class Cost(NamedTuple):
    """Of one merge: seconds of the clock and of the processor, bytes at the peak."""

    elapsed: float
    processor: float
    peak: int


def merge(program: str, folder: Path) -> Cost:
    """Merges all reports of a folder into one, which is removed."""
    out = folder.parent / "merged.json"
    begun = time.monotonic()
    process = subprocess.Popen([program, "report", *sorted(map(str, folder.glob("part.*.json"))), "--merge", str(out)])
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"failed: exit code {process.returncode}")
    out.unlink()
    return Cost(time.monotonic() - begun, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024)


def make_model(program: str, plugin: str, folder: Path) -> Path:
    """The report of a real run of 200 cases, of a subject with planted bugs."""
    report = folder / "model.json"
    command = [program, "random", "--profile", "everything", "--count", "200", "--seed", "7", "--backend", f"plugin:{plugin}",
               "--report", str(report), "-q"]
    done = subprocess.run(command, env=os.environ | {"FA_PLANTED": "three_bugs"}, stdout=subprocess.DEVNULL, check=False)
    assert done.returncode == 1, done.returncode
    return report


def make(model: Path, folder: Path, reports: int, cases: int) -> Path:
    """Reports like the model."""
    subprocess.run([sys.executable, str(HERE / "make_reports.py"), "--like", str(model), "--out", str(folder),
                    "--reports", str(reports), "--cases", str(cases)], check=True)
    return folder


def check_small(program: str, plugin: str) -> int:
    """Compares 8 reports of 2000 cases with 8 of 200."""
    with tempfile.TemporaryDirectory() as name:
        model = make_model(program, plugin, Path(name))
        few = merge(program, make(model, Path(name) / "few", 8, 200))
        more = merge(program, make(model, Path(name) / "more", 8, 2000))
    bytes_each = (more.peak - few.peak) / (8 * 1800)
    print(f"{few.peak >> 10} KB for 1600 cases, {more.peak >> 10} KB for 16000: {bytes_each:.0f} bytes a case; "
          f"{more.processor / 16000 * 1e6:.0f} us a case")
    if bytes_each > MOST_BYTES:
        print(f"failed: at most {MOST_BYTES} are allowed")
    return 1 if bytes_each > MOST_BYTES else 0


def main() -> int:
    """Exit code 1: too much memory."""
    if len(sys.argv) > 3:
        cost = merge(sys.argv[1], Path(sys.argv[3]))
        print(f"{cost.elapsed:.1f} s, of the processor {cost.processor:.1f} s, at the peak {cost.peak / 1e6:.0f} MB")
        return 0
    return check_small(sys.argv[1], sys.argv[2])


if __name__ == "__main__":
    sys.exit(main())
