#!/usr/bin/env python3
"""Applies one patch of tests/mutants/ to a copy of the kernels and builds them into a shared library.

usage: build.py PATCH OUT.so [--cxx g++] [--cc gcc]   (from the top of the source tree; PATCH -: none, -hopper:
                                                       none, for the tiles of patches with `Device: hopper`)
       build.py --check                               every patch still fits the sources

A hunk applies where its old lines are, which must be one place in the file; its line numbers may be wrong. Only the
kernels for the patch's `Tiles:` (default f16 64) are compiled, and unchanged objects come from the folder `objects`
next to OUT.so. Exit: 0 built, 1 the patch does not fit or does not compile."""
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor

FOLDER = "tests/mutants"
# What calls the kernels, or queries them.
PLAIN_C = re.compile(r"gpu/(args|call|plan|host|kernels/registry)/\w+\.c$|gpu/expr/(diff|functions|program)\.c$|"
                     r"gpu/backends/mutant_library\.c$")
HOPPER_LIST = "gpu/kernels/registry/hopper.def"
TILES = "f16 64"
HOPPER_TILES = ", ".join(f"{t} {d}" for t in ("f16", "bf16") for d in (32, 64, 96, 128, 160, 192, 224, 256))
UNCHANGED = {"-": f"{TILES}, f16 32", "-hopper": HOPPER_TILES}
KEYS = ("Class", "Stands-for", "What", "Hypothesis")
FLAGS = ["-Og", "-fPIC", "-fvisibility=hidden", "-ffp-contract=off", "-D_GNU_SOURCE"]


class Misfit(Exception):
    pass


def header(path):
    """The lines `Key: value` before the diff."""
    found = {"Tiles": TILES}
    with open(path) as f:
        for line in f:
            if line.startswith("--- "):
                break
            key, colon, value = line.partition(": ")
            if colon:
                found[key] = value.strip()
    if found.get("Device", "").startswith("hopper"):
        found["Tiles"] = HOPPER_TILES
    for key in KEYS:
        if key not in found:
            raise Misfit(f"{path}: no line `{key}:`")
    return found


def hunks(path):
    """(file, line number, old lines, new lines) of every hunk of a unified diff."""
    name, number, old, new, found = None, 0, [], [], []

    def finish():
        if old or new:
            found.append((name, number, list(old), list(new)))
        old.clear()
        new.clear()

    for line in open(path):
        if line.startswith("--- ") or line.startswith("@@"):
            finish()
            if line.startswith("@@"):
                number = int(re.match(r"@@ -(\d+)", line).group(1))
        elif line.startswith("+++ "):
            name = line.split()[1].partition("/")[2]
        elif name and line[0] in " -+":
            if line[0] != "+":
                old.append(line[1:])
            if line[0] != "-":
                new.append(line[1:])
    finish()
    if not found:
        raise Misfit(f"{path}: it changes nothing")
    return found


def apply(path, root):
    """Applies the patch to the files under root."""
    for name, number, old, new in hunks(path):
        try:
            with open(os.path.join(root, name)) as f:
                lines = f.readlines()
        except FileNotFoundError:
            raise Misfit(f"{path}: there is no {name}") from None
        places = [i for i in range(len(lines)) if lines[i:i + len(old)] == old]
        if not places:
            raise Misfit(f"{path}: {name}: these lines are not there (any more):\n{''.join(old)}")
        distances = sorted(abs(i + 1 - number) for i in places)
        if len(places) > 1 and (distances[0] > 40 or distances[0] == distances[1]):
            raise Misfit(f"{path}: {name}: these lines stand in {len(places)} places:\n{''.join(old)}")
        at = min(places, key=lambda i: abs(i + 1 - number))
        lines[at:at + len(old)] = new
        with open(os.path.join(root, name), "w") as f:
            f.writelines(lines)


def is_wanted(line, wanted):
    """False for a line FA_DIM...(T, D) of a tile that no mutant wants."""
    tile = re.match(r"FA_DIM\w*\((\w+), (\d+)\)", line)
    return not tile or tile.groups() in wanted


def is_plain(line):
    """For patches of portable kernels: only plain kernels for sm_90a, so that no table is empty. The others take most
    of the compile time."""
    return not re.match(r"FA_\w+\(", line) or re.match(r"FA_\w+_KIND\((|\d+), ", line)


