"""Each finding shows again, where its version of the library is installed: its script ends with 1 and one line, each case of its file
fails under its adapter, its own predicate takes each failure, and the rules of others say what the entry says they do. Then what no longer
shows must be noticed: a script that ends with 0, a case that passes. usage: reproduce.py FA-VERIFY"""

import dataclasses
import json
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path.cwd() / "python/tools"))

from findings_entries import entries, predicate
from rival_rules import verdicts, why_not

from fa_verify.adapters._problem import Problem


def script_faults(f):
    done = subprocess.run([sys.executable, str(f.script)], capture_output=True, text=True, timeout=200, check=False)
    lines = done.stdout.strip().split("\n")
    if done.returncode != 1 or "Traceback" in done.stderr:
        return [f"{f.name}: its script ends with {done.returncode}, not 1: {(done.stdout + done.stderr)[-300:]}"]
    return [] if len(lines) == 1 and lines[0] else [f"{f.name}: its script prints {len(lines)} lines"]


def case_faults(f, binary):
    failing = {case["name"] for case in json.loads(f.cases.read_text())["cases"]} - set(f.data.get("passing", ()))
    with tempfile.TemporaryDirectory() as scratch:
        report = pathlib.Path(scratch) / "report.json"
        command = [binary, "run", "--backend", f"py:{f.data['adapter']}", "--cases", str(f.cases), "--jobs", "1", "--timeout", "60", "--report", str(report), "-q"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, env={**os.environ, **f.data.get("environment", {}), "FA_PYTHON": sys.executable}, check=False)
        told = json.loads(report.read_text()) if report.exists() else {"failures": []}
    holds = predicate(f)
    failures = [x for x in told["failures"] if x["state"] != "SKIP"]
    if {x["name"] for x in failures} != failing:
        return [f"{f.name}: {len(failures)} of {len(failing)} cases fail: {(done.stdout + done.stderr)[-300:]}"]
    return [f"{f.name}: its predicate does not take {x['name']}" for x in failures if not holds(Problem(x["case"]), x)]


def rival_faults(f):
    said = verdicts(f) or {"own": "no numbers", "allclose": "no numbers"}
    return [] if said == f.data.get("rivals") else [f"{f.name}: rivals say {said}: python3 python/tools/rival_rules.py --write {f.name}"]


def unnoticed(f, binary):
    """The same finding with a script and a case that show nothing."""
    with tempfile.TemporaryDirectory() as scratch:
        root = pathlib.Path(scratch)
        for folder in ("docs/findings", "cases/findings"):
            (root / folder).mkdir(parents=True)
        harmless = dataclasses.replace(f, root=root)
        harmless.script.write_text("print('nothing')\n")
        case = {"name": "plain", "note": "nothing is wrong", "family": "memeff", "dtype": "f32", "seqlen_q": 16, "head_dim": 16, "backward": False, "mask": {"type": "causal"}}
        harmless.cases.write_text(json.dumps({"fa_cases": 1, "cases": [case]}))
        missed = [] if script_faults(harmless) else ["a script that ends with 0"]
        return missed + ([] if case_faults(harmless, binary) else ["a case that passes"])


def main():
    binary, shown, found = sys.argv[1], [], []
    for f in entries():
        if reason := why_not(f):
            print(f"{f.name}: skipped: {reason}")
            continue
        shown.append(f)
        found += script_faults(f) + case_faults(f, binary) + rival_faults(f)
    if shown and not found:
        found = [f"not noticed: {x}" for x in unnoticed(shown[0], binary)]
    print("\n".join(found) or f"{len(shown)} findings show")
    return 1 if found else 0 if shown else 77


if __name__ == "__main__":
    sys.exit(main())
