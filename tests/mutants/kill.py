#!/usr/bin/env python3
"""Which mutants of the kernels (tests/mutants/) the judge kills, and which of them other projects' rules would kill.

usage: tests/mutants/kill.py FA-VERIFY [--only REGEX] [--all RIVAL_RULES] [--write docs/notes/detection.md] [--results FILE.json]
                  [--files REGEX] [--judge host]

Needs every mutant built (target `mutants`), and `unchanged`, the same kernels without a bug, which must pass. A mutant
runs the case files up to the first case that does not pass, or, of class `waste`, for which it does more than is recorded
(tests/kernels/work.py), starting with the files named in its own name or in its line `Cases:`; on host:hopper if its line
`Device:` says so. --all: also applies the other rules (tests/mutants/rival_rules.c). --results: a file of earlier
results, to which new ones are added. --judge host: the GPU's judge decides first, on the processor, and a mutant that it
passes and the CPU does not is an error. Exit: 0 all are killed or in EQUIVALENT, 1 one survives, 2 one is not built."""
import json
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "kernels"))
import build  # noqa: E402
import work  # noqa: E402

FILES = [f"cases/{name}.json" for name in ("causal", "window", "edge", "prefill", "gqa", "varlen", "dropout", "alibi", "softcap",
                                           "headdim", "offset", "memeff", "kvcache", "kvcache_mods", "hopper", "flex", "masks", "merge", "sinks", "mla", "topk",
                                           "kvcache_large", "hopper_cache", "quantized", "quantized_cache", "mixed_cache", "mixed", "amax",
                                           "four_bit_cache")]
# Mutant -> why no case can distinguish it from the kernels without a bug.
EQUIVALENT = {}
JUDGED = []  # options that say by whom
TYPICAL = ["tests/mutants/typical.json", "tests/mutants/typical_flex.json", "tests/mutants/typical_quantized.json"]
RULES = {"fa2x": "FA 2x", "allclose": "allclose 1e-2", "xformers": "xformers", "xformers2": "loosened"}


def names(only):
    found = sorted(n[:-len(".patch")] for n in os.listdir(build.FOLDER) if n.endswith(".patch"))
    order = ["mask", "softmax", "layout", "backward", "bias", "dropout", "concurrency", "memory", "cache", "flex", "waste"]
    rank = {n: build.header(f"{build.FOLDER}/{n}.patch")["Class"] for n in found}
    found.sort(key=lambda n: (order.index(rank[n]) if rank[n] in order else len(order), rank[n], n))
    return [n for n in found if re.search(only, n)]


def folder_of(program):
    """Of the libraries that this program loads."""
    return os.environ.get("FA_MUTANT_DIR") or os.path.join(os.path.dirname(os.path.realpath(program)), "mutants")


def built(verify):
    folder = folder_of(verify)
    return {n[:-len(".so")] for n in os.listdir(folder) if n.endswith(".so")} if os.path.isdir(folder) else set()


def worst_tensor(failure):
    """The tensor with the strongest evidence, and what it is."""
    worst, text = -1.0, ""
    for t in failure.get("tensors", []):
        ratio, bad, classes = float(t["worst_ratio"]), t["bad"], t["class_bad"]
        if classes:
            weight, said = 1e300, f"{t['name']}: {classes} NaN/Inf wrong"
        elif bad:
            weight, said = ratio, f"{t['name']}: {bad} of {t['count']} bad, ratio {ratio:.3g}"
        else:
            weight, said = ratio * 1e-9, f"{t['name']}: statistics, ratio {ratio:.3g}"
        if t.get("failed", True) and weight > worst:
            worst, text = weight, said
    return text


def files_for(name):
    """All case files, the most promising first."""
    hint = build.header(f"{build.FOLDER}/{name}.patch").get("Cases", name) if not name.startswith("unchanged") else ""
    return sorted(FILES, key=lambda f: os.path.basename(f)[:-len(".json")] not in hint)


def device_of(name):
    """The host backend's argument, "" for none. `unchanged_hopper` are the kernels without a bug for "hopper"."""
    if name.startswith("unchanged"):
        return name[len("unchanged_"):]
    return build.header(f"{build.FOLDER}/{name}.patch").get("Device", "")


def subject_of(name):
    """The text after `mutant:`."""
    return f"{name},{device_of(name)}" if device_of(name) else name


def control_of(device):
    return f"unchanged_{device.partition('=')[0]}" if device else "unchanged"


def judge(verify, name):
    """None, or (case, state, what was wrong) of the first case that does not pass. Cases of the line `Try:` come first,
    because their files reach them late."""
    first = None if name.startswith("unchanged") else build.header(f"{build.FOLDER}/{name}.patch").get("Try")
    return first and judge_cases(verify, name, ["--filter", f"^({first.replace(' ', '|')})$"]) or judge_cases(verify, name, [])


