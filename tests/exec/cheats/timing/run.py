#!/usr/bin/env python3
"""Times every child of cheats.py: none may get a speed, and each must get one when the defence that catches it is switched off.
An honest child gets one, spoken to in either way.

usage: run.py FA_VERIFY [--only REGEX]

Prints cheat | defence | caught as | without it. Nothing here depends on how fast the machine is. Exit: 0, 1 after a surprise."""
import argparse
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
CASE = {"name": "tiny", "dtype": "f32", "heads_q": 1, "seqlen_q": 32, "seqlen_k": 32, "head_dim": 16, "backward": False}

#: cheat: (the defence without which it passes, what catches it, a piece of the message)
CHEATS = {
    "lazy": ("claim", "claim", "not the one that it had summed"),
    "late": ("warmup", "sample", "were not written"),
    "pointers": ("chain", "sample", "elements are wrong"),
    "fingerprint": ("chain", "sample", "elements are wrong"),
    "warm": ("warmup", "sample", "elements are wrong"),
    "timed": ("warmup", "sample", "elements are wrong"),
    "clock": ("claim", "claim", "by the clock it never took less"),
    "skips": ("sample", "sample", "elements are wrong"),
    "replay": ("chain", "sample", "elements are wrong"),
}


def bench(program, child, *options):
    """The candidate's entry of the report, and the exit status."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        command = [program, "bench", "--backend", f"exec:exec {sys.executable} {HERE}/{child}", "--case", json.dumps(CASE), "--rival", "ref-f32"]
        done = subprocess.run([*command, "--report", str(report), *options], capture_output=True, text=True)
        if not report.exists():
            return {"state": f"no report: {done.stderr.strip()[-300:]}"}, done.returncode
        candidate = json.loads(report.read_text())["bench"]["cases"][0]["participants"][0]
    return candidate, done.returncode


def verdict(candidate, status):
    """("speed", ""), or what found something and its words; anything else is a surprise."""
    if "no_speed" in candidate and status == 1:
        return candidate["no_speed"]["by"], candidate["no_speed"]["text"]
    if "time" in candidate and status == 0:
        return "speed", ""
    return "surprise", f"exit status {status}: {json.dumps(candidate)[:300]}"


def main(arguments):
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1].split("\n")[0])
    parser.add_argument("program")
    parser.add_argument("--only", default="", metavar="REGEX")
    options = parser.parse_args(arguments)
    surprises = 0
    print(f"{'cheat':12} | {'defence':8} | {'caught as':60} | without it")
    for kind in ("honest.py", "honest.py --calls"):
        if re.search(options.only, kind):
            said = verdict(*bench(options.program, kind))
            surprises += said[0] != "speed"
            print(f"{kind[:12]:12} | {'':8} | {'':60} | {said[0]} {said[1]}", flush=True)
    for name, (defence, by, words) in CHEATS.items():
        if not re.search(options.only, name):
            continue
        caught, text = verdict(*bench(options.program, f"cheats.py {name}"))
        passed, why = verdict(*bench(options.program, f"cheats.py {name}", "--without", defence))
        fine = caught == by and words in text and passed == "speed"
        surprises += not fine
        print(f"{name:12} | {defence:8} | {caught + ': ' + text:60.60} | {passed} {why}{'' if fine else '   SURPRISE'}", flush=True)
    return 1 if surprises else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
