"""What version 0.1 of the program wrote (tests/versions/0.1/, made by record.sh) is still read, or refused by name; what
docs/reference/versions.md says of versions is what the program and the sources say.

usage: test_read.py FA-VERIFY CC (from the top of the source tree)
"""
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path.cwd()
VERIFY = pathlib.Path(sys.argv[1]).resolve()
CC = sys.argv[2]
OLD = ROOT / "tests/versions/0.1"
SUBJECT = "plugin:./one_key_too_many.so"  # the name that the recorded files have in them
failures: list[str] = []


def expect(holds, what):
    if not holds:
        failures.append(what)


def run(*arguments, code, says="", folder=None):
    """The program's output, both streams; what it should have been is noted if it was not."""
    done = subprocess.run([VERIFY, *arguments], cwd=folder, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    output = done.stdout + done.stderr
    if done.returncode != code or says not in output:
        failures.append(f"fa-verify {' '.join(map(str, arguments))}: exit {done.returncode} instead of {code}, or no \"{says}\":\n{output[:1500]}")
    return output


def load(path):
    return json.loads(path.read_text())


def build_plugin(folder, name, fault):
    """The plugin of 0.1, made with the header of then. fault: how many keys too many a causal row sees."""
    source = ROOT / "tests/exec/example_plugin_v1.c"
    command = [CC, "-std=gnu11", "-O2", "-shared", "-fPIC", f"-I{ROOT}", f"-DEXAMPLE_FAULT={fault}", "-o", folder / name, source, "-lm"]
    subprocess.run(command, check=True)


def check_case_file(folder):
    """Its cases, sweeps and random cases are the same recipes as then, and give the same worst ratios."""
    run("run", "--cases", "cases.json", "--backend", "ref-f32", "--report", "now.json", code=0, folder=folder)
    now = load(folder / "now.json")["cases"]
    then = [case for case in load(folder / "report.json")["cases"] if case["backend"] == "ref-f32"]
    expect(len(then) == 15, "the report of 0.1 has other cases than this test knows")
    for a, b in zip(then, now, strict=True):
        expect((a["name"], a["record"], a["state"]) == (b["name"], b["record"], b["state"]), f"{a['name']}: another case than in 0.1: {b}")


def check_report(folder):
    """repro, shrink, report, --html, --junit, --merge and --compare of a report of 0.1."""
    found = run("repro", "report.json", "-q", code=1, says="tests:4 passed:0 failed:4", folder=folder)
    for name in ("causal", "gqa", "sweep/seqlen_q=5,seqlen_k=5"):
        expect(f"FAIL {name} " in found, f"repro of 0.1's report does not fail {name}")
    run("repro", "report.json:1", "-q", code=1, says="tests:1 passed:0 failed:1", folder=folder)
    run("shrink", "report.json:0", "-q", "--out", "small.json", code=1, folder=folder)
    run("list", "cases", "--cases", "small.json", code=0, says='"causal"', folder=folder)
    run("report", "report.json", code=0, says="tests:30 passed:18 failed:4 skipped:8 error:0", folder=folder)
    run("report", "report.json", "--html", "page.html", "--junit", "junit.xml", code=0, folder=folder)
    expect("causal" in (folder / "page.html").read_text(), "the page of 0.1's report names no case")
    expect('tests="30" failures="4"' in (folder / "junit.xml").read_text(), "the JUnit file of 0.1's report counts differently")


def check_reports_together(folder):
    """--merge and --compare of a report of 0.1 with itself, and with this program's. Random cases are left out: see versions.md."""
    shutil.copy(folder / "report.json", folder / "again.json")
    run("report", "report.json", "again.json", "--merge", "all.json", code=0, folder=folder)
    expect(load(folder / "all.json")["summary"] == load(folder / "report.json")["summary"], "0.1's report merged with itself is another")
    listed = ("run", "--cases", "cases.json", "--filter", "^[^w]")
    now = folder / "now"
    for name, fault, code, says in (("wrong", 1, 1, "passed:3 failed:4"), ("mended", 0, 0, "passed:7 failed:0")):
        build_plugin(now, "one_key_too_many.so", fault)
        shutil.copy(folder / "cases.json", now)
        run(*listed, "--backend", SUBJECT, "--report", f"../{name}.json", code=code, says=says, folder=now)
    run("report", "report.json", "wrong.json", "--merge", "all.json", code=0, folder=folder)
    names = {case["name"] for case in load(folder / "all.json")["cases"]}
    expect(names == {case["name"] for case in load(folder / "report.json")["cases"]}, f"merged with a report of now: {sorted(names)}")
    run("report", "report.json", "wrong.json", "--compare", code=0, says="new:0 changed:0 fixed:0", folder=folder)
    run("report", "report.json", "mended.json", "--compare", code=0, says="new:0 changed:0 fixed:4", folder=folder)
    run("report", "mended.json", "report.json", "--compare", code=1, says="new:4 changed:0 fixed:0", folder=folder)


def check_journal(folder):
    """Its failures can be run again; only the program that began the run can go on with it."""
    run("repro", "cut.json:1", "-q", code=1, says="FAIL gqa", folder=folder)
    before = (folder / "cut.json.journal").read_bytes()
    resume = ("run", "--cases", "cases.json", "--backend", SUBJECT, "--jobs", "1", "--report", "cut.json", "--resume")
    said = run(*resume, code=2, says="cut.json.journal: a run of fa-verify 0.1.0 (", folder=folder)
    expect(f"and this is {program_version()} (" in said, f"the refusal does not name both versions: {said}")
    whole = before[: before.rindex(b"\n") + 1]
    expect((folder / "cut.json.journal").read_bytes() == whole, "more of a refused journal was changed than its torn line")
    # Names from a file of others go to the terminal only if they can be printed.
    text = before.decode().replace('"version":"0.1.0"', '"version":"\\u001b[2J"', 1)
    (folder / "cut.json.journal").write_text(text)
    said = run(*resume, code=2, says="a run of fa-verify ? (", folder=folder)
    expect("\x1b" not in said, "an escape sequence of a journal reaches the terminal")
    (folder / "cut.json.journal").write_text(text.replace('{"fa_journal":1', '{"fa_journal":2', 1))
    run(*resume, code=2, says="cut.json.journal:1: no journal", folder=folder)
    # A finished report of 0.1 is no run that this program can go on with either.
    shutil.copy(folder / "report.json", folder / "over.json")
    run("run", "--cases", "cases.json", "--backend", SUBJECT, "--report", "over.json", "--resume", code=2, says="a run of fa-verify 0.1.0", folder=folder)


def check_recorded(folder):
    run("check", "recorded.safetensors", code=1, says="o: 64 of 72 bad", folder=folder)
    kept = ("--cases", "cases.json", "--filter", "^(causal|gradients|cache)$")
    run("golden", "check", "golden", *kept, code=0, says="tests:3 passed:3", folder=folder)


def check_subjects(folder):
    """Children of version 1 are judged, those of a version to come are refused by name; plugins: test_plugin.sh, and above."""
    child = f"exec:python3 {ROOT / 'tests/exec/child.py'}"
    run("run", "--backend", child, "--jobs", "1", "--case", '{"dtype":"f32","head_dim":8,"seqlen_q":9,"backward":false}', code=0, says="passed:1", folder=folder)
    later = "exec:read line; echo '{\"id\":1,\"fa_exec\":3}'"
    run("run", "--backend", later, "--case", '{"seqlen_q":9}', code=2, says="\"fa_exec\" must be 1 or 2", folder=folder)


def check_later_formats(folder):
    """A file of a version to come is refused, and the message names what is understood."""
    (folder / "later.json").write_text('{"fa_cases": 2, "cases": []}')
    run("run", "--cases", "later.json", code=2, says="later.json: $.fa_cases: 2 is not a version of this format that can be read, which is 1", folder=folder)
    report = load(folder / "report.json")
    report["fa_report"] = 2
    (folder / "later.json").write_text(json.dumps(report))
    for command in (("report", "later.json"), ("repro", "later.json")):
        run(*command, code=2, says="later.json: $.fa_report: unknown version; 1 is allowed", folder=folder)
    (folder / "later.json").write_text('{"fa_waivers": 2, "waivers": []}')
    run("run", "--cases", "cases.json", "--waivers", "later.json", code=2, says="$.fa_waivers: missing or unknown version; 1 is allowed", folder=folder)


def program_version():
    return re.search(r"project\(fa-verify VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text()).group(1)


def check_stated():
    """--version, the page about versions and the changelog agree; the Python package takes the program's version."""
    said = run("--version", code=0)
    first, *rest = said.splitlines()
    expect(re.fullmatch(rf"fa-verify {re.escape(program_version())} \([\w.-]*\)", first), f"--version begins with {first}")
    page = (ROOT / "docs/reference/versions.md").read_text()
    for line in rest:
        name, number = re.match(r"([a-z ]+?) (\d+)", line).groups()
        expect(re.search(rf"^\| {name} \| {number} ", page, re.MULTILINE), f"docs/reference/versions.md does not have: {line}")
    changes = (ROOT / "docs/CHANGELOG.md").read_text()
    newest = re.search(r"^## (\d+\.\d+\.\d+)", changes, re.MULTILINE)
    expect(newest and newest.group(1) == program_version(), "the first version in docs/CHANGELOG.md is not that of CMakeLists.txt")
    package = (ROOT / "python/pyproject.toml").read_text()
    expect('dynamic = ["version"]' in package and not re.search(r'^version = "', package, re.MULTILINE), "python/pyproject.toml has a version of its own")
    regex = re.search(r"^regex = '(.*)'$", package, re.MULTILINE).group(1)
    found = re.search(regex, (ROOT / "CMakeLists.txt").read_text())
    expect(found and found.group("value") == program_version(), "the Python package does not find the program's version")


def main():
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        shutil.copytree(OLD, folder, dirs_exist_ok=True)
        build_plugin(folder, "one_key_too_many.so", 1)
        (folder / "now").mkdir()
        check_stated()
        check_case_file(folder)
        check_subjects(folder)
        check_report(folder)
        check_reports_together(folder)
        check_journal(folder)
        check_recorded(folder)
        check_later_formats(folder)
    print("\n".join(failures) or "what 0.1 wrote is read")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
