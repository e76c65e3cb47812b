"""Every finding has its parts: an entry with all keys, a script that compiles and is short, a case file, a section and a row in docs/findings.md, whose
tables are as printed. Afterwards copies of it all with one fault each, every one of which must be found. Run in the repository's root."""

import json
import pathlib
import re
import shutil
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path.cwd() / "python/tools"))
sys.dont_write_bytecode = True

import findings
from findings_entries import CLASSES, KEYS, NEEDED, campaigns, entries
from findings_plots import bin_of, parts, plots
from rival_rules import RULES

SCRIPT_LINES = 32
WAIVERS = "python/fa_verify/waivers"


def entry_faults(f):
    if missing := sorted(NEEDED - set(f.data)):
        return [f"{f.name}: no {', '.join(missing)}"]
    found = [f"{f.name}: nothing is called {key}" for key in sorted(set(f.data) - KEYS)]
    if f.data["class"] not in CLASSES:
        found.append(f"{f.name}: no class: {f.data['class']}")
    if f.data["rule"] not in RULES:
        found.append(f"{f.name}: no rule of rival_rules.py: {f.data['rule']}")
    adapters = f.root / "python/fa_verify/adapters"
    found += [f"{f.name}: no adapter {name}" for name in f.adapters if not (adapters / f"{name}.py").exists()]
    try:
        compile(f.data["when"], f.name, "eval")
    except SyntaxError as e:
        found.append(f"{f.name}: when: {e}")
    return found


def file_faults(f):
    found = []
    if not f.script.exists():
        found.append(f"{f.name}: no script")
    else:
        text = f.script.read_text()
        try:
            compile(text, str(f.script), "exec")
        except SyntaxError as e:
            found.append(f"{f.name}: the script does not compile: {e}")
        if "fa_verify" in text:
            found.append(f"{f.name}: the script needs fa_verify")
        if text.count("\n") > SCRIPT_LINES:
            found.append(f"{f.name}: the script is longer than {SCRIPT_LINES} lines")
    if not f.cases.exists():
        found.append(f"{f.name}: no case file")
    else:
        cases = json.loads(f.cases.read_text()).get("cases", [])
        found += [f"{f.name}: a case without a note" for case in cases if not case.get("note")]
        if not cases:
            found.append(f"{f.name}: no case")
    return found


def page_faults(root, found):
    page = (root / "docs/findings.md").read_text()
    faults = [f"{f.name}: no section in docs/findings.md" for f in found if f"\n## {f.name}\n" not in page]
    faults += [f"{f.name}: two sections in docs/findings.md" for f in found if page.count(f"\n## {f.name}\n") > 1]
    names = {f.name for f in found}
    faults += [f"docs/findings.md: no entry of {x}" for x in re.findall(r"^## ([a-z0-9]+-[a-z0-9-]+)$", page, re.MULTILINE) if x not in names]
    if not faults and findings.tables(page, root) != page:
        faults.append("docs/findings.md: print its tables again: python3 python/tools/findings.py table --write")
    for name, drawn in plots(campaigns(root)).items():
        path = root / f"docs/findings/plots/{name}.svg"
        if not path.exists() or path.read_text() != drawn:
            faults.append(f"{path.name}: draw it again: python3 python/tools/findings.py table --write")
        if f"findings/plots/{name}.svg" not in page:
            faults.append(f"{path.name}: not in docs/findings.md")
    return faults


def stray_faults(root, found):
    names = {f.name for f in found}
    paths = [*(root / "docs/findings").glob("*.py"), *(root / "cases/findings").glob("*.json")]
    return [f"{path.relative_to(root)}: of no finding" for path in paths if path.stem not in names]


def campaign_faults(root, found):
    names = {f.name for f in found}
    faults = []
    for path in (root / "docs/findings/adapters").glob("*.json"):
        told = json.loads(path.read_text())
        faults += [f"{path.stem}: {told['unexplained']} unexplained failures"] if told["unexplained"] else []
        faults += [f"{path.stem}: counts {name}, which is no finding" for name in told["findings"] if name not in names]
        if told["passed"] + sum(told["findings"].values()) + told["vacuous"] != told["judged"]:
            faults.append(f"{path.stem}: its counts do not add up")
        laws = told.get("laws", {"judged": 0, "passed": 0, "findings": {}})
        if laws["passed"] + sum(laws["findings"].values()) != laws["judged"]:
            faults.append(f"{path.stem}: a broken law is of no finding")
    return faults


def named(waiver, found):
    """Its reason begins with a finding's name, or says that there is none."""
    return waiver.get("reason", "").split(":")[0] in {"no finding", *(f.name for f in found)}


def waiver_faults(root, found):
    faults = []
    for path in (root / WAIVERS).glob("*.json"):
        told = json.loads(path.read_text())
        if told.get("fa_waivers") != 1 or not told.get("waivers"):
            faults.append(f"{path.name}: no waivers")
        faults += [f"{path.name}: a waiver names no finding" for w in told.get("waivers", ()) if not named(w, found)]
    return faults


