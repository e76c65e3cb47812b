"""Each finding shows again, where its version of the library is installed: its script ends with 1 and one line, each case of its file
fails under its adapter, its own predicate takes each failure, and the rules of others say what the entry says they do. The cases that the
package's waivers name fail without them and not with them. Then what no longer shows must be noticed: a script that ends with 0, a
case that passes. usage: reproduce.py FA-VERIFY"""

import dataclasses
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path[:0] = [str(pathlib.Path.cwd() / folder) for folder in ("python/tools", "tests/support")]

from fa_verify.adapters import NAMES
from fa_verify.adapters._problem import Problem
from findings_entries import entries, predicate
from rival_rules import verdicts, why_not
from share import share

FILES = [str(path) for path in sorted(pathlib.Path("cases").glob("*.json")) if path.stem != "schema"]


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


def waiver_faults(path, shown, binary):
    """An adapter's waived cases fail without the waivers, and are waived with them. Adapters with a finding that does not show here are left out."""
    waivers = json.loads(path.read_text())["waivers"]
    found = []
    for name in NAMES:
        asked = [w for w in waivers if re.search(w["match"]["backend"], f"py:{name}")]
        if not asked or not any(w["reason"].split(":")[0] in shown for w in asked):
            continue
        command = [binary, "run", "--backend", f"py:{name}", "--cases", *FILES, "--filter", "|".join(w["match"]["name"] for w in asked), "--jobs", "1", "-q"]
        for more, want in (["--waivers", str(path)], 0), ([], 1):
            done = subprocess.run([*command, *more], capture_output=True, text=True, timeout=300, env={**os.environ, "FA_PYTHON": sys.executable}, check=False)
            if done.returncode != want:
                found.append(f"{path.name}, {name}: {done.returncode}, not {want}, {'with' if more else 'without'} waivers: {(done.stdout + done.stderr)[-300:]}")
    return found


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
    for f in share(shown):
        found += script_faults(f) + case_faults(f, binary) + rival_faults(f)
    for path in sorted(pathlib.Path("python/fa_verify/waivers").glob("*.json")):
        found += waiver_faults(path, {f.name for f in shown}, binary)
    if shown and not found:
        found = [f"not noticed: {x}" for x in unnoticed(shown[0], binary)]
    print("\n".join(found) or f"{len(share(shown))} of {len(shown)} findings show")
    return 1 if found else 0 if shown else 77


if __name__ == "__main__":
    sys.exit(main())
