#!/usr/bin/env python3
"""Compares what two builds would launch: dumps of plan_dump.

usage: compare.py [--renames FILE] [--ignore FIELD,...] [--show N] OLD NEW

OLD and NEW: two dumps, or two folders of dumps named alike. --renames: lines "old new", names of kernels. --ignore: fields of
the lines that may differ (writes, unit, workspace, text, ...). --show: cases to print for each kind of difference (2). Exit: 0
equal, 1 cases differ, 2 there is nothing to compare."""
import argparse
import os
import re
import sys

FIELDS = ("able passes state launches profile kernel backward why text grid block cluster shared overlaps workspace writes unit "
          "params").split()
FIELD = re.compile(rf" ({'|'.join(FIELDS)})=")


def parse_line(line):
    """{field: value} of a line; the text before the first field is its "name"."""
    head, *rest = FIELD.split(line)
    return {"name": head.strip(), **dict(zip(rest[::2], rest[1::2]))}


def read(path, renames, ignored):
    """{case: [its line's fields, each launch's fields, ...]}"""
    def renamed(text):
        return re.sub(r"\w+", lambda m: renames.get(m[0], m[0]), text)

    cases, current = {}, None
    with open(path, errors="replace") as f:
        for line in f.read().splitlines():
            if line.startswith("case "):
                entry = parse_line(line)
                current = cases.setdefault(entry.pop("name"), [])
            elif re.match(r" +\d+ ", line):  # a word of the parameters, with --full
                current[-1].setdefault("words", []).append(line.strip())
                continue
            elif line.startswith("  "):
                entry = parse_line(line)
                entry.update({k: renamed(entry[k]) for k in ("name", "unit") if k in entry})
            else:
                continue  # the rest of a message of several lines
            current.append({k: v for k, v in entry.items() if k not in ignored})
    return cases


def kind_of_difference(old, new):
    """Differences between two plans of a case, in words; "": none."""
    if len(old) != len(new):
        return "number of launches"
    kinds = {("launch " if i else "case ") + key
             for i, (a, b) in enumerate(zip(old, new)) for key in {**a, **b} if a.get(key) != b.get(key)}
    return ", ".join(sorted(kinds))


def print_difference(old, new):
    for i in range(max(len(old), len(new))):
        a, b = (plan[i] if i < len(plan) else {} for plan in (old, new))
        for key in {**a, **b}:
            if a.get(key) == b.get(key):
                continue
            if key == "words":
                pairs = zip(a.get(key, []), b.get(key, []))
                print(f"      {i}: {a.get('name', '')}: " + "; ".join(f"{x} -> {y}" for x, y in pairs if x != y))
            else:
                print(f"      {i}: {a.get('name', '')} {key}: {a.get(key)} -> {b.get(key)}")


def compare(old_path, new_path, renames, ignored, show):
    """Prints a summary; True if all cases are equal."""
    old, new = read(old_path, renames, ignored), read(new_path, {}, ignored)
    kinds = {}
    for name in [*old, *(n for n in new if n not in old)]:
        missing = "missing" if name not in new else "added" if name not in old else ""
        kind = missing or kind_of_difference(old[name], new[name])
        if kind:
            kinds.setdefault(kind, []).append(name)
    n_launches = sum(len(plan) - 1 for plan in old.values())
    n_different = sum(len(names) for names in kinds.values())
    print(f"{os.path.basename(old_path)}: {len(old)} cases, {n_launches} launches: {n_different} differ")
    for kind, names in sorted(kinds.items(), key=lambda item: -len(item[1])):
        print(f"  {len(names):6d}  {kind}")
        for name in names[:show]:
            print(f"    {name}")
            print_difference(old.get(name, []), new.get(name, []))
    return not kinds


def pairs_of(old, new):
    if not os.path.isdir(old):
        return [(old, new)]
    return [(os.path.join(old, n), os.path.join(new, n)) for n in sorted(os.listdir(old)) if n.endswith(".txt")]


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--renames")
    parser.add_argument("--ignore", default="")
    parser.add_argument("--show", type=int, default=2)
    parser.add_argument("old")
    parser.add_argument("new")
    args = parser.parse_args()
    pairs = pairs_of(args.old, args.new)
    missing = [path for pair in pairs for path in pair if not os.path.exists(path)]
    if missing or not pairs:
        print(f"compare.py: no dumps: {', '.join(missing) or args.old}", file=sys.stderr)
        return 2
    renames = {}
    if args.renames:
        with open(args.renames) as f:
            renames = dict(line.split()[:2] for line in f if len(line.split()) >= 2)
    equal = [compare(*pair, renames, args.ignore.split(","), args.show) for pair in pairs]
    return 0 if all(equal) else 1


if __name__ == "__main__":
    sys.exit(main())
