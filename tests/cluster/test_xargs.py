"""A campaign in shares on one machine, by the command lines of the guide: xargs -P, and GNU parallel where it is installed.
Each is ended in the middle and given again; the merged report is that of a run in one.

    test_xargs.py FA-VERIFY PLANTED.so
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import shares
from slurm import wait_until

SHARES = 4
CASES = 400
# As in docs/guide/campaigns.md; "$@" is what to run.
LINES = {
    "xargs": 'seq 0 3 | xargs -P 2 -I% "$FA_VERIFY" random "$@" --shard %/4 --report part.%.json --resume -q',
    "parallel": 'parallel -j 2 "$FA_VERIFY" random "$@" --shard {}/4 --report part.{}.json --resume -q ::: 0 1 2 3',
}


def journals(folder: Path) -> int:
    """How many results of the run are in journals."""
    return sum(max(0, path.read_bytes().count(b"\n") - 1) for path in folder.glob("part.*.json.journal"))


def start(line: str, folder: Path, arguments: list[str], environment: dict[str, str]) -> subprocess.Popen[bytes]:
    """The command line in a shell, with a process group of its own."""
    with (folder / "output").open("ab") as out:
        return subprocess.Popen(["bash", "-c", line, "campaign", *arguments], cwd=folder, env=environment, stdout=out, stderr=out,
                                stdin=subprocess.DEVNULL, start_new_session=True)


def run_twice(line: str, folder: Path, arguments: list[str], environment: dict[str, str]) -> int:
    """Ends the run by SIGTERM to all of it, then gives the same line again; how many results the first one had."""
    first = start(line, folder, arguments, environment)
    wait_until("results of a share", lambda: journals(folder) >= CASES // 20, 120)
    os.killpg(first.pid, signal.SIGTERM)
    first.wait(120)
    wait_until("the end of all shares", lambda: not processes_of(first.pid), 120)
    kept = journals(folder)
    assert 0 < kept < CASES, f"{kept} results when it was ended"
    second = start(line, folder, arguments, environment)
    second.wait(500)
    assert second.returncode != 0, "the subject's bugs are not in the exit code"
    return kept


def processes_of(group: int) -> list[int]:
    """What still runs of a process group."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[2]) == group and fields[0] != "Z":
            found.append(int(stat.parent.name))
    return found


def check(name: str, program: str, arguments: list[str], environment: dict[str, str]) -> int:
    """One of the lines against a run in one."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        kept = run_twice(LINES[name], folder, arguments, environment)
        whole = folder / "whole.json"
        subprocess.run([program, "random", *arguments, "--report", str(whole), "-q"], env=environment, cwd=folder,
                       stdout=subprocess.DEVNULL, check=False)
        parts = [folder / f"part.{share}.json" for share in range(SHARES)]
        in_shares = shares.merged(program, parts, folder / "all.json")
        lines = shares.differences(in_shares, shares.merged(program, [whole], folder / "one.json"))
    for line in lines:
        print(f"failed: {name}: {line}")
    print(f"{name}: ended with {kept} of {CASES} results, given again; {in_shares['summary']['failed']} failed, "
          + ("different from" if lines else "as in") + " one run")
    return len(lines)


def main() -> int:
    """Exit code 1: a difference."""
    program, plugin = (str(Path(word).resolve()) for word in sys.argv[1:3])
    # How far an explanation is looked for depends on the time that there is.
    arguments = ["--profile", "everything", "--count", str(CASES), "--seed", "7", "--jobs", "1", "--no-explain", "--backend",
                 f"plugin:{plugin}"]
    environment = {k: v for k, v in os.environ.items() if not k.startswith("SLURM_")}
    environment |= {"FA_PLANTED": "three_bugs", "FA_VERIFY": program, "OPENBLAS_NUM_THREADS": "1"}
    failed = 0
    for name in LINES:
        if shutil.which(name):
            failed += check(name, program, arguments, environment)
        else:
            print(f"{name}: not installed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
