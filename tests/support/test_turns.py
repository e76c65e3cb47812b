#!/usr/bin/env python3
"""Every test that takes turns (turn.sh) has its turn once in four days, and what it tries in shares is tried whole in the end; every name in
tests/turns.cmake is that of a test; and .ci/run counts as the tests do. Each is seen to fail on copies that are wrong.

usage: test_turns.py BUILD (from the top of the source tree)"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path.cwd()
FIRST = 20781  # any day; not the first of a turn
SHARE = 12
OF_A_TOOLKIT = re.compile("cubin|cuda|nvcc|nvrtc")  # tests that are not everywhere
# What share_has says of a list of as many items as there are shares, with the settings that turn.sh passes on.
ITEMS = f". tests/support/share.sh; for i in {{0..{SHARE - 1}}}; do ! share_has $i || printf '%d ' $i; done"


def turn(script, number, by, day, command):
    """What turn.sh prints and returns on a day."""
    environment = {**os.environ, "FA_TEST_SHARE": str(SHARE), "FA_TEST_DAY": str(day)}
    done = subprocess.run(["bash", script, number, by, *command], cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def faults_of_turn(script, number, by, period):
    """How a turn is not once in a period, or leaves items of a list out, as sentences."""
    days = period * SHARE // int(by)
    said = [turn(script, number, by, day, ["bash", "-c", ITEMS]) for day in range(FIRST, FIRST + days)]
    found = []
    for i in range(0, days, period):
        if [code for code, _ in said[i:i + period]].count(0) != 1:
            found.append(f"turn {number}: not once in the {period} days from day {FIRST + i}")
    if any(code not in (0, 77) or (code == 77 and "skipped: " not in text) for code, text in said):
        found.append(f"turn {number}: neither run nor skipped with a reason")
    tried = sorted(int(word) for code, text in said if code == 0 for word in text.split() if word.isdigit())
    if tried != list(range(SHARE)):
        found.append(f"turn {number}: of {SHARE} items {days} days try {tried}")
    return found


def taken_turns(build):
    """(name, number/period, by) of every test of the build that takes turns, and all names."""
    listing = subprocess.run(["ctest", "--test-dir", build, "--show-only=json-v1"], capture_output=True, text=True, check=True)
    tests = {test["name"]: test.get("command", []) for test in json.loads(listing.stdout)["tests"]}
    return [(name, *c[2:4]) for name, c in tests.items() if len(c) > 4 and c[1].endswith("/turn.sh")], set(tests)


def lists(text):
    """name of a list of turns.cmake -> what is in it"""
    return {name: words.split() for name, words in re.findall(r"^set\((FA_\w+) ([^)$]*)\)", text, re.MULTILINE)}


def faults_of_lists(text, tests, turns, sanitized):
    """What the lists name that is no test, or name twice; and tests under sanitizers that run by accident every day."""
    prefix = "FA_SANITIZED_" if sanitized else "FA_TURN_"
    named = [name for key, names in lists(text).items() if key.startswith(prefix) for name in names]
    found = [f"{name} is in two lists" for name in set(named) if named.count(name) > 1]
    found += [f"{name} is no test" for name in sorted(set(named) - tests) if not OF_A_TOOLKIT.search(name)]
    daily = lists(text)["FA_SANITIZED_DAILY"] if sanitized else sorted(tests - set(named))
    return found + [f"{name} has no turn" for name in sorted(tests - set(daily) - {name for name, *_ in turns})]


def faults_of_script(text, period):
    """Whether .ci/run gives the kernels sanitizers in turn 0 of as many turns, and compiles each quarter for each architecture once in two periods."""
    choice, sanitizers = re.search(r"^if is_turn \S+; then architectures=.*?^part=.*?$", text, re.MULTILINE | re.DOTALL), re.findall(r"if is_turn (\S+); then trusts=", text)
    if not choice:
        return [".ci/run chooses no architectures"]
    compiled = sorted(subprocess.run(["bash", "-c", f'FA_TEST_DAY={day}\nis_turn() {{ [ $(({day} % ${{1#*/}})) = "${{1%/*}}" ]; }}\n{choice.group(0)}\necho "$architectures;$part"'],
                                     capture_output=True, text=True, check=False).stdout for day in range(FIRST, FIRST + 2 * period))
    found = [] if sanitizers == [f"0/{period}"] else [f".ci/run gives kernels sanitizers in turn {sanitizers}"]
    wanted = [f"{arch};{part}/4\n" for arch in ("80", "90a") for part in range(4)]
    return found + ([] if compiled == wanted else [f".ci/run compiles {compiled}"])


def planted(text, tests, turns, sanitized, period):
    """Faults that are not noticed."""
    script = (ROOT / "tests/support/turn.sh").read_text()
    missed = []
    with tempfile.TemporaryDirectory() as folder:
        for old, new in (("day % period)) !=", "day % (period + 1))) !="), ("FA_TEST_DAY=$((day / period))", "FA_TEST_DAY=$day"),
                         ("exit 77", "exit 0")):
            wrong = pathlib.Path(folder) / "turn.sh"
            wrong.write_text(script.replace('"$(dirname -- "${BASH_SOURCE[0]}")/share.sh"', "tests/support/share.sh").replace(old, new))
            if old not in script or not faults_of_turn(wrong, f"1/{period}", "1", period):
                missed.append(f"not noticed: {new} for {old}")
    if not faults_of_lists(text.replace("set(FA_TURN_0 ", "set(FA_TURN_0 gone ").replace("DAILY case_errors", "DAILY gone"), tests, turns, sanitized):
        missed.append("not noticed: a name that is no test")
    run = (ROOT / ".ci/run").read_text()
    for old, new in (("is_turn 0/4; then trusts", "is_turn 1/4; then trusts"), ("DAY / 2 % 4", "DAY % 4")):
        if old not in run or not faults_of_script(run.replace(old, new), period):
            missed.append(f"not noticed: {new} for {old}")
    return missed


def main():
    build = sys.argv[1]
    sanitized = "FA_SANITIZE:BOOL=ON" in (pathlib.Path(build) / "CMakeCache.txt").read_text()
    text = (ROOT / "tests/turns.cmake").read_text()
    period = int(lists(text)["FA_TURNS"][0])
    turns, tests = taken_turns(build)
    found = faults_of_lists(text, tests, turns, sanitized) + faults_of_script((ROOT / ".ci/run").read_text(), period)
    found += [f"{name} takes turn {number}" for name, number, _ in turns if not number.endswith(f"/{period}")]
    for number, by in sorted({(number, by) for _, number, by in turns}):
        found += faults_of_turn(ROOT / "tests/support/turn.sh", number, by, period)
    found += planted(text, tests, turns, sanitized, period)
    print("\n".join(found) or f"{len(turns)} of {len(tests)} tests take turns, each once in {period} days")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
