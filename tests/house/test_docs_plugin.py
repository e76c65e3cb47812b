"""docs/reference/plugin.md has a table for each struct of gpu/plugin.h: both must have the same members.

Afterwards copies with one fault each, every one of which must be found. Run in the repository's root.
"""
import re
import sys

HEADER, DOCUMENT = "gpu/plugin.h", "docs/reference/plugin.md"


def header_members(text):
    """{struct: its members}, comments left out."""
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    structs = {}
    for name, body in re.findall(r"typedef struct (\w+) \{(.*?)\n\} \1;", text, flags=re.S):
        members = []
        for line in body.split(";"):
            function = re.search(r"\(\*(\w+)\)\(", line)
            last_words = re.findall(r"(\w+)(?:\[\d+\])?\s*(?:,|$)", line.strip())
            members += [function[1]] if function else last_words
        structs[name] = members
    return structs


def document_members(text):
    """{struct: members in the first column of its table}."""
    structs = {}
    for name, rows in re.findall(r"^\| member of (\w+) \|.*\n\|[-|]+\n((?:\|.*\n)+)", text, flags=re.M):
        structs[name] = [m for row in rows.splitlines() for m in re.findall(r"`(\w+)`", row.split("|")[1])]
    return structs


def faults(header, document):
    """What either has and the other lacks, a line each."""
    there, here = header_members(header), document_members(document)
    found = [f"no table of {name}" for name in there if name not in here]
    found += [f"no struct {name}" for name in here if name not in there]
    for name in set(there) & set(here):
        found += [f"{name}: {m} is not in the document" for m in there[name] if m not in here[name]]
        found += [f"{name}: {m} is not in the header" for m in here[name] if m not in there[name]]
        found += [f"{name}: {m} twice" for m in set(here[name]) if here[name].count(m) > 1]
    return found


# In the document or the header: a text, its replacement, and the expected message.
SPOILT = [
    ("`softcap` |", "`softcaps` |", "softcaps is not in the header"),
    ("`n_captures`, `captures`", "`captures`", "n_captures is not in the document"),
    ("member of fa_plugin_run", "member of fa_plugin_runs", "no table of fa_plugin_run"),
    ("`q`, `k`, `v` |", "`q`, `k`, `v`, `q` |", "q twice"),
    ("dq, dk, dv, dbias;", "dq, dk, dv, dbias, dsink;", "dsink is not in the document"),
    ("char kernel[128];", "char kernels[128];", "kernel is not in the header"),
    ("(*supports)(", "(*can)(", "can is not in the document"),
    ("int64_t shape[5], stride[5];", "int64_t shape[5];", "stride is not in the header"),
]


def main():
    header, document = (open(path, encoding="utf-8").read() for path in (HEADER, DOCUMENT))
    found = faults(header, document)
    for old, new, said in SPOILT if not found else []:
        if old not in header + document:
            found.append(f"the fault to plant is nowhere: {old}")
        elif not any(said in fault for fault in faults(header.replace(old, new), document.replace(old, new))):
            found.append(f"not noticed: {new} instead of {old}")
    if sum(map(len, header_members(header).values())) < 100:
        found.append("few members: the header is read wrongly")
    for fault in found:
        print(f"{DOCUMENT}: {fault}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
