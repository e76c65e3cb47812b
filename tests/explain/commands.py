#!/usr/bin/env python3
"""Explanations wherever failures are printed: run, --no-explain, --resume of a run that is over, check of recorded runs.

usage: commands.py FA-VERIFY PLANTED.so"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

PLANTED = "mask_one_key_fewer"
EXPLAINED = "explained by: causal mask 1 key too narrow"
GROUP = "cause 1: 2 failures, explained by causal mask 1 key too narrow"
BASE = {"batch": 2, "heads_q": 2, "seqlen_k": 140, "head_dim": 32, "dtype": "f16", "mask": {"type": "causal"}}
CASES = [{**BASE, "name": f"rows_{n}", "seqlen_q": n} for n in (50, 130)]


def output(*command: str) -> str:
    """What a command prints whose cases fail."""
    done = subprocess.run(command, env={**os.environ, "FA_PLANTED": PLANTED}, capture_output=True, text=True, check=False)
    assert done.returncode == 1, f"{command}: exit code {done.returncode}: {done.stdout}{done.stderr}"
    return done.stdout


def main(verify: str, plugin: str) -> int:
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "cases.json").write_text(json.dumps({"fa_cases": 1, "cases": CASES}))
        run = [verify, "run", "--backend", f"plugin:{plugin}", "--cases", str(folder / "cases.json"), "--no-progress",
               "--no-probe", "--report", str(folder / "report.json")]
        said = output(*run, "--keep", str(folder / "kept"))
        assert said.count(EXPLAINED) == 2 and GROUP in said, said
        assert GROUP in output(*run, "--resume"), "a run that is over has lost its groups"
        unasked = output(*run, "--no-explain", "-v")
        assert "explained" not in unasked, unasked

        recorded = sorted(str(path) for path in (folder / "kept").iterdir())
        said = output(verify, "check", *recorded)
        assert said.count(EXPLAINED) == 2 and GROUP in said, said
        unasked = output(verify, "check", *recorded, "--no-explain", "-v")
        assert not re.search("explained", unasked), unasked
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
