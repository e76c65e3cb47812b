"""A prefix that a build folder was installed into and moved away from, with source tree and build folder hidden from what runs there."""
from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]
HIDE = 'set -e; for hidden; do shift; [ "$hidden" = -- ] && break; mount -t tmpfs none "$hidden"; done; exec "$@"'


def stop(message: str) -> None:
    sys.exit(f"FAILED: {message}")


def install(build: Path, folder: Path, *arguments: str) -> Path:
    """Installs below folder as if it were the root of a system, and moves what came of it to another place, which it returns."""
    environment = {**os.environ, "DESTDIR": str(folder / "root")}
    words = ["cmake", "--install", str(build), "--prefix", "/opt/first", *arguments]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        stop(f"{' '.join(words)}\n{done.stdout[-1000:]}{done.stderr[-2000:]}")
    moved = folder / "moved"
    shutil.move(folder / "root/opt/first", moved)
    left = [str(p) for p in (folder / "root").rglob("*") if not p.is_dir()]
    if left:
        stop(f"installed outside of the prefix: {left[:5]}")
    return moved


class Hidden:
    """Runs commands that cannot see some folders: in a mount namespace, where that is allowed; else only from another folder."""

    def __init__(self, *folders: Path):
        self.folders = [str(f) for f in folders]
        self.words: list[str] = []
        for rights in ([], ["--map-root-user"]):
            words = ["unshare", *rights, "--mount", "sh", "-c", HIDE, "sh", *self.folders, "--"]
            if shutil.which("unshare") and subprocess.run([*words, "true"], capture_output=True, check=False).returncode == 0:
                self.words = words
                break

    def run(self, *words: str | Path, cwd: str | Path = "/", **environment: str) -> subprocess.CompletedProcess[str]:
        clean = {k: v for k, v in os.environ.items() if not k.startswith(("FA_", "CMAKE_", "PKG_CONFIG"))}
        return subprocess.run([*self.words, *map(str, words)], cwd=cwd, env={**clean, **environment}, capture_output=True, text=True, check=False)
