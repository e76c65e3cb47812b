#!/usr/bin/env python3
"""The fuzz targets' corpora: one archive each, corpus/TARGET.zip beside this file.

usage: corpus.py list TARGET              prints the inputs' names, one per line
       corpus.py add TARGET FILE...       adds the files under their names
       corpus.py remove TARGET NAME...    removes inputs
       corpus.py extract TARGET DIR       writes every input into a new or empty folder
       corpus.py merge TARGET DIR         adds the new inputs in a folder of grown ones, named by their SHA-1 as in
                                          libFuzzer; ignores names that begin with a dot

A command changes an archive completely or not at all. The same inputs make the same bytes, in whatever order they
were added (with the same zlib), so that an archive changes only if its inputs do. Exit 2 if something is rejected.
"""
import hashlib
import os
import re
import signal
import struct
import sys
import zipfile
import zlib

HERE = os.path.dirname(os.path.abspath(__file__))
MAX_BYTES = 1 << 20  # corpus_tool reads no more of an input
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,199}")
NAME_RULE = "1 to 200 letters, digits and _ . - of which the first is a letter, a digit or _"
TIME = (1980, 1, 1, 0, 0, 0)  # the earliest time that the format can store

# What zipfile raises for bytes that are not an archive, depending on the version of Python.
UNREADABLE = (zipfile.BadZipFile, zlib.error, struct.error, EOFError, OSError, RuntimeError, ValueError)


class Refused(Exception):
    pass


def targets():
    """In any folder below this one."""
    found = (f[:-len("_fuzzer.c")] for _, _, files in os.walk(HERE) for f in files if f.endswith("_fuzzer.c"))
    return sorted(found)


def archive_of(target):
    if target not in targets():
        raise Refused(f"there is no target {target}; those are: {', '.join(targets())}")
    return os.path.join(HERE, "corpus", f"{target}.zip")


def check_name(where, name):
    if not NAME.fullmatch(name):
        raise Refused(f"{where}: the name {name!r} cannot be an input's: {NAME_RULE}")


def check_size(where, size):
    if size > MAX_BYTES:
        raise Refused(f"{where}: {size} bytes; an input has at most {MAX_BYTES}")


def read_entries(path, archive):
    """Name -> bytes. Checks sizes and names before unpacking anything."""
    inputs = {}
    for info in archive.infolist():
        check_name(path, info.filename)
        check_size(f"{path}: {info.filename}", info.file_size)
        if info.filename in inputs:
            raise Refused(f"{path}: {info.filename} is in it twice; every name stands once")
        inputs[info.filename] = archive.read(info)  # also verifies the checksum
    return inputs


def read_archive(path):
    with open(path, "rb") as file:
        try:
            with zipfile.ZipFile(file) as archive:
                return read_entries(path, archive)
        except UNREADABLE as error:
            raise Refused(f"{path} cannot be read as a zip archive ({error}); it takes a whole one, without a password")


def load(target, may_lack=False):
    path = archive_of(target)
    if os.path.exists(path):
        return read_archive(path)
    if may_lack:
        return {}  # a new target's first inputs
    raise Refused(f"{target} has no inputs yet, there is no {path}; add and merge make it")


def write_entries(file, inputs):
    with zipfile.ZipFile(file, "w") as archive:
        for name in sorted(inputs):
            info = zipfile.ZipInfo(name, TIME)
            info.create_system = 3  # otherwise it depends on the operating system
            info.external_attr = 0o100644 << 16
            archive.writestr(info, inputs[name], zipfile.ZIP_DEFLATED, 9)


def write_archive(path, inputs):
    """A concurrent reader sees the old archive or the new one."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    temporary = f"{path}.{os.getpid()}"
    try:
        with open(temporary, "xb") as file:
            write_entries(file, inputs)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        if os.path.exists(temporary):
            os.remove(temporary)
        raise


def store(target, inputs, done):
    path = archive_of(target)
    write_archive(path, inputs)
    print(f"{target}: {done}, {len(inputs)} in {os.path.relpath(path)}")


def read_input(path):
    if not os.path.isfile(path):
        raise Refused(f"{path} is no file")
    check_size(path, os.path.getsize(path))
    with open(path, "rb") as file:
        return file.read()


def list_names(target):
    print("".join(f"{name}\n" for name in sorted(load(target))), end="")


def add(target, *files):
    inputs = load(target, may_lack=True)
    name_of = {data: name for name, data in inputs.items()}
    for path in files:
        name, data = os.path.basename(path), read_input(path)
        check_name(path, name)
        if name in inputs:
            raise Refused(f"{path}: {target} has an input {name}; remove that first, or take another name")
        if data in name_of:
            raise Refused(f"{path}: {target} has the same bytes as {name_of[data]}; an input is added once")
        inputs[name] = data
        name_of[data] = name
    store(target, inputs, f"{len(files)} added")


def remove(target, *names):
    inputs = load(target)
    for name in names:
        if name not in inputs:
            raise Refused(f"{target} has no input {name}; `corpus.py list {target}` prints those it has")
        del inputs[name]
    if not inputs:
        raise Refused(f"{target} would have no input left; a target has at least one")
    store(target, inputs, f"{len(names)} removed")


def extract(target, folder):
    inputs = load(target)
    os.makedirs(folder, exist_ok=True)
    if os.listdir(folder):
        raise Refused(f"{folder} is not empty; extract takes a new or empty folder")
    for name, data in inputs.items():
        with open(os.path.join(folder, name), "xb") as file:
            file.write(data)


def merge(target, folder):
    inputs = load(target, may_lack=True)
    known = set(inputs.values())
    before = len(inputs)
    for entry in sorted(os.listdir(folder)):
        if entry.startswith("."):
            continue
        path = os.path.join(folder, entry)
        data = read_input(path)
        name = hashlib.sha1(data).hexdigest()
        if data in known:
            continue
        if name in inputs:
            raise Refused(f"{path}: {target} has other bytes under the name {name}, which is the SHA-1 of these")
        inputs[name] = data
        known.add(data)
    if not inputs:
        raise Refused(f"{folder} holds no input, and {target} has none yet")
    store(target, inputs, f"{len(inputs) - before} added")


# Arguments that each takes after TARGET: minimum, maximum.
COMMANDS = {"list": (list_names, 0, 0), "add": (add, 1, None), "remove": (remove, 1, None), "extract": (extract, 1, 1),
            "merge": (merge, 1, 1)}


def main(arguments):
    command, least, most = COMMANDS.get(arguments[0], (None, 0, 0)) if arguments else (None, 0, 0)
    n = len(arguments) - 2
    if not command or n < least or (most is not None and n > most):
        print(__doc__.split("\n\n")[1], file=sys.stderr)
        return 2
    try:
        command(*arguments[1:])
    except (Refused, OSError) as error:
        print(f"corpus.py: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # a reader of the list may stop early
    sys.exit(main(sys.argv[1:]))
