#!/usr/bin/env python3
"""The GitHub action and the pipelines of docs/guide/ci.md on a repository with a kernel, as their services would run them.

A broken kernel makes the job red, with an annotation at its own line; held against a baseline with that failure it is green, a new
bug is red, and the mended kernel is green. The action's steps, inputs and outputs are read from action.yml, the pipelines from
the page.

usage: test_action.py FA-VERIFY   (from the top of the source tree)
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import small_yaml  # noqa: E402

SOURCE = pathlib.Path.cwd()
ACTION = SOURCE / ".github/actions/verify"
PAGE = SOURCE / "docs/guide/ci.md"
PLUGIN = SOURCE / "tests/exec/example_plugin.c"
EXPRESSION = re.compile(r"\$\{\{ *([\w.-]+) *\}\}")
COMMAND = re.compile(r"::(\w+) (.*?)::(.*)")

CASES = {"fa_cases": 1, "defaults": {"dtype": "f32", "seqlen_q": 9, "head_dim": 8},
         "cases": [{"name": "plain"}, {"name": "long", "seqlen_k": 70}, {"name": "two_heads", "heads_q": 2},
                   {"name": "causal", "mask": {"type": "causal"}, "seqlen_k": 12},
                   {"name": "causal_square", "mask": {"type": "causal"}}]}
MAKEFILE = "kernel.so: kernels/attention.c\n\t$(CC) -shared -fPIC -O1 -I$(FA_INCLUDE) $(BUGS) -o $@ $< -lm\n"
KERNEL = '''import fa_verify
import numpy as np


@fa_verify.kernel(dtypes=["f32"])
def attention(call):
    s = np.einsum("bqhd,bkhd->bhqk", call.q, call.k) * np.float32(call.scale * FACTOR)
    p = np.exp(s - s.max(-1, keepdims=True))
    return np.einsum("bhqk,bkhd->bqhd", p / p.sum(-1, keepdims=True), call.v)

'''

checks = failures = 0


def check(good, what):
    global checks, failures
    checks += 1
    if not good:
        failures += 1
        print(f"failed: {what}")


def pages_pipeline(first_line):
    """The pipeline of the page that begins with this comment."""
    blocks = re.findall(r"```yaml\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S)
    found = [text for text in blocks if text.startswith(f"# {first_line}\n")]
    check(len(found) == 1, f"{PAGE.name} has one pipeline for {first_line}")
    return small_yaml.read(found[0])


class Repository:
    """A repository with a kernel in C, in a folder of its own."""

    def __init__(self, program):
        self.folder = tempfile.TemporaryDirectory(prefix="fa-action-")
        self.path = pathlib.Path(self.folder.name) / "attention"
        self.program = program
        for name in ("kernels", "ci", "cases"):
            (self.path / name).mkdir(parents=True)
        shutil.copy(PLUGIN, self.path / "kernels/attention.c")
        (self.path / "Makefile").write_text(MAKEFILE)
        (self.path / "cases/attention.json").write_text(json.dumps(CASES, indent=1))
        if shutil.which("git"):
            git = ["git", "-c", "user.name=a", "-c", "user.email=a@b.c", "-C", str(self.path)]
            for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "Compute attention"]):
                subprocess.run([*git, *words], check=True)

    def environment(self, **more):
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("GITHUB_", "INPUT_", "CI"))}
        return {**kept, "FA_INCLUDE": str(SOURCE), "PYTHONPATH": str(SOURCE / "python"), **more}

    def make(self, bugs=""):
        subprocess.run(["make", "-s", "-B", "kernel.so"], cwd=self.path, check=True, env=self.environment(BUGS=bugs))

    def line_of(self, file, text):
        lines = (self.path / file).read_text().splitlines()
        return next(number for number, line in enumerate(lines, 1) if text in line)


class Job:
    """What a run of the action leaves."""

    def __init__(self, repository, **inputs):
        action = small_yaml.read((ACTION / "action.yml").read_text())
        unknown = set(inputs) - set(action["inputs"])
        check(not unknown, f"inputs that the action does not have: {unknown}")
        given = {name: inputs.get(name, about.get("default") or "") for name, about in action["inputs"].items()}
        self.values = {"github.action_path": str(ACTION), **{f"inputs.{name}": value for name, value in given.items()}}
        self.code, self.text, self.summary = 0, "", ""
        for step in action["runs"]["steps"]:
            if "run" in step and self.code == 0:
                self.run_step(repository, step)
        self.outputs = {name: self.evaluate(about["value"]) for name, about in action["outputs"].items()}
        self.commands = [match.groups() for match in map(COMMAND.match, self.text.splitlines()) if match]

    def evaluate(self, text):
        return EXPRESSION.sub(lambda match: self.values.get(match[1], ""), text)

    def run_step(self, repository, step):
        outside = pathlib.Path(repository.folder.name)
        files = {"GITHUB_OUTPUT": outside / "output", "GITHUB_STEP_SUMMARY": outside / "summary"}
        for file in files.values():
            file.write_text("")
        environment = repository.environment(
            GITHUB_ACTIONS="true", GITHUB_WORKSPACE=str(repository.path), FA_VERIFY_BINARY=repository.program,
            **{key: str(file) for key, file in files.items()}, **{key: self.evaluate(value) for key, value in step["env"].items()})
        done = subprocess.run(["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", self.evaluate(step["run"])], cwd=repository.path,
                              env=environment, capture_output=True, text=True, check=False)
        self.code, self.text, self.errors = done.returncode, done.stdout, done.stderr
        self.summary = files["GITHUB_STEP_SUMMARY"].read_text()
        for line in files["GITHUB_OUTPUT"].read_text().splitlines():
            name, value = line.split("=", 1)
            self.values[f"steps.{step['id']}.outputs.{name}"] = value

    def of_kind(self, kind):
        return [(properties, message) for found, properties, message in self.commands if found == kind]

    def expect(self, code, errors, what):
        check(self.code == code, f"{what}: exit code {self.code}, not {code}\n{self.text}{self.errors}")
        check(len(self.of_kind("error")) == errors, f"{what}: {len(self.of_kind('error'))} errors annotated, not {errors}\n{self.text}")
        check(len(self.of_kind("notice")) == (code != 2), f"{what}: one notice, of the counts")


def test_action(repository):
    step = next(step for step in pages_pipeline("GitHub")["jobs"]["verify"]["steps"] if "actions/verify@" in step.get("uses", ""))
    inputs = {**step["with"], "tier": "", "cases": "cases/attention.json"}
    place = f"file=kernels/attention.c,line={repository.line_of('kernels/attention.c', 'PLACE(__LINE__)')},"

    repository.make("-DEXAMPLE_FAULT=1")
    broken = Job(repository, **inputs)
    broken.expect(1, 1, "a broken kernel")
    errors = broken.of_kind("error") or [("", "")]
    check(errors[0][0].startswith(place), f"the annotation is at the kernel's line: {errors}")
    check("causal" in errors[0][1], "it says which cases")
    check([m for _, m in broken.of_kind("warning")] == ["there is no baseline ci/baseline.json: every failure counts"], "no baseline is said")
    check("| cause | cases |" in broken.summary and "fails" in broken.summary, f"a table on the job's page: {broken.summary}")
    check(broken.outputs["code"] == "1" and broken.outputs["report"] == "fa-verify-report/report.json", str(broken.outputs))
    junit = xml.etree.ElementTree.parse(repository.path / broken.outputs["junit"]).getroot()
    places = {case.get("name"): f"file={case.get('file')},line={case.get('line')}," for case in junit.iter("testcase")}
    check(len(places) == 5 and set(places.values()) == {place}, f"JUnit has the kernel's place: {places}")
    check((repository.path / broken.outputs["html"]).read_text().startswith("<!"), "a page")

    shutil.copy(repository.path / broken.outputs["report"], repository.path / step["with"]["baseline"])
    again = Job(repository, **inputs)
    again.expect(0, 0, "the same kernel with a baseline")
    check("KNOWN causal " in again.text and " known:" in again.text, again.text)

    repository.make("-DEXAMPLE_FAULT=1 -DEXAMPLE_LSE_FACTOR=2")
    worse = Job(repository, **inputs)
    worse.expect(1, 1, "another bug")
    check(any("lse" in message for _, message in worse.of_kind("error")), str(worse.commands))

    repository.make()
    mended = Job(repository, **inputs)
    mended.expect(0, 0, "the mended kernel")
    check("fixed: causal " in mended.text and "passes" in mended.summary, mended.text)

    tier = Job(repository, **{**inputs, "tier": "smoke", "seconds": "1"})
    tier.expect(0, 0, "a tier")
    check("tier smoke: ran " in tier.text and "random ones" in tier.text, tier.text)
    Job(repository, **{**inputs, "require": "all", "filter": "^plain$"}).expect(0, 0, "a filter, and all of it required")
    unmet = Job(repository, **{**inputs, "backend": "plugin:./kernel.so", "cases": "cases/attention.json", "require": "required.json"})
    unmet.expect(2, 0, "a file of requirements that is not there")
    Job(repository, **{**inputs, "backend": ""}).expect(2, 1, "no backend")


def test_required(repository):
    (repository.path / "required.json").write_text('{"features": ["causal", "softcap"]}')
    job = Job(repository, backend="plugin:./kernel.so", tier="", cases="cases/attention.json", require="required.json")
    job.expect(1, 0, "a requirement that is not met")
    check([message.split(":")[0] for _, message in job.of_kind("warning")] == ["features softcap"], str(job.commands))


def test_python(repository):
    try:
        import numpy  # noqa: F401
    except ImportError:
        print("a kernel in Python: not tried, there is no numpy")
        return
    (repository.path / "cases/plain.json").write_text(json.dumps({**CASES, "cases": CASES["cases"][:1]}))
    for factor, code in ((1.01, 1), (1, 0)):
        (repository.path / "kernels/attention.py").write_text(KERNEL.replace("FACTOR", str(factor)))
        job = Job(repository, backend=f"exec:{sys.executable} -m fa_verify.serve kernels/attention.py", tier="", cases="cases/plain.json")
        job.expect(code, code, f"a kernel in Python, factor {factor}")
        line = repository.line_of("kernels/attention.py", "@fa_verify.kernel")
        places = [properties.split(",title=")[0] for properties, _ in job.of_kind("error")]
        check(places == [f"file=kernels/attention.py,line={line}"] * code, str(job.commands))


def test_gitlab(repository):
    job = pages_pipeline("GitLab")["attention"]
    programs = pathlib.Path(repository.folder.name) / "bin"
    programs.mkdir()
    (programs / "fa-verify").symlink_to(repository.program)
    environment = repository.environment(PATH=f"{programs}:{os.environ['PATH']}", CI="true", BUGS="-DEXAMPLE_FAULT=1")
    lines = [line for line in job["before_script"] if not line.startswith("pip install ")]
    check(len(lines) == len(job["before_script"]) - 1, "one line installs the package")
    script = [line.replace("--tier smoke", "--cases cases/attention.json") for line in job["script"]]
    check(script != job["script"], "the tier, which takes its time, is replaced by the cases of the test")
    for baseline, code in ((True, 0), (False, 1)):
        if not baseline:
            (repository.path / "ci/baseline.json").write_text('{"fa_report": 1, "summary": {"total": 0, "passed": 0, "failed": 0, '
                                                              '"skipped": 0, "error": 0}, "failures": [], "cases": []}')
        done = subprocess.run(["bash", "-ec", "\n".join(["rm -f kernel.so", *lines, *script])], cwd=repository.path, env=environment,
                              capture_output=True, text=True, check=False)
        check(done.returncode == code, f"GitLab's script, {baseline=}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
        subprocess.run(["bash", "-ec", "\n".join(job["after_script"])], cwd=repository.path, env=environment, check=True, capture_output=True)
        failed = list(xml.etree.ElementTree.parse(repository.path / job["artifacts"]["reports"]["junit"]).getroot().iter("failure"))
        check(bool(failed) == bool(code), f"JUnit has the failures that count: {len(failed)}")
        check(all((repository.path / path).exists() for path in job["artifacts"]["paths"]), "every artifact is there")


def main():
    if not shutil.which("make") or not shutil.which("cc"):
        print("skipped: no make, or no cc")
        return 77
    repository = Repository(str(pathlib.Path(sys.argv[1]).resolve()))
    test_action(repository)
    test_required(repository)
    test_python(repository)
    test_gitlab(repository)
    print(f"{checks} checks, {failures} failed")
    return failures > 0 or checks < 40


if __name__ == "__main__":
    sys.exit(main())
