"""What README.md, docs/ and .github/ name must be there: pages and headings that are linked, files and folders that are named; and README
stays short. Sources that name a page of docs/, and a heading of it in quotes, are held to the same.

In a path NAME, FILE, FAMILY or a star stands for anything. The pages of docs/notes/ are of their day: where files that have gone
since are named without their folder, that is not looked at. Afterwards copies of the texts with one fault each, every one of which
must be found. Run in the repository's root.
"""
import glob
import os
import re
import subprocess
import sys

README_LINES = 150
PLACEHOLDER = re.compile(r"(?<![A-Za-z])(?:NAME|FILE|FAMILY)(?![A-Za-z])")
ROOTS = "cases|ref|gpu|report|fuzz|tests|docs|python|[.]ci|[.]github(?!/workflows)"  # workflows are those of a reader's repository
PATH = re.compile(rf"(?<![\w/.-])(?:{ROOTS})/[\w./*-]*")
FILE = re.compile(r"`([\w-]+\.(?:c|h|cu|cuh|cpp|py|sh|def|cmake))`")
LINK = re.compile(r"\]\(([^)\s]+)\)")
PAGE = re.compile(r"docs/[\w/.-]+\.md")
HEADING = re.compile(r'(docs/[\w/.-]+\.md)(?:,| \()\s*(?:\*|//|#)?\s*"([^"]+)"')

def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def files_of_repository():
    """Tracked files, and new ones that are not ignored; what a folder without git has, otherwise."""
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], capture_output=True, text=True, check=False)
    names = listed.stdout.split("\n") if listed.returncode == 0 else glob.glob("**/*", recursive=True)
    return sorted(name for name in names if os.path.isfile(name))


class Repository:
    def __init__(self):
        names = files_of_repository()
        self.pages = {n: read(n) for n in names if n == "README.md" or (n.startswith(("docs/", ".github/")) and n.endswith(".md"))}
        self.names = {os.path.basename(n) for n in names}
        suffixes = (".c", ".h", ".cu", ".cuh", ".cpp", ".py", ".sh", ".txt", ".cmake", ".json", ".patch")
        self.sources = {n: read(n) for n in names if n.endswith(suffixes) and n != "tests/house/test_docs_links.py"}


def slugs(text):
    """The anchors of a page's headings, as GitHub makes them."""
    found = set()
    fenced = False
    for line in text.split("\n"):
        fenced ^= line.startswith("```")
        if line.startswith("#") and not fenced:
            title = re.sub(r"[^\w\- ]", "", line.lstrip("#").strip().lower())
            found.add(title.replace(" ", "-"))
    return found


def headings(text):
    return {line.lstrip("#").strip().lower() for line in text.split("\n") if line.startswith("#")}


def exists(path):
    path = PLACEHOLDER.sub("*", path)
    return bool(glob.glob(path)) if "*" in path else os.path.exists(path)


def link_faults(page, text, pages):
    found = []
    for target in LINK.findall(text):
        if re.match(r"\w+:", target):
            continue
        path, _, anchor = target.partition("#")
        path = os.path.normpath(os.path.join(os.path.dirname(page), path)) if path else page
        if not os.path.exists(path):
            found.append(f"{page}: link to {target}, which is not there")
        elif anchor and anchor not in slugs(pages.get(path, "")):
            found.append(f"{page}: link to {target}, but no such heading")
    return found


def name_faults(page, text, names):
    named = {path.rstrip(".") for path in PATH.findall(text)}  # a sentence may end behind it
    found = [f"{page}: {path} is not there" for path in sorted(named) if not exists(path)]
    if not page.startswith("docs/notes/"):
        found += [f"{page}: no file is called {name}" for name in sorted(set(FILE.findall(text)) - names)
                  if not PLACEHOLDER.match(name)]
    return found


def source_faults(source, text, pages):
    found = [f"{source}: {page} is not there" for page in sorted(set(PAGE.findall(text))) if page not in pages]
    for page, heading in HEADING.findall(text):
        if page in pages and f"**{heading}" not in pages[page] and heading.lower() not in headings(pages[page]):
            found.append(f"{source}: {page} has no heading \"{heading}\"")
    return found


def faults(r):
    found = []
    n_lines = r.pages["README.md"].count("\n")
    if n_lines >= README_LINES:
        found.append(f"README.md has {n_lines} lines, {README_LINES - 1} are allowed")
    for page, text in r.pages.items():
        found += link_faults(page, text, r.pages) + name_faults(page, text, r.names)
    for source, text in r.sources.items():
        found += source_faults(source, text, r.pages)
    return found


# Where a fault is planted, what is added there, and what must be said.
PLANTED = [
    ("README.md", "\n" * README_LINES, "lines, "),
    ("README.md", "[x](docs/reference/nowhere.md)", "docs/reference/nowhere.md, which is not there"),
    ("README.md", "[x](docs/reference/bounds.md#nothing)", "no such heading"),
    ("docs/reference/bounds.md", "[x](nowhere.md)", "nowhere.md, which is not there"),
    ("docs/reference/bounds.md", "as in `ref/bounds/nowhere.c`.", "ref/bounds/nowhere.c is not there"),
    ("docs/reference/bounds.md", "gpu/plan/nothing*", "gpu/plan/nothing* is not there"),
    ("docs/reference/bounds.md", "as in `nowhere.cuh`", "no file is called nowhere.cuh"),
    ("docs/notes/performance.md", "gpu/nowhere.c", "gpu/nowhere.c is not there"),
    (".github/CONTRIBUTING.md", "[x](../docs/nowhere.md)", "docs/nowhere.md, which is not there"),
    (".github/SECURITY.md", "as in `report/nowhere.c`.", "report/nowhere.c is not there"),
    ("README.md", ".github/NOWHERE.md", ".github/NOWHERE.md is not there"),
    ("ref/reference.h", "/* docs/bounds.md */", "docs/bounds.md is not there"),
    ("ref/reference.h", '/* docs/reference/bounds.md, "Nothing". */', 'no heading "Nothing"'),
]


def main():
    r = Repository()
    found = faults(r)
    for name, added, said in PLANTED if not found else []:
        texts = r.pages if name in r.pages else r.sources
        before = texts[name]
        texts[name] = before + added
        if not any(fault.startswith(name) and said in fault for fault in faults(r)):
            found.append(f"not noticed in {name}: {added.strip() or 'many lines'}")
        texts[name] = before
    print("\n".join(found) or f"{len(r.pages)} pages, {len(r.sources)} sources")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
