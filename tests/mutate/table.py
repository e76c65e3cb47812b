"""What became of the mutants, by file, as text for docs/notes/detection.md."""
from collections import Counter

import equivalents
import journal

BEGIN, END = "<!-- mutation: {} -->\n", "<!-- end of mutation: {} -->\n"
KINDS = ("FAIL", "RACE", "OOB", "DEADLOCK", "CRASH", "HANG", "WASTE")
MOST_LISTED = 250  # survivors of a subject; of more the table alone tells, on a page
ALIVE = ("equivalent", "unreached", "survives")
OPEN = ("unreached", "survives")  # of these somebody has to say why


def word(row, known):
    if row.outcome in KINDS:
        return row.outcome
    if row.killed:
        return "other"
    if row.outcome == journal.LEFT_OUT:
        return "no program"
    if row.key in known:
        return "equivalent"
    return "unreached" if row.outcome == journal.UNREACHED else "survives"


def table(rows, known):
    """By file: mutants that are programs, killed by what, equivalent, survivors."""
    columns = (*KINDS, "other", *ALIVE)
    lines = ["| File | Mutants | Killed | " + " | ".join(columns) + " |", "|---|" + "---|" * (len(columns) + 2)]
    whole = Counter()
    for path in sorted({r.path for r in rows}):
        count = Counter(word(r, known) for r in rows if r.path == path)
        whole += count
        lines.append(line(path, count, columns))
    lines.append(line("all", whole, columns))
    return "\n".join(lines) + "\n"


def line(name, count, columns):
    n = sum(count[c] for c in columns)
    killed = n - sum(count[c] for c in ALIVE)
    return f"| {name} | {n} | {killed} | " + " | ".join(str(count[c] or "") for c in columns) + " |"


def survivors(rows, known, most=MOST_LISTED):
    """A list of those that nothing killed and nobody excused, then of the excused by class."""
    open_ones = [r for r in rows if word(r, known) in OPEN]
    if len(open_ones) > most:
        return f"\n{len(open_ones)} survivors, which are not listed here: `run.py --table -` prints them.\n"
    text = "\nSurvivors that are holes, or not understood yet:\n\n" + "".join(item(r, r.reason or r.outcome) for r in open_ones)
    text += "\nEquivalent:\n\n" + "".join(item(r, ": ".join(known[r.key])) for r in rows if word(r, known) == "equivalent")
    return text


def item(r, why):
    return f"- `{r.key}` {r.path}:{r.line} {r.kind}: `{r.change.split(': ', 1)[-1].replace('`', '')[:120]}` ({why})\n"


def summary(rows, known, what):
    count = Counter(word(r, known) for r in rows)
    n = len(rows) - count["no program"]
    killed = n - sum(count[c] for c in ALIVE)
    real = n - count["equivalent"]
    share = 100.0 * killed / real if real else 0.0
    return (f"{what}: {n} mutants ({count['no program']} more are no program), {killed} killed, {count['equivalent']} equivalent, "
            f"{count['survives']} survive, {count['unreached']} no case reaches: {share:.1f} % of those that are not equivalent.\n")


def write(path, what, text):
    """Replaces the text between the subject's two marks."""
    begin, end = BEGIN.format(what), END.format(what)
    with open(path) as f:
        before, found, rest = f.read().partition(begin)
    if not found:
        raise SystemExit(f"{path} has no mark {begin.strip()}")
    _, _, after = rest.partition(end)
    with open(path, "w") as f:
        f.write(before + begin + text + end + after)


def text_of(rows, known, what, most=MOST_LISTED):
    ordered = sorted(rows, key=lambda r: (r.path, r.line, r.kind, r.change))
    return summary(rows, known, what) + "\n" + table(ordered, known) + survivors(ordered, known, most)


def known_equivalents():
    return equivalents.load()
