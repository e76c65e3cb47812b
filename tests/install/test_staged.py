"""An installed program, moved, and with the source tree and the build folder out of sight, does all that it did there: it finds its
case files by name from any folder, judges, writes pages, and lets plugins, children and C programs be built and run, with pkg-config
and with CMake. What is installed names no folder of the build.

usage: test_staged.py BUILD [--cc CC] [--libdir lib]"""
from __future__ import annotations

import argparse
import re
import shutil
import tempfile
from pathlib import Path

from prefix import SOURCE, Hidden, install, stop

LIBRARY_PROGRAM = """#include "gpu/fa.h"
#include <stdio.h>
int main(void) {
  char text[1024];
  fa_error err;
  printf("%s\\n", fa_describe(text, sizeof text, &err) == FA_OK ? text : err.text);
  return 0;
}
"""
PROJECT = """cmake_minimum_required(VERSION 3.22)
project(uses LANGUAGES C)
find_package(fa-verify {version} REQUIRED COMPONENTS library program)
foreach(kind attention attention_static)
  add_executable(with_${{kind}} program.c)
  target_link_libraries(with_${{kind}} PRIVATE fa::${{kind}})
endforeach()
file(WRITE ${{CMAKE_BINARY_DIR}}/said "${{fa_verify_CASES}}")
"""
PLUGIN_CASE = '{"dtype":"f32","seqlen_q":65,"mask":{"type":"causal"}}'


class Installed:
    def __init__(self, prefix: Path, hidden: Hidden, work: Path, cc: str, libdir: str):
        self.prefix, self.hidden, self.work, self.cc = prefix, hidden, work, cc
        self.program, self.examples = prefix / "bin/fa-verify", prefix / "share/fa-verify/examples"
        self.lib = prefix / libdir

    def expect(self, pattern: str, *words: str | Path, code: int = 0, cwd: str | Path = "/", **environment: str) -> str:
        """Runs a command out of sight of the build; its exit status and a line of its output must be as said."""
        done = self.hidden.run(*words, cwd=cwd, **environment)
        said = done.stdout + done.stderr
        if done.returncode != code or not re.search(pattern, said, re.M):
            stop(f'{" ".join(map(str, words))}\nexit status {done.returncode} instead of {code}, or no "{pattern}":\n{said[-3000:]}')
        return said

    def pkg_config(self) -> dict[str, str]:
        return {"PKG_CONFIG_PATH": str(self.lib / "pkgconfig")}

    def verify(self, pattern: str, *words: str | Path, code: int = 0) -> str:
        return self.expect(pattern, self.program, *words, code=code)


def check_layout(at: Installed) -> None:
    for name in ("share/fa-verify/cases/causal.json", "share/fa-verify/schema.json", "share/fa-verify/examples/child2.py", "share/doc/fa-verify/README.md",
                 "share/doc/fa-verify/docs/guide/first-verdict.md", "include/fa-verify/gpu/plugin.h", "include/fa-verify/gpu/fa.h",
                 "include/fa-verify/cases/base/status.h", "include/fa-verify/cases/status.h", "share/man/man1/fa-verify.1",
                 "share/bash-completion/completions/fa-verify", "share/zsh/site-functions/_fa-verify", "share/fish/vendor_completions.d/fa-verify.fish"):
        if not (at.prefix / name).is_file():
            stop(f"{name} is not installed")
    if (at.prefix / "fa_verify").exists():
        stop("what is for the Python package alone is installed too")


def with_build_paths(at: Installed, build: Path) -> list[str]:
    """Installed files that name a folder of the build. Archives keep the debugging information that a linked program's strip removes."""
    files = [p for p in at.prefix.rglob("*") if p.is_file() and p.suffix != ".a"]
    folders = [str(folder).encode() for folder in (SOURCE, build)]
    return [str(file) for file in files for data in [file.read_bytes()] if any(folder in data for folder in folders)]


def check_no_build_paths(at: Installed, build: Path) -> None:
    found = with_build_paths(at, build)
    if found:
        stop(f"files that name the source tree or the build folder: {found}")
    planted = at.prefix / "planted"
    planted.write_text(f"prefix={build}/lib")
    if with_build_paths(at, build) != [str(planted)]:
        stop("a file that names the build folder was not found")
    planted.unlink()


def check_program(at: Installed) -> None:
    at.verify("^fa-verify [0-9]+[.]", "--version")
    at.verify("^tests:2 passed:2 failed:0", "--cases", "causal", "--filter", "^square_(7|65)$", "--backend", "host")
    listed = at.verify("^causal +90 cases", "list", "cases").splitlines()
    if len(listed) != len(list((SOURCE / "cases").glob("*.json"))) - 1:
        stop(f"{len(listed)} case files are found")
    at.verify("an installed program has none", "list", "mutants")
    at.verify("an installed program has none", "--backend", "mutant:any", "--case", "{}", code=2)
    at.verify("^host +", "list", "backends")
    golden = at.work / "golden"
    at.verify("^tests:1 passed:1", "golden", "write", golden, "--cases", "causal", "--filter", "^square_7$")
    at.verify("^tests:1 passed:1", "golden", "check", golden)
    at.verify("^tests:1 passed:1", "random", "--count", "1", "--backend", "ref-f32", "--html", at.work / "page.html")


