#!/usr/bin/env python3
"""Packs mutants of the judge and the harness for a machine with many processors, without the parser, the build or a network:

    pack.py --build build --seed 2711 FOLDER ref=2800 cases=850 fuzz=700     so many of each, chosen by the seed
    pack.py --seed 2711 --without JOURNALS FOLDER ref=2800                   but for those that a journal there has as killed

FOLDER gets what ask.py needs to link and to ask there: objects and libraries without debug information, the command that links
each program, the mutants and the tests as JSON. Only for subjects that tests kill (programs.py)."""
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
import programs  # noqa: E402
import programs_suite  # noqa: E402
import subjects  # noqa: E402


class Files:
    """What is carried, once each."""

    def __init__(self, folder):
        self.folder, self.names = os.path.join(folder, "files"), {}
        os.makedirs(self.folder, exist_ok=True)

    def take(self, path):
        """The name of a copy of the file, from the folder of all."""
        path = os.path.realpath(path)
        if path not in self.names:
            name = f"files/{len(self.names)}_{os.path.basename(path)}"
            self.names[path] = name
            out = os.path.join(os.path.dirname(self.folder), name)
            shutil.copy(path, out)
            if path.endswith((".o", ".a", ".so")) or ".so." in path:
                subprocess.run(["strip", "-g", out], check=True)
        return self.names[path]


def linking(batch, program, objects, always, files):
    """The words that link a program elsewhere: files by their names there, the linker of that machine, no rule about their order."""
    words = [w for w in batch.link_words(program, objects, always, "OUT") if not w.startswith("-fuse-ld")]
    at = words.index("-o")
    return ["c++", "-s", "-Wl,--start-group", *(files.take(os.path.join(batch.build, w)) if os.path.isfile(os.path.join(batch.build, w)) else w
                                          for w in words[1:at] + words[at + 2:]), "-Wl,--end-group"]


def settled(folder, what):
    """Keys of mutants of which nothing more is to be learned."""
    path = os.path.join(folder or "", f"{what}.jsonl")
    if not folder or not os.path.exists(path):
        return set()
    return {r.key for r in journal.Journal(path, True).rows.values() if r.killed or r.outcome == journal.LEFT_OUT}


def pack(what, n, a, files):
    found = subjects.find(subjects.SUBJECTS[what])
    picked = sorted(random.Random(a.seed).sample(found, min(n, len(found))), key=lambda m: m.number)
    done = settled(a.without, what)
    picked = [m for m in picked if m.key not in done]
    tests = programs.chosen(what)
    targets = sorted({t for p in tests for t in p.targets()})
    batch = compiling.Batch(a.build, os.path.join(a.build, "mutate", what), subjects.SUBJECTS[what].target, picked, a.jobs, targets)
    objects = batch.compile()
    always = [programs_suite.switch(batch)]
    print(f"{what}: {len(batch.mutants)} of {len(picked)} mutants are programs, {len(targets)} programs", flush=True)
    return {"what": what, "mutants": [asdict(m) for m in batch.mutants], "left_out": [asdict(m) for m in batch.left_out],
            "links": {t: linking(batch, t, objects, always, files) for t in targets},
            "tests": [[p.name, p.words] for p in tests]}


def main(words):
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("folder")
    p.add_argument("subjects", nargs="+", metavar="SUBJECT=N")
    p.add_argument("--build", default="build")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--without", help="a folder of journals")
    p.add_argument("--jobs", type=int, default=os.cpu_count())
    a = p.parse_args(words)
    files = Files(a.folder)
    plans = [pack(what, int(n), a, files) for what, n in (s.split("=") for s in a.subjects)]
    with open(os.path.join(a.folder, "plan.json"), "w") as f:
        json.dump(plans, f)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
