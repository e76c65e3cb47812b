#!/usr/bin/env python3
"""Packs mutants for a machine that has compilers and Python, but neither the packages that make mutants nor a build nor a network:

    pack.py --build build --seed 2711 FOLDER ref=2800 cases=850 kernels=900    so many of each, chosen by the seed
    pack.py --seed 2712 --after JOURNALS FOLDER ref=500                        500 that no journal there has, and those alive in it
    pack.py --killed JOURNALS FOLDER kernels=5000                              so many of those that cases killed there, for ask.py --killed

FOLDER gets what ask.py needs to link and to ask there, beside the same tests/ and cases/: objects and libraries without debug
information, the command that links each program, the mutants and the tests as JSON."""
import argparse
import json
import os
import random
import shutil
import subprocess
import sys
from dataclasses import asdict

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import compiling  # noqa: E402
import journal  # noqa: E402
import killers  # noqa: E402
import programs  # noqa: E402
import subjects  # noqa: E402

OF_CASES = ["mutate_serve", "rival_rules"]  # what asks cases, and other projects' rules


def soname(path):
    """What programs ask for that are linked with a shared library, so that they find the copy; None of another file."""
    if ".so" not in os.path.basename(path):
        return None
    said = subprocess.run(["objdump", "-p", path], capture_output=True, text=True, check=True).stdout
    return next((line.split()[1] for line in said.splitlines() if "SONAME" in line), os.path.basename(path))


class Files:
    """What is carried, once each."""

    def __init__(self, folder):
        self.folder, self.names = os.path.join(folder, "files"), {}
        os.makedirs(self.folder, exist_ok=True)

    def take(self, path):
        """The name of a copy of the file, from the folder of all."""
        path = os.path.realpath(path)
        if path not in self.names:
            name = f"files/{soname(path) or f'{len(self.names)}_{os.path.basename(path)}'}"
            self.names[path] = name
            out = os.path.join(os.path.dirname(self.folder), name)
            shutil.copy(path, out)
            if path.endswith((".o", ".a", ".so")) or ".so." in path:
                subprocess.run(["strip", "-g", out], check=True)
        return self.names[path]


def linking(batch, program, objects, files):
    """The words that link a program elsewhere: files by their names there, the linker of that machine, no rule about their order."""
    words = [w for w in batch.link_words(program, objects, (), "OUT") if not w.startswith("-fuse-ld")]
    at = words.index("-o")
    return ["c++", "-s", "-Wl,--start-group", *(carried(batch, w, files) for w in words[1:at] + words[at + 2:]), "-Wl,--end-group"]


def carried(batch, word, files):
    path = os.path.join(batch.build, word)
    if os.path.isfile(path):
        return files.take(path)
    if word.endswith((".o", ".a")):
        raise compiling.NotBuilt(f"{path} is not there: build what asks")
    return word


def chosen(found, n, folder, what, seed):
    """So many that the journal does not have, and those of which more may be learned."""
    path = os.path.join(folder or "", f"{what}.jsonl")
    rows = journal.Journal(path, True).rows if folder and os.path.exists(path) else {}
    unknown = [m for m in found if m.key not in rows]
    again = [m for m in found if m.key in rows and rows[m.key].outcome in (journal.SURVIVED, journal.UNREACHED)]
    return sorted(random.Random(seed).sample(unknown, min(n, len(unknown))) + again, key=lambda m: m.number)


def killed(found, n, folder, what, seed):
    """So many of those that a case has killed."""
    known = killers.to_ask(journal.Journal(os.path.join(folder, f"{what}.jsonl"), True).rows.values())
    some = [m for m in found if m.key in known]
    return sorted(random.Random(seed).sample(some, min(n, len(some))), key=lambda m: m.number)


def pack(what, n, a, files):
    subject = subjects.SUBJECTS[what]
    found = subjects.find(subject)
    picked = killed(found, n, a.killed, what, a.seed) if a.killed else chosen(found, n, a.after, what, a.seed)
    tests = () if a.killed else programs.chosen(what)
    targets = sorted({t for p in tests for t in p.targets()})
    batch = compiling.Batch(a.build, os.path.join(a.build, "mutate", what), subject.target, picked, a.jobs, targets)
    objects = batch.compile()
    print(f"{what}: {len(batch.mutants)} of {len(picked)} mutants are programs, {len(targets)} programs", flush=True)
    targets += OF_CASES[:1 if a.killed else 2] if subject.suite == "cases" else []
    return {"what": what, "mutants": [asdict(m) for m in batch.mutants], "left_out": [asdict(m) for m in batch.left_out],
            "links": {t: linking(batch, t, objects, files) for t in targets},
            "tests": [[p.name, p.words] for p in tests]}


def main(words):
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("folder")
    p.add_argument("subjects", nargs="+", metavar="SUBJECT=N")
    p.add_argument("--build", default="build")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--after", metavar="JOURNALS", help="a folder of journals, which the new ones continue")
    p.add_argument("--killed", metavar="JOURNALS", help="a folder of journals: of the mutants that a case killed there")
    p.add_argument("--jobs", type=int, default=os.cpu_count())
    a = p.parse_args(words)
    files = Files(a.folder)
    plans = [pack(what, int(n), a, files) for what, n in (s.split("=") for s in a.subjects)]
    with open(os.path.join(a.folder, "plan.json"), "w") as f:
        json.dump(plans, f)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
