"""What other projects' acceptance rules make of mutants (tests/mutants/rival_rules.c): on the cases that are customary,
of which each runs in a process of its own on each backend that has other kernels for it."""
import json
import os
import subprocess
import tempfile
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor

import compiling
import programs_suite

FILES = ["tests/mutants/typical.json", "tests/mutants/typical_flex.json"]
DEVICES = ([], ["--device", "hopper"])
TOGETHER = 25  # mutants of one process, which runs the program as it is once for all of them
RULES = {"fa2x": "FA 2x", "allclose": "allclose 1e-2", "xformers": "xformers", "xformers2": "xformers, loosened"}


def names():
    found = []
    for path in FILES:
        with open(path) as f:
            found += [case["name"] for case in json.load(f)["cases"]]
    return found


def ask_case(program, device, name, mutants):
    """The program's lines about the mutants, as fields."""
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as f:
        f.write(name + "\n")
        f.flush()
        words = [program, "--zeroed", "--switched", *device, "--names", f.name, *FILES, "--", *(str(m.number) for m in mutants)]
        done = subprocess.run(words, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    if done.returncode:
        raise compiling.NotBuilt(f"rival_rules on {name}: exit status {done.returncode}: {done.stderr[-300:]}")
    return [line.split("\t") for line in done.stdout.splitlines() if not line.startswith("unchanged\t")]


def ask(batch, objects, keys, jobs):
    """{key: {"rejected": {rule: cases}, "compared": runs, "stopped": runs}}. A mutant that every rule has rejected is not asked on."""
    some = [m for m in batch.mutants if m.key in keys]
    program = batch.link("rival_rules", objects, [programs_suite.switch(batch)])
    key_of = {str(m.number): m.key for m in some}
    found = {m.key: {"rejected": defaultdict(list), "compared": 0, "stopped": 0} for m in some}

    def ask_some(device, name, part):
        waiting = [m for m in part if not all(is_seen(found[m.key], rule) for rule in RULES)]
        for number, rule, killer, compared, stopped in ask_case(program, device, name, waiting) if waiting else ():
            one = found[key_of[number]]
            if killer != "-":
                one["rejected"][rule].append(killer)
            if rule == "fa2x":
                one["compared"] += int(compared)
                one["stopped"] += int(stopped)

    with ThreadPoolExecutor(jobs) as pool:
        runs = [(device, name, some[i:i + TOGETHER]) for name in names() for device in DEVICES for i in range(0, len(some), TOGETHER)]
        for done in [pool.submit(ask_some, *run) for run in runs]:
            done.result()
    return found


def is_seen(one, rule):
    return bool(one["rejected"].get(rule))


def text_of(found, rows, known):
    """A table; found: of ask(), of mutants that are not excused; rows: what the judge says of them, by key."""
    real = {k: one for k, one in found.items() if k not in known}
    lines = [f"| Rule | rejects, of {len(real)} mutants that are not equivalent |", "|---|---|"]
    lines += [f"| {title} | {sum(is_seen(one, rule) for one in real.values())} |" for rule, title in RULES.items()]
    any_rule = sum(any(is_seen(one, rule) for rule in RULES) for one in real.values())
    ended = sum(one["stopped"] > 0 and one["compared"] == 0 for one in real.values())
    lines.append(f"| any of them | {any_rule} |")
    lines.append(f"| fa-verify, on its own cases | {sum(k in rows and rows[k].killed for k in real)} |")
    reached = sum(one["compared"] + one["stopped"] > 0 for one in real.values())
    return "\n".join(lines) + (f"\n\nThe customary cases reach {reached} of them; of {ended} every run was ended (a race, memory out of "
                               "bounds, a wait without end, a crash), so that a rule had nothing to compare.\n")


def write(path, found):
    os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    with open(path, "w") as f:
        json.dump(found, f)


def read(path):
    with open(path) as f:
        return json.load(f)