def judge_cases(verify, name, options, seconds="600"):
    with tempfile.TemporaryDirectory() as folder:
        report = os.path.join(folder, "report.json")
        done = subprocess.run(
            [verify, "run", "--backend", f"mutant:{subject_of(name)}", "--jobs", "2", "--fail-fast", "--timeout", seconds, "-q",
             "--no-progress", "--report", report, "--schedule-seed", "1", *JUDGED, *options, "--cases", *files_for(name)], capture_output=True,
            text=True, check=False)
        if done.returncode not in (0, 1, 4): # 4: none of the cases is for these kernels
            sys.exit(f"mutant {name}: exit status {done.returncode}: {done.stdout[-500:]}{done.stderr[-500:]}")
        with open(report) as f:
            found = json.load(f)
        if not found["failures"] and not is_waste(name):
            return None  # a mutant's library has few sizes of kernels, so that some calls take a larger one
        if not found["failures"]:
            return wasted(work.read_report(report), "host" + (":" + device_of(name) if device_of(name) else ""))
    first = found["failures"][0]
    text = worst_tensor(first) if first["state"] == "FAIL" else ""
    reason = first.get("reason") or ""
    return first["case"]["name"], first["state"], text or reason.split(" [")[0]


def is_waste(name):
    return not name.startswith("unchanged") and build.header(f"{build.FOLDER}/{name}.patch")["Class"] == "waste"


def wasted(seen, backend):
    """The same of a case for which more was done than is recorded (tests/kernels/work.tsv): right outputs hide it."""
    table = work.read_table(work.TABLE)
    for (_, case), now in seen.items():
        was = table.get((backend, case))
        if was and any(n > w for n, w in zip(now, was)):
            return case.partition("/")[2], "WASTE", work.difference((), was, now).removeprefix(": ")
    return None


def ask_rivals(program, arguments, names):
    """{name: {rule: (the case that the rule rejects, runs compared, runs stopped)}} of names of one device, and of its
    `unchanged`."""
    device = device_of(names[0])
    said = ask_rivals_of(program, [*(["--device", device] if device else []), *arguments], names)
    if device and "unchanged" in said:
        said[control_of(device)] = said.pop("unchanged")
    return said


def ask_rivals_of(program, arguments, names):
    done = subprocess.run([program, *arguments, "--", *names], capture_output=True, text=True, check=False)
    if done.returncode < 0 and len(names) == 1: # it crashes, so that no rule sees a result
        return {names[0]: {rule: ("-", 0, 1) for rule in RULES}}
    if done.returncode < 0:
        return {name: said for one in names for name, said in ask_rivals_of(program, arguments, [one]).items()}
    if done.returncode != 0:
        sys.exit(f"rival_rules: exit status {done.returncode}: {done.stderr[-500:]}")
    found = {}
    for line in done.stdout.splitlines():
        name, rule, killer, compared, stopped = line.split("\t")
        found.setdefault(name, {})[rule] = (killer, int(compared), int(stopped))
    return found


def rivals(program, rows, known, save):
    """{"ours" or "typical": what ask_rivals says}. Ours are the cases that kill some mutant."""
    killers = sorted({said[0] for _, _, said in rows if said})
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as names:
        names.write("".join(f"{k}\n" for k in killers))
        names.flush()
        for where, arguments in (("ours", ["--names", names.name, *FILES]), ("typical", ["--zeroed", *TYPICAL])):
            asked = known.setdefault(f"rivals: {where}", {})
            wanted = [name for name, _, _ in rows if name not in asked]
            while wanted: # a few at a time, so that an interruption loses little
                some = [name for name in wanted if device_of(name) == device_of(wanted[0])][:16]
                asked.update(ask_rivals(program, arguments, some))
                wanted = [name for name in wanted if name not in some]
                save()
    return {where: known[f"rivals: {where}"] for where in ("ours", "typical")}


def rival_word(others, name, rule):
    """Where a rule rejects a mutant; "" where it was not asked everywhere."""
    if any(name not in others[where] for where in ("ours", "typical")):
        return ""
    pairs = [(where, others[where][name][rule]) for where in ("ours", "typical")]
    seen = [where for where, (killer, _, _) in pairs if killer != "-"]
    if len(seen) == 2:
        return "both"
    if not any(compared for _, (_, compared, _) in pairs):
        return "n/a"
    return seen[0] if seen else "no"


