"""What is compiled where there is no CUDA toolkit does without its headers: the tree is configured with FA_CUDA=OFF, and the includes of every
source are followed. On a machine that has the toolkit such a file would be compiled without a word.

usage: test_without_cuda.py CMAKE OPTION... (from the top of the source tree); the options say with which generator and compilers
"""
from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)
TOOLKIT = "cuda.h"


@cache
def way_to_toolkit(file: Path) -> tuple[str, ...]:
    """The files from this one to the toolkit's header, which comes last; () if it does without. A name that is no file here is made by the build."""
    for kind, name in INCLUDE.findall(file.read_text(encoding="utf-8")):
        if kind == "<":
            way = (TOOLKIT,) if name == TOOLKIT else ()
        else:
            found = next((path for path in (Path(name), file.parent / name) if path.is_file()), None)
            way = way_to_toolkit(found) if found else ()
        if way:
            return (str(file), *way)
    return ()


def compiled(*cmake: str) -> list[Path]:
    """The sources of a build without CUDA."""
    with tempfile.TemporaryDirectory() as build:
        words = [*cmake, "-S", ".", "-B", build, "-DFA_CUDA=OFF"]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"{' '.join(words)}: exit {done.returncode}\n{done.stderr[-3000:]}")
        files = [Path(entry["file"]) for entry in json.loads((Path(build) / "compile_commands.json").read_text(encoding="utf-8"))]
    return sorted({path.relative_to(Path.cwd()) for path in files if path.is_relative_to(Path.cwd())})


def main() -> int:
    sources = compiled(*sys.argv[1:])
    if len(sources) < 100:
        sys.exit(f"FAILED: only {len(sources)} sources are compiled")
    if not way_to_toolkit(Path("gpu/cuda/run.c")):
        sys.exit("FAILED: gpu/cuda/run.c uses the toolkit, and that is not found")
    wrong = [way for file in sources if (way := way_to_toolkit(file))]
    for way in wrong:
        print(f"FAILED: without CUDA this does not compile: {' -> '.join(way)}")
    print(f"{len(sources)} sources, {len(wrong)} that need the toolkit")
    return 1 if wrong else 0


sys.exit(main())