def faults(root):
    found = entries(root)
    said = [
        *(x for f in found for x in entry_faults(f)),
        *(x for f in found for x in file_faults(f)),
        *stray_faults(root, found),
        *campaign_faults(root, found),
        *waiver_faults(root, found),
    ]
    return said or page_faults(root, found)


def replaced(old, new):
    def change(path):
        text = path.read_text()
        assert old in text, (path, old)
        path.write_text(text.replace(old, new, 1))

    return change


def added(text):
    return lambda path: path.write_text((path.read_text() if path.exists() else "") + text)


ONE = "onnxruntime-mha-causal-last-row"
#: Which file is changed, how, and what must be said.
PLANTED = [
    (f"docs/findings/{ONE}.json", replaced('"class"', '"classes"'), "no class"),
    (f"docs/findings/{ONE}.json", replaced('"wrong result"', '"odd"'), "no class: odd"),
    (f"docs/findings/{ONE}.json", replaced('"onnxruntime-mha"', '"none"'), "no rule of"),
    (f"docs/findings/{ONE}.json", replaced('"ort_mha"', '"ort_mhb"'), "no adapter"),
    (f"docs/findings/{ONE}.json", replaced("p.causal and", "p.causal and and"), "when:"),
    (f"docs/findings/{ONE}.json", replaced('"title": "', '"title": "another '), "print its tables again"),
    (f"docs/findings/{ONE}.py", pathlib.Path.unlink, "no script"),
    (f"docs/findings/{ONE}.py", added("(\n"), "does not compile"),
    (f"docs/findings/{ONE}.py", added("import fa_verify\n"), "needs fa_verify"),
    (f"docs/findings/{ONE}.py", added("\n" * SCRIPT_LINES), "longer than"),
    (f"cases/findings/{ONE}.json", pathlib.Path.unlink, "no case file"),
    (f"cases/findings/{ONE}.json", replaced('"note"', '"name2"'), "without a note"),
    ("docs/findings/library-nothing.py", added("\n"), "of no finding"),
    ("docs/findings.md", replaced(f"## {ONE}", f"### {ONE}"), "no section"),
    ("docs/findings.md", added("\n## library-nothing\n"), "no entry of library-nothing"),
    ("docs/findings.md", added(f"\n## {ONE}\n"), "two sections"),
    ("docs/findings/adapters/planted.json", added('{"unexplained": 1, "findings": {}, "passed": 0, "vacuous": 0, "judged": 1}'), "1 unexplained failures"),
    ("docs/findings/adapters/planted.json", added('{"unexplained": 0, "findings": {}, "passed": 0, "vacuous": 0, "judged": 1}'), "do not add up"),
    ("docs/findings/adapters/planted.json", added('{"unexplained": 0, "findings": {"a-b": 1}, "passed": 0, "vacuous": 0, "judged": 1}'), "which is no finding"),
    ("docs/findings/adapters/planted.json", added('{"unexplained": 0, "findings": {}, "passed": 0, "vacuous": 0, "judged": 0, "laws": {"judged": 1, "passed": 0, "findings": {}}}'), "a broken law"),
    ("docs/findings/plots/torch.svg", added("\n"), "draw it again"),
    ("docs/findings.md", replaced("findings/plots/torch.svg", "plots/torch.svg"), "torch.svg: not in"),
    (f"{WAIVERS}/planted-1.json", added('{"fa_waivers": 1, "waivers": [{"reason": "unknown"}]}'), "names no finding"),
    (f"{WAIVERS}/planted-1.json", added('{"fa_waivers": 1, "waivers": []}'), "no waivers"),
]


def unnoticed(root):
    """What was planted in a copy and not found."""
    missed = []
    for path, change, said in PLANTED:
        with tempfile.TemporaryDirectory() as scratch:
            copy = pathlib.Path(scratch)
            for part in ("docs/findings", "cases/findings", WAIVERS):
                shutil.copytree(root / part, copy / part)
            shutil.copy(root / "docs/findings.md", copy / "docs/findings.md")
            shutil.copytree(root / "python/fa_verify/adapters", copy / "python/fa_verify/adapters", ignore=shutil.ignore_patterns("__pycache__"))
            change(copy / path)
            if not any(said in fault for fault in faults(copy)):
                missed.append(f"not noticed: {path}: {said}")
    return missed


def bins():
    """Errors of 0 and far below come first, what is above a bound last; what did not pass is not counted."""
    cases = [{"state": "PASS", "worst_ratio": 1.01, "features": "f32 flash"}, {"state": "FAIL", "worst_ratio": 9, "features": "f16 flash"}]
    good = [bin_of(x) for x in (0, 1e-9, 0.26, 0.99, 1, 1.4)] == [0, 0, 16, 19, 20, 20] and parts(cases) == {"f32": [0] * 20 + [1, 0]}
    return [] if good else ["findings_plots.py sorts errors into the wrong bins"]


def main():
    root = pathlib.Path.cwd()
    found = bins() or faults(root) or unnoticed(root)
    print("\n".join(found) or f"{len(entries(root))} findings, {len(PLANTED)} planted faults")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
