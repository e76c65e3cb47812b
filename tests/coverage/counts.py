"""What gcov counted, by source line."""
import gzip
import glob
import json
import os
import subprocess
import tempfile
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field


@dataclass
class File:
    """lines: {line: executed}; branches: {line: [taken]}, of all that a compiler made of the line."""
    lines: dict = field(default_factory=dict)
    branches: dict = field(default_factory=dict)

    def add(self, one):
        n = one["line_number"]
        self.lines[n] = self.lines.get(n, False) or one["count"] > 0
        taken = [b["count"] > 0 for b in one["branches"] if not b["throw"]]
        if taken:
            self.merge(n, taken)

    def merge(self, n, taken):
        """Of instantiations with as many branches the first belongs to the first; others have folded some away, and stand apart."""
        known = self.branches.setdefault(n, {})
        before = known.get(len(taken))
        known[len(taken)] = [a or b for a, b in zip(before, taken)] if before else taken

    def extend(self, n, taken):
        """More branches of the line."""
        before = self.branches_of(n)
        self.branches[n] = {len(before) + len(taken): before + taken}

    def branches_of(self, n):
        """Those of the fullest version of the line."""
        known = self.branches.get(n)
        return known[max(known)] if known else []

    def unexecuted(self):
        return sorted(n for n, one in self.lines.items() if not one)

    def untaken(self):
        """Lines that are executed, and not all ways out of them are taken."""
        return sorted(n for n in self.branches if self.lines[n] and not all(self.branches_of(n)))


def data_files(folder):
    return glob.glob(os.path.join(folder, "**", "*.gcda"), recursive=True)


def gcov(file):
    """Entries of gcov's report about one object: (path, lines)."""
    with tempfile.TemporaryDirectory() as there:
        subprocess.run([os.environ.get("GCOV", "gcov"), "--json-format", "--branch-probabilities", "--object-directory",
                        os.path.dirname(os.path.abspath(file)), os.path.abspath(file)], cwd=there, check=False,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        found = []
        for name in glob.glob(os.path.join(there, "*.gcov.json.gz")):
            with gzip.open(name) as f:
                found += [(one["file"], one["lines"]) for one in json.load(f)["files"]]
        return found


def read(folder, wanted, jobs):
    """{path from the top: File} of the sources whose path begins with one of wanted."""
    files = defaultdict(File)
    with ThreadPoolExecutor(jobs) as pool:
        for entries in pool.map(gcov, data_files(folder)):
            for path, lines in entries:
                path = os.path.relpath(path)
                if path.startswith(wanted) and "/machine/" not in path:
                    for one in lines:
                        files[path].add(one)
    return dict(files)
