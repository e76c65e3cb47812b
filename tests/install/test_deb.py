"""The Debian package: its fields, what it depends on, what is in it and with which rights, and that the program runs as it is unpacked.
Installing and removing it in a bare system is .ci/package/try_bare.sh's.

usage: test_deb.py BUILD"""
from __future__ import annotations

import gzip
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from prefix import SOURCE, Hidden, stop

FIELDS = {"Package": "fa-verify", "Section": "science", "Priority": "optional", "Maintainer": "[^<>]+ <[^ @]+@[^ ]+>", "Version": r"\d+\.\d+\.\d+",
          "Depends": r".*\blibc6 \(>= .*\blibcjson1 .*"}
# What lintian says that is meant so: one package holds the program and the library, and cpack writes the scripts that tell the linker of it.
LINTIAN_EXPECTED = {"link-to-shared-library-in-wrong-package", "maintscript-calls-ldconfig", "package-name-doesnt-match-sonames",
                    "pkg-config-unavailable-for-cross-compilation"}


def run(*words: str | Path) -> str:
    done = subprocess.run([str(w) for w in words], capture_output=True, text=True, check=False)
    if done.returncode:
        stop(f"{' '.join(map(str, words))}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout


def pack(build: Path, folder: Path) -> Path:
    run("cpack", "-G", "DEB", "-B", folder, "--config", build / "CPackConfig.cmake")
    found = list(folder.glob("*.deb"))
    if len(found) != 1:
        stop(f"cpack made {found}")
    return found[0]


def check_control(deb: Path) -> None:
    for field, pattern in FIELDS.items():
        value = run("dpkg-deb", "-f", deb, field).strip()
        if not re.fullmatch(pattern, value):
            stop(f"{field} is {value!r}")
    version = re.search(r"project\(fa-verify VERSION (\S+)", (SOURCE / "CMakeLists.txt").read_text())
    if not version or run("dpkg-deb", "-f", deb, "Version").strip() != version[1]:
        stop("the package has another version than CMakeLists.txt")
    parts = run("sh", "-c", f"dpkg-deb --ctrl-tarfile '{deb}' | tar t")
    if "conffiles" in parts or "shlibs" not in parts:
        stop(f"control files: {parts}")


def check_rights(deb: Path) -> None:
    for line in run("dpkg-deb", "-c", deb).splitlines():
        rights, owner, *_, name = line.split(" -> ")[0].split()
        wanted = {"d": "drwxr-xr-x", "l": "lrwxrwxrwx"}.get(rights[0], "-rwxr-xr-x" if name.startswith("./usr/bin/") else "-rw-r--r--")
        if owner != "root/root" or rights != wanted or not name.startswith(("./usr/", "./")):
            stop(f"rights: {line}")


def check_files(root: Path) -> None:
    doc = root / "usr/share/doc/fa-verify"
    copyright_text = (doc / "copyright").read_text()
    if "BSD 3-Clause" not in copyright_text or (root / "usr/share/doc/fa-verify/LICENSE").exists():
        stop("the copyright file is not as it should be")
    if not gzip.decompress((doc / "changelog.gz").read_bytes()).decode().startswith("fa-verify ("):
        stop("changelog.gz is no Debian changelog")
    man = root / "usr/share/man/man1"
    if sorted(p.name for p in man.iterdir()) != ["fa-verify.1.gz"] or b".TH" not in gzip.decompress((man / "fa-verify.1.gz").read_bytes()):
        stop("the manual page is not there, or not compressed")
    for completion in ("bash-completion/completions/fa-verify", "zsh/vendor-completions/_fa-verify", "fish/vendor_completions.d/fa-verify.fish"):
        if not (root / "usr/share" / completion).is_file():
            stop(f"{completion} is missing")


def check_runs(root: Path, build: Path) -> None:
    done = Hidden(build, SOURCE).run(root / "usr/bin/fa-verify", "--cases", "causal", "--filter", "^square_7$", "--backend", "host")
    if done.returncode or "passed:1" not in done.stdout:
        stop(f"the unpacked program: {done.stdout}{done.stderr}")


def check_lintian(deb: Path) -> None:
    if not shutil.which("lintian"):
        print("without lintian: it is not asked")
        return
    said = subprocess.run(["lintian", "--allow-root", str(deb)], capture_output=True, text=True, check=False).stdout
    unexpected = [line for line in said.splitlines() if re.match(r"[EW]: \S+ (\S+)", line) and line.split()[2] not in LINTIAN_EXPECTED]
    if unexpected:
        stop("lintian:\n" + "\n".join(unexpected))


def main() -> int:
    missing = [tool for tool in ("cpack", "dpkg-deb", "dpkg-shlibdeps", "tar") if not shutil.which(tool)]
    if missing:
        print(f"skipped: no {', '.join(missing)}")
        return 77
    build = Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory(prefix="fa-deb-") as name:
        deb, root = pack(build, Path(name) / "packed"), Path(name) / "root"
        run("dpkg-deb", "-x", deb, root)
        check_control(deb)
        check_rights(deb)
        check_files(root)
        check_runs(root, build)
        check_lintian(deb)
    return 0


if __name__ == "__main__":
    sys.exit(main())