def matrix(rows, others):
    head = "| Mutant | Class | Stands for | Killed by | What it said |"
    rule = "|---|---|---|---|---|"
    if others:
        head += "".join(f" {text} |" for text in RULES.values())
        rule += "---|" * len(RULES)
    lines = [head, rule]
    for name, h, said in rows:
        case, state, text = said or ("equivalent" if name in EQUIVALENT else "**survives**", "", EQUIVALENT.get(name, ""))
        text = text if state == "FAIL" else f"{state}: {text}" if state else ""
        line = f"| `{name}` {h['What']} | {h['Class']} | {h['Stands-for']} | {case} | {text.replace('|', '/')} |"
        if others:
            line += "".join(f" {rival_word(others, name, r)} |" for r in RULES)
        lines.append(line)
    return "\n".join(lines) + "\n\n" + totals(rows, others)


def rejected_controls(asked, rule):
    """How many cases a rule rejects for kernels without a bug, on all devices."""
    said = [asked[name][rule] for name in asked if name.startswith("unchanged")]
    return f"{sum(int(s[0]) for s in said)} of {sum(s[1] for s in said)}"


def totals(rows, others):
    n = len(rows)
    equivalent = sum(r[0] in EQUIVALENT for r in rows)
    text = f"Of {n} mutants the judge kills {sum(1 for r in rows if r[2])}; {equivalent} are equivalent.\n"
    if not others:
        return text
    asked = [name for name, _, _ in rows if rival_word(others, name, "fa2x")]
    text += (f"\nOf {len(asked)} mutants that the other rules were asked about:\n\n"
             "| Rule | kills on our cases | on typical cases | on either | correct kernels rejected: our cases | typical |\n"
             "|---|---|---|---|---|---|\n")
    for rule, title in RULES.items():
        words = [rival_word(others, name, rule) for name in asked]
        ours = sum(w in ("both", "ours") for w in words)
        typical = sum(w in ("both", "typical") for w in words)
        either = sum(w not in ("no", "n/a") for w in words)
        false = [rejected_controls(others[where], rule) for where in ("ours", "typical")]
        text += f"| {title} | {ours} | {typical} | {either} of {len(asked)} | {false[0]} | {false[1]} |\n"
    stopped = sum(all(rival_word(others, name, r) == "n/a" for r in RULES) for name in asked)
    text += f"\nn/a: {stopped} mutants that the executor stops in every case, so that there is nothing to compare.\n"
    return text


def write(path, text):
    """Replaces the text between the two marks."""
    with open(path) as f:
        before, _, rest = f.read().partition("<!-- mutants -->\n")
        _, _, after = rest.partition("<!-- end of mutants -->\n")
    with open(path, "w") as f:
        f.write(f"{before}<!-- mutants -->\n{text}<!-- end of mutants -->\n{after}")


def take(arguments, option):
    """Removes an option and its value from the arguments; returns the value."""
    if option not in arguments:
        return None
    at = arguments.index(option)
    value = arguments[at + 1]
    del arguments[at:at + 2]
    return value


def controls_of(chosen):
    return sorted({control_of(device_of(name)) for name in chosen})


def judge_all(verify, chosen, known, save):
    """[(name, header, what judge says)]"""
    rows = []
    for name in [*controls_of(chosen), *chosen]:
        if name not in known:
            known[name] = judge(verify, name)
            save()
        said = known[name]
        if name.startswith("unchanged"):
            if said:
                sys.exit(f"the {name} kernels fail: {said}")
            continue
        print(f"{name}: {' | '.join(said) if said else EQUIVALENT.get(name, 'SURVIVES')}", flush=True)
        rows.append((name, build.header(f"{build.FOLDER}/{name}.patch"), said))
    return rows


def keep_in(path):
    """The file's contents, and a function that saves it; with path None nothing is saved."""
    known = {}
    if path and os.path.exists(path):
        with open(path) as f:
            known = json.load(f)

    def save():
        if not path:
            return
        with open(path + ".new", "w") as f:
            json.dump(known, f, indent=0)
        os.rename(path + ".new", path)

    return known, save


def main(arguments):
    only, program, path, results, files, judged = (
        take(arguments, o) for o in ("--only", "--all", "--write", "--results", "--files", "--judge"))
    if len(arguments) != 1:
        sys.exit(__doc__)
    if judged:
        JUDGED[:] = ["--judge", judged]
    if files:
        FILES[:] = [f for f in FILES if re.search(files, os.path.basename(f)[:-len(".json")])]
    verify = os.path.abspath(arguments[0])
    chosen, there = names(only or ""), built(verify)
    missing = [n for n in [*controls_of(chosen), *chosen] if n not in there]
    if missing or not chosen:
        print(f"not built: {', '.join(missing) or 'no mutant of that name'}", file=sys.stderr)
        return 2
    known, save = keep_in(results)
    rows = judge_all(verify, chosen, known, save)
    survivors = sum(1 for r in rows if not r[2] and r[0] not in EQUIVALENT)
    print(f"{len(rows)} mutants, {survivors} survive")
    if program or path:
        text = matrix(rows, rivals(os.path.abspath(program), rows, known, save) if program else None)
        if path:
            write(path, text)
        else:
            print(text)
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
