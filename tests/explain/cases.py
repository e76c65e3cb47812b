"""What the tests of explanations share: runs of the plugin `planted` with one mistake, and what their reports say."""
import concurrent.futures
import json
import os
import subprocess
import sys
import tempfile

SKIPPED = 77


def hypotheses(verify: str) -> str:
    """What `list hypotheses` prints; ends the test as skipped where this program has none."""
    done = subprocess.run([verify, "list", "hypotheses"], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        print("skipped: this program has no hypotheses")
        sys.exit(SKIPPED)
    return done.stdout


def failures(verify: str, plugin: str, planted: str, cases: list[dict]) -> list[dict]:
    """The failures of a run over the cases, as the JSON report has them. One that is not of the numbers ends the test."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "report.json")
        command = [verify, "run", "--backend", f"plugin:{plugin}", "--cases", "-", "--report", path, "--jobs", "1",
                   "--no-progress", "--no-probe", "--color", "never"]
        text = json.dumps({"fa_cases": 1, "cases": cases})
        done = subprocess.run(command, input=text, env={**os.environ, "FA_PLANTED": planted}, capture_output=True,
                              text=True, check=False)
        if done.returncode not in (0, 1):
            sys.exit(f"{planted}: exit code {done.returncode}: {done.stderr}")
        with open(path) as f:
            found = json.load(f)["failures"]
    for failure in found:
        if failure["state"] != "FAIL":
            sys.exit(f"{planted}: case {failure['name']}: {failure['state']}: {failure.get('reason')}")
    return found


def names(failure: dict) -> list[str]:
    """The hypotheses that explain a failure."""
    return [e["hypothesis"] for e in failure.get("explained_by", [])]


def in_parallel(work, items: list) -> list:
    """work(*item) of each item, on all processors; each run is a process of its own."""
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return [done.result() for done in [pool.submit(work, *item) for item in items]]
