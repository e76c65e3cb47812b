#!/usr/bin/env python3
"""A program with a shared library that only its build has, packed, moved to where neither is, linked there and run."""
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import ask  # noqa: E402
import compiling  # noqa: E402
import pack  # noqa: E402


class Batch:
    """A build of one program."""

    def __init__(self, build):
        self.build = build
        os.mkdir(build)
        self.cc("library.c", "int seven(void) { return 7; }", "-shared", "-fPIC", "-Wl,-soname,libseven.so.1", "-o", "libseven.so.1.2")
        self.cc("program.c", "int seven(void); int main(void) { return seven() - 7; }", "-c", "-o", "program.o")

    def cc(self, name, text, *words):
        with open(os.path.join(self.build, name), "w") as f:
            f.write(text)
        subprocess.run(["cc", *words, name], cwd=self.build, check=True)

    @staticmethod
    def link_words(program, _objects, _always, out):
        return ["cc", "program.o", "libseven.so.1.2", "-fuse-ld=anything", "-o", out, *(["gone.o"] if program == "incomplete" else [])]


def main():
    with tempfile.TemporaryDirectory() as folder:
        batch, parcel, there = Batch(os.path.join(folder, "build")), os.path.join(folder, "parcel"), os.path.join(folder, "there")
        files = pack.Files(parcel)
        plan = {"what": "it", "mutants": [], "left_out": [], "tests": [], "links": {"program": pack.linking(batch, "program", (), files)}}
        try:
            pack.linking(batch, "incomplete", (), files)
            return print("an object that is not there was not missed") or 1
        except compiling.NotBuilt:
            pass
        shutil.move(parcel, there)
        shutil.rmtree(batch.build)
        packed = ask.Packed(there, plan)
        done = subprocess.run([packed.link("program")], capture_output=True, text=True, check=False)
        if done.returncode:
            return print(f"exit status {done.returncode}: {done.stderr}") or 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
