#!/usr/bin/env python3
"""Whether failures of mutants are explained by the hypotheses that their headers name.

usage: tests/mutants/hypotheses.py FA-VERIFY [--only REGEX] [--count N] [--results FILE.json] [--write docs/notes/hypotheses.md]
                  (from the top of the source tree)

A patch says `Hypothesis: NAME...` (any of these is the mistake that it plants) or `Hypothesis: none (why)`; that was
written before anything was explained. Each mutant runs the case that kills it (docs/notes/detection.md), the cases of
its line `Try:` and a few larger ones. Mutants are taken in a fixed order that chance has made, the first N of them;
those that are not built are built. --results: a file of earlier results, which are not asked for again. Exit: 0; 1 if
one is explained by hypotheses of which none is named in its header; 2 if a header names one that there is not."""
import concurrent.futures
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import build  # noqa: E402
import kill  # noqa: E402

KILLERS = "docs/notes/detection.md"
# Beside a killing case, which is often the smallest: cases on which mistakes can be told apart, by a mutant's name.
LARGER = {"cache_": "gqa append_5 window alibi splits_2", "flex_": "mod_alibi density_30 gqa", "memeff_": "bias_b f32_one_pass",
          "hopper_": "f16_64_alibi", "": "square_192 group_2 shift_62_65x127 right_gt_s"}
NONE = "none"


def killers() -> dict[str, str]:
    """The case that kills a mutant."""
    with open(KILLERS) as f:
        rows = [line.split(" | ") for line in f if line.startswith("| `")]
    # The table of those that kill.py has asked since has fewer columns.
    return {re.match(r"\| `(\w+)`", row[0]).group(1): row[3 if len(row) > 4 else 1] for row in rows if len(row) >= 4}


def expected(name: str) -> list[str]:
    """The hypotheses of a mutant's header; [] if none applies."""
    text = build.header(f"{build.FOLDER}/{name}.patch")["Hypothesis"]
    return [] if text.startswith(NONE) else text.split()


def unknown(verify: str, names: list[str]) -> list[str]:
    """Expected hypotheses that the program does not have."""
    done = subprocess.run([verify, "list", "hypotheses"], capture_output=True, text=True, check=True)
    there = {line.split()[0] for line in done.stdout.splitlines() if line}
    return sorted({h for name in names for h in expected(name)} - there)


def cases_of(name: str, killer: str) -> list[str]:
    tried = build.header(f"{build.FOLDER}/{name}.patch").get("Try", "").split()
    prefix = max((p for p in LARGER if name.startswith(p)), key=len)
    return list(dict.fromkeys([killer, *tried, *LARGER[prefix].split()]))


def explanations(verify: str, name: str, killer: str) -> dict[str, list]:
    """{case: [state, [hypothesis...]]} of the cases that fail."""
    pattern = "^(" + "|".join(re.sub(r"([^\w/=,:])", r"\\\1", c) for c in cases_of(name, killer)) + ")$"
    with tempfile.TemporaryDirectory() as folder:
        report = os.path.join(folder, "report.json")
        done = subprocess.run(
            [verify, "run", "--backend", f"mutant:{kill.subject_of(name)}", "--jobs", "1", "-q", "--no-progress",
             "--report", report, "--schedule-seed", "1", "--filter", pattern, "--cases", *kill.files_for(name)],
            capture_output=True, text=True, check=False)
        if done.returncode not in (0, 1, 4):
            sys.exit(f"mutant {name}: exit status {done.returncode}: {done.stdout[-500:]}{done.stderr[-500:]}")
        with open(report) as f:
            failures = json.load(f)["failures"]
    return {f["case"]["name"]: [f["state"], [e["hypothesis"] for e in f.get("explained_by", [])]] for f in failures}


def verdict(wanted: list[str], said: dict[str, list]) -> str:
    """Of one mutant: right (nothing else is named), both, WRONG ALONE, or not explained."""
    named = [set(names) for state, names in said.values() if state == "FAIL" and names]
    if any(not names & set(wanted) for names in named):
        return "WRONG ALONE"
    if not named:
        return "not explained"
    return "right" if all(names <= set(wanted) for names in named) else "both"


def row(name: str, said: dict[str, list]) -> str:
    h = build.header(f"{build.FOLDER}/{name}.patch")
    compared = {case: names for case, (state, names) in said.items() if state == "FAIL"}
    states = sorted({state for state, _ in said.values()} - {"FAIL"})
    named = sorted({n for names in compared.values() for n in names})
    share = f"{sum(bool(n) for n in compared.values())} of {len(compared)}" if compared else ", ".join(states)
    return (f"| `{name}` {h['What']} | {' '.join(expected(name)) or h['Hypothesis']} | {' '.join(named)} | {share} | "
            f"{verdict(expected(name), said)} |")


def totals(results: dict) -> str:
    applicable = {n: s for n, s in results.items() if expected(n)}
    text = f"{len(results)} mutants, a hypothesis applies to {len(applicable)}.\n\n| | applies | none applies |\n|---|---|---|\n"
    for word in ("right", "both", "WRONG ALONE", "not explained"):
        of = [sum(verdict(expected(n), s) == word for n, s in results.items() if bool(expected(n)) == applies)
              for applies in (True, False)]
        text += f"| {word} | {of[0]} | {of[1]} |\n"
    return text


def table(results: dict) -> str:
    order = sorted(results, key=lambda n: (not expected(n), n))
    head = "| Mutant | Expected | Named | Cases explained | |\n|---|---|---|---|---|\n"
    return totals(results) + "\n" + head + "".join(row(n, results[n]) + "\n" for n in order)


def write(path: str, text: str) -> None:
    """Replaces the text between the two marks."""
    with open(path) as f:
        before, _, rest = f.read().partition("<!-- hypotheses -->\n")
        _, _, after = rest.partition("<!-- end of hypotheses -->\n")
    with open(path, "w") as f:
        f.write(f"{before}<!-- hypotheses -->\n{text}<!-- end of hypotheses -->\n{after}")


def ensure_built(verify: str, name: str) -> None:
    folder = os.environ.get("FA_MUTANT_DIR") or os.path.join(os.path.dirname(os.path.realpath(verify)), "mutants")
    path = os.path.join(folder, f"{name}.so")
    os.makedirs(folder, exist_ok=True)
    if not os.path.exists(path):
        build.build(f"{build.FOLDER}/{name}.patch", path, "c++", "cc")


def in_order(only: str) -> list[str]:
    names = sorted(kill.names(only))
    random.Random(18).shuffle(names)
    return names


def main(arguments: list[str]) -> int:
    only, count, path, written = (kill.take(arguments, o) for o in ("--only", "--count", "--results", "--write"))
    if len(arguments) != 1:
        sys.exit(__doc__)
    verify, killed_by, lock = os.path.abspath(arguments[0]), killers(), threading.Lock()
    chosen = in_order(only or "")[:int(count or 1000)]
    known, save = kill.keep_in(path)
    missing = unknown(verify, chosen)

    def ask(name: str) -> None:
        ensure_built(verify, name)
        said = explanations(verify, name, killed_by[name])
        with lock:
            known[name] = said
            save()
            print(row(name, said), flush=True)

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for done in [pool.submit(ask, name) for name in chosen if name not in known]:
            done.result()
    results = {name: known[name] for name in chosen}
    print(totals(results))
    if written:
        write(written, table(results))
    if missing:
        print("no such hypothesis:", *missing, file=sys.stderr)
        return 2
    return 1 if any(verdict(expected(n), s) == "WRONG ALONE" for n, s in results.items()) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