def check_plugin(at: Installed) -> None:
    """The example, built by the command that it gives itself; wrong with one key too many, and run again as its report says."""
    given = re.search(r"^ \*   (cc .*pkg-config --cflags fa-verify.*)$", (at.examples / "example_plugin.c").read_text(), re.M)
    if not given:
        stop("example_plugin.c does not say how it is built")
    flags = f"-I{at.prefix}/include/fa-verify"
    if shutil.which("pkg-config"):
        flags = at.expect("-I", "pkg-config", "--cflags", "fa-verify", **at.pkg_config()).strip()
    command = re.sub(r"\$\(.*?\)", flags, given[1]).replace("cc ", f"{at.cc} ", 1)
    for fault in (0, 1):
        at.expect("", "sh", "-c", f"{command} -DEXAMPLE_FAULT={fault} -o {at.work}/example{fault}.so", cwd=at.examples)
    good, bad, report = f"plugin:{at.work}/example0.so", f"plugin:{at.work}/example1.so", at.work / "report.json"
    at.verify("^tests:1 passed:1", "--backend", good, "--case", PLUGIN_CASE)
    at.verify("^(lse|empty|.*base)", "probe", "--backend", good, "--dtype", "f32")
    at.verify("^FAIL ", "--backend", bad, "--case", PLUGIN_CASE, "--report", report, code=1)
    at.verify("^FAIL ", "repro", report, code=1)
    at.verify("^tests:1 passed:1", "--backend", f"exec:python3 {at.examples}/child2.py", "--case", PLUGIN_CASE)


def check_pkg_config(at: Installed) -> None:
    if not shutil.which("pkg-config"):
        print("without pkg-config: its files are not tried")
        return
    found = at.expect("-lfa_attention", "pkg-config", "--cflags", "--libs", "fa_attention", **at.pkg_config()).split()
    at.expect("", at.cc, at.work / "program.c", *found, "-o", at.work / "by_pkg_config")
    at.expect(".", at.work / "by_pkg_config", LD_LIBRARY_PATH=str(at.lib))
    for variable, path in (("cases", "causal.json"), ("examples", "child2.py"), ("program", "")):
        said = at.expect("", "pkg-config", f"--variable={variable}", "fa-verify", **at.pkg_config()).strip()
        if not (Path(said) / path).exists():
            stop(f"pkg-config says that {variable} is {said}")


def check_cmake(at: Installed, version: str) -> None:
    prefix = f"-DCMAKE_PREFIX_PATH={at.prefix}"
    project, built = at.work / "project", at.work / "built"
    project.mkdir()
    (project / "CMakeLists.txt").write_text(PROJECT.format(version=version))
    shutil.copy(at.work / "program.c", project)
    compiler = f"-DCMAKE_C_COMPILER={at.cc}"
    at.expect("", "cmake", "-S", project, "-B", built, prefix, compiler)
    at.expect("", "cmake", "--build", built)
    for kind in ("attention", "attention_static"):
        at.expect(".", built / f"with_{kind}")
    if not (Path((built / "said").read_text()) / "causal.json").exists():
        stop("fa_verify_CASES is not the folder of case files")
    examples = at.work / "examples"
    at.expect("", "cmake", "-S", at.examples, "-B", examples, prefix, compiler)
    at.expect("", "cmake", "--build", examples)
    at.expect("100% tests passed", "ctest", "--test-dir", examples)


def check_nothing_else_is_used(at: Installed) -> None:
    """Without its case files the program has none: it did not read those of the source tree."""
    shutil.rmtree(at.prefix / "share/fa-verify/cases")
    at.verify("^fa-verify: causal: No such file or directory; no case files came with this program", "--cases", "causal", code=2)


def check_components(build: Path, work: Path) -> None:
    """Each component alone: the other's files are not there."""
    for component, there, not_there in (("program", "bin/fa-verify", "include/fa-verify/gpu/fa.h"), ("library", "include/fa-verify/gpu/fa.h", "bin")):
        prefix = install(build, work / component, "--component", component)
        if not (prefix / there).exists() or (prefix / not_there).exists():
            stop(f"component {component}: {there} is missing, or {not_there} is there")


def version_of(source: Path) -> str:
    found = re.search(r"project\(fa-verify VERSION (\d+\.\d+)", (source / "CMakeLists.txt").read_text())
    return found[1] if found else stop("CMakeLists.txt has no version") or ""


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("build", type=Path)
    parser.add_argument("--cc", default="cc")
    parser.add_argument("--libdir", default="lib")
    given = parser.parse_args()
    build = given.build.resolve()
    with tempfile.TemporaryDirectory(prefix="fa-staged-") as name:
        work = Path(name)
        prefix = install(build, work, "--strip")
        hidden = Hidden(build, SOURCE)
        at = Installed(prefix, hidden, work, given.cc, given.libdir)
        if not hidden.words:
            print("mount namespaces are not allowed here: source tree and build folder stay visible")
        elif hidden.run("ls", "-A", SOURCE).stdout or hidden.run("ls", "-A", build).stdout:
            stop("source tree or build folder is still visible")
        (work / "program.c").write_text(LIBRARY_PROGRAM)
        check_layout(at)
        check_no_build_paths(at, build)
        check_program(at)
        check_plugin(at)
        check_pkg_config(at)
        check_cmake(at, version_of(SOURCE))
        check_nothing_else_is_used(at)
        check_components(build, work)


if __name__ == "__main__":
    main()
