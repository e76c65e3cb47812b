"""What was not executed, as text."""
EACH = 12  # lines are named of a file


def shares(f):
    """(lines, of them executed, branches, of them taken)"""
    branches = [taken for n in f.branches for taken in f.branches_of(n)]
    return len(f.lines), sum(f.lines.values()), len(branches), sum(branches)


def percent(part, whole):
    return 100.0 * part / whole if whole else 100.0


def ranges(numbers):
    """1-3, 7"""
    found = []
    for n in numbers:
        if found and found[-1][1] == n - 1:
            found[-1][1] = n
        else:
            found.append([n, n])
    return [f"{a}" if a == b else f"{a}-{b}" for a, b in found]


def listed(numbers):
    words = ranges(numbers)
    return ", ".join(words[:EACH]) + (f" and {len(words) - EACH} more" if len(words) > EACH else "")


def text_of(files):
    whole = [0, 0, 0, 0]
    lines = ["| File | Lines | Executed | Branches | Taken | Lines not executed | Lines with a branch not taken |", "|---|" + "---|" * 6]
    for path in sorted(files):
        one = shares(files[path])
        whole = [a + b for a, b in zip(whole, one)]
        lines.append(row(path, one, listed(files[path].unexecuted()), listed(files[path].untaken())))
    lines.append(row("all", whole, "", ""))
    return "\n".join(lines) + "\n"


def row(name, one, unexecuted, untaken):
    n, executed, branches, taken = one
    return (f"| {name} | {n} | {percent(executed, n):.1f} % | {branches} | {percent(taken, branches):.1f} % | {unexecuted} | {untaken} |")


def totals(files):
    """Percent of the lines, and of the branches."""
    whole = [sum(column) for column in zip(*map(shares, files.values()))] or [0, 0, 0, 0]
    return percent(whole[1], whole[0]), percent(whole[3], whole[2])