def copy_sources(root, tiles, names):
    """Copies sources, and only the wanted lines of the lists of kernels (gpu/kernels/registry/*.def)."""
    wanted = {tuple(t.split()) for t in tiles.split(",")}
    for name in names:
        with open(name) as f:
            lines = f.readlines()
        if name.endswith(".def"):
            lines = [line for line in lines if is_wanted(line, wanted)]
            if name == HOPPER_LIST and tiles != HOPPER_TILES:
                lines = [line for line in lines if is_plain(line)]
        os.makedirs(os.path.dirname(os.path.join(root, name)), exist_ok=True)
        with open(os.path.join(root, name), "w") as f:
            f.writelines(lines)


def sources():
    """All of gpu/ but what no mutant changes. All headers are among them, so that the directory of the including file does not
    decide which one is found."""
    return sorted(os.path.join(folder, name) for folder, _, names in os.walk("gpu") for name in names
                  if name.endswith((".c", ".h", ".def", ".cuh", ".cu")))


def compile_unit(compiler, root, unit, objects):
    """The object file; from the cache if the preprocessed text is the same."""
    language = ["-std=gnu++17", "-x", "c++"] if unit.endswith(".cu") else ["-std=gnu11"]
    command = [compiler, *language, *FLAGS, f"-fmacro-prefix-map={root}/=", f"-I{root}", "-I.",
               os.path.join(root, unit)]
    text = subprocess.run(command + ["-E", "-P"], capture_output=True, check=False)
    if text.returncode != 0:
        raise Misfit(text.stderr.decode()[:3000])
    key = hashlib.sha256(text.stdout + " ".join([compiler, *FLAGS]).encode()).hexdigest()[:24]
    path = os.path.join(objects, f"{key}.o")
    if not os.path.exists(path):
        mine = f"{path}.{os.getpid()}.{threading.get_ident()}"  # another thread may be making the same
        done = subprocess.run(command + ["-c", "-o", mine], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise Misfit(done.stderr[:3000])
        os.rename(mine, path)
    return path


def build(patch, out, cxx, cc, jobs=1):
    objects = os.path.join(os.path.dirname(os.path.abspath(out)), "objects")
    os.makedirs(objects, exist_ok=True)
    root = tempfile.mkdtemp(prefix="mutant-")
    try:
        copy_sources(root, UNCHANGED.get(patch) or header(patch)["Tiles"], sources())
        if patch not in UNCHANGED:
            apply(patch, root)
        units = [u for u in sources() if PLAIN_C.match(u)] + [u for u in sources() if u.endswith(".cu")]
        with ThreadPoolExecutor(jobs) as pool:
            made = list(pool.map(lambda u: compile_unit(cxx if u.endswith(".cu") else cc, root, u, objects), units))
        done = subprocess.run([cxx, "-shared", "-Wl,-Bsymbolic", "-o", out + ".new", *made], capture_output=True,
                              text=True, check=False)
        if done.returncode != 0:
            raise Misfit(done.stderr[:3000])
        os.rename(out + ".new", out)
    finally:
        shutil.rmtree(root)


def misfit(patch):
    """Applies the patch to a copy of the files that it names; what does not fit, or None."""
    with tempfile.TemporaryDirectory(prefix="mutant-") as root:
        try:
            names = {name for name, *_ in hunks(patch) if os.path.exists(name)}
            copy_sources(root, header(patch)["Tiles"], sorted(names))
            apply(patch, root)
        except Misfit as e:
            return str(e)
    return None


def check():
    """Applies every patch; raises a Misfit that names all that do not fit."""
    patches = sorted(f"{FOLDER}/{n}" for n in os.listdir(FOLDER) if n.endswith(".patch"))
    bad = [said for said in map(misfit, patches) if said]
    if bad:
        raise Misfit("\n".join(bad) + f"\n{len(bad)} of {len(patches)} patches do not fit")
    return patches


def main(arguments):
    options = {"--cxx": "c++", "--cc": "cc"}
    for name in options:
        if name in arguments:
            at = arguments.index(name)
            options[name] = arguments[at + 1]
            del arguments[at:at + 2]
    try:
        if arguments == ["--check"]:
            print(f"{len(check())} patches fit")
        elif len(arguments) == 2:
            build(*arguments, options["--cxx"], options["--cc"])
        else:
            sys.exit(__doc__)
    except Misfit as e:
        sys.exit(str(e))


if __name__ == "__main__":
    main(sys.argv[1:])
