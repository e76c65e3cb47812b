"""Mutants for a machine that has compilers and Python, but neither the packages that make mutants nor a build.

A parcel is a folder, beside which the sources have to be the same:
    parcel.json     the mutants, and which of them are no program
    units/*.o       the units that hold them, compiled
    NAME.o          a program of the build with all its libraries but for those units, to be linked with them
    *.so*           the libraries that it loads"""
import glob
import json
import os
import re
import shutil
import subprocess
from dataclasses import asdict

import mutants

NAME, UNITS, PROGRAMS = "parcel.json", "units", ("mutate_serve", "rival_rules")
LOADED = re.compile(r"=> (/\S*(?:cjson|openblas)\S*)")


def pack(batch, folder):
    units = os.path.join(folder, UNITS)
    os.makedirs(units, exist_ok=True)
    batch.compile()
    for unit, target in sorted(batch.every_unit().items()):
        shutil.copy(batch.object_of(unit) if unit in batch.units() else batch.built(target, unit), os.path.join(units, name_of(unit)))
    subprocess.run(["strip", "-g", *glob.glob(os.path.join(units, "*"))], check=True)
    with open(os.path.join(folder, NAME), "w") as f:
        json.dump({"mutants": [asdict(m) for m in batch.mutants], "left out": [asdict(m) for m in batch.left_out]}, f, indent=0)
    for program in PROGRAMS:
        pack_program(batch, program, folder)


def name_of(unit):
    return unit.replace("/", "_") + ".o"


def pack_program(batch, program, folder):
    """Its objects and what it needs of its libraries, as one object."""
    rest, out = (os.path.abspath(os.path.join(folder, name)) for name in (batch.library(), program + ".o"))
    inputs = [w for w in batch.link_command(program) if w.endswith((".o", ".a"))]
    [whole] = [w for w in inputs if os.path.basename(w) == batch.library()]
    shutil.copyfile(os.path.join(batch.build, whole), rest)
    members = subprocess.run(["ar", "t", rest], capture_output=True, text=True, check=True).stdout.split()
    subprocess.run(["ar", "d", rest, *(m for m in members if m in {os.path.basename(u) + ".o" for u in batch.every_unit()})], check=True)
    others = [w for w in inputs if w != whole]  # the units need more of their library than the program does
    subprocess.run(["ld", "-r", "-o", out, "--whole-archive", rest, "--no-whole-archive", "--start-group", *others, "--end-group"],
                   cwd=batch.build, check=True)
    subprocess.run(["strip", "-g", out], check=True)
    os.remove(rest)
    said = subprocess.run(["ldd", os.path.join(batch.build, program)], capture_output=True, text=True, check=True).stdout
    for library in LOADED.findall(said):
        shutil.copy(library, folder)


class Parcel:
    """What compiling.Batch is, of a parcel. some: mutants of read()."""

    def __init__(self, parcel, folder, some):
        self.parcel, self.folder = os.path.abspath(parcel), os.path.abspath(folder)
        no_program = {m["key"] for m in load(parcel)["left out"]}
        self.mutants = [m for m in some if m.key not in no_program]
        self.left_out = [m for m in some if m.key in no_program]
        os.makedirs(self.folder, exist_ok=True)

    def compile(self):
        return sorted(glob.glob(os.path.join(self.parcel, UNITS, "*.o")))

    def link(self, program, objects, always=()):
        out = os.path.join(self.folder, program)
        subprocess.run(["c++", "-o", out, *objects, *always, os.path.join(self.parcel, program + ".o"),
                        *glob.glob(os.path.join(self.parcel, "*.so*")), f"-Wl,-rpath,{self.parcel}", "-lm", "-ldl", "-lpthread"],
                       check=True)
        return out


def load(parcel):
    with open(os.path.join(parcel, NAME)) as f:
        return json.load(f)


def read(parcel):
    """All mutants of a parcel."""
    whole = load(parcel)
    return [mutants.Mutant(**m) for m in whole["mutants"] + whole["left out"]]
