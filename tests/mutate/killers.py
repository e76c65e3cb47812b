"""What the GPU's judge says of mutants that cases have killed: each is asked again of the case that did, judged by both judges.

Only a FAIL is the judge's to see: of a race, an access out of bounds, a wait without end, a crash and waste the executor tells, and
there is nothing to judge. The program as it is, is asked of the same cases, since a judge that passes nothing would kill everything.
A mutant that reads what nobody has written may be right by chance this time: both judges pass it, and it lives."""
import math
import time
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor, as_completed

import journal
import killing

UNSURE = "not surely right"  # how the GPU's judge fails what it has seen (fuzz/judging/two.h)
COLUMNS = ("refused", "contradicted", "left to the CPU", "fails beside the judges", "ends otherwise", "lives")


def place_of(row):
    """(backend, case) of "CASE (BACKEND)"; None of a test program."""
    name, _, backend = row.by.rpartition(" (")
    return (backend.rstrip(")"), name) if name else None


def to_ask(rows):
    """{key: row} of those that the judge has killed."""
    return {r.key: r for r in rows if r.outcome == "FAIL" and place_of(r)}


def backends_of(rows):
    return sorted({place_of(r)[0] for r in to_ask(rows).values()})


def not_asked(rows):
    """Of the killed ones, by what: where there is nothing to judge."""
    asked = to_ask(rows)
    return Counter(r.outcome if place_of(r) else "a test program" for r in rows if r.killed and r.key not in asked)


def word(row):
    """What became of one that was asked again: one of COLUMNS."""
    if row.outcome == journal.ERROR:
        return "contradicted"
    if row.outcome in ("PASS", "SAME"):
        return "lives"
    if row.outcome != "FAIL":
        return "ends otherwise"
    if row.judge == "PASS":
        return "fails beside the judges"
    return "refused" if row.judge.startswith(UNSURE) else "left to the CPU"


def numbers_of(suite):
    return {(backend, suite.names[n]): n for backend, n in suite.every}


def ask_control(suite, places, jobs):
    """{place: Answer} of the program as it is."""
    numbers = numbers_of(suite)
    with ThreadPoolExecutor(jobs) as pool:
        said = pool.map(lambda at: suite.ask(at[0], "-0", numbers[at], suite.dearest), places)
        return dict(zip(places, said))


def ask_one(mutant, row, suite, numbers, control):
    at = place_of(row)
    said = suite.ask(at[0], -mutant.number, numbers[at], 10 + 20 * control[at].seconds)
    return journal.row(mutant, said.state, by=row.by, reason=said.reason, tried=1, seconds=said.seconds, judge=said.judge)


def asked(questions, jobs, end, log):
    """Yields the answers of those that are asked by the time end and answered at all."""
    n = 0
    with ThreadPoolExecutor(jobs) as pool:
        running = [pool.submit(lambda q=q: q() if time.time() < end else None) for q in questions]
        for done in as_completed(running):
            if done.exception():
                log(f"not answered: {done.exception()}")
            elif done.result():
                n += 1
                yield done.result()
    if n < len(questions):
        log(f"not asked, or not answered: {len(questions) - n}")


def ask(mutants, rows, suite, book, jobs, log, end=math.inf):
    """Asks those of the mutants that rows, of an earlier run, name a case of, until the time end; ({place: Answer} of the program as it
    is, rows)."""
    known, numbers = to_ask(rows), numbers_of(suite)
    some = [m for m in killing.mixed(mutants) if m.key in known and place_of(known[m.key]) in numbers]
    control = ask_control(suite, sorted({place_of(known[m.key]) for m in some}), jobs)
    log(f"{len(control)} cases asked of the program as it is")
    found = []
    for one in asked([lambda m=m: ask_one(m, known[m.key], suite, numbers, control) for m in some], jobs, end, log):
        book.add(one)
        found.append(one)
        if word(one) in ("contradicted", "lives"):
            log(f"{word(one)}: {one.key} {one.path}:{one.line} {one.change} | {one.by}: {one.reason}")
    return control, found


def reasons(words):
    return ", ".join(f"{n} {text or 'no judge was asked'}" for text, n in words.most_common()) or "none"


def words_of(control):
    """How often the GPU's judge says what of the program as it is."""
    return Counter(a.judge if a.state == "PASS" else f"{a.state} {a.reason}" for a in control.values())


def text_of(control, found, apart, what="File"):
    """A table by file (path), or by what that stands for, and what it does not tell. control: of words_of(); apart: of not_asked()."""
    lines = [f"| {what} | Asked | " + " | ".join(COLUMNS) + " |", "|---|" + "---|" * (len(COLUMNS) + 1)]
    by_path = defaultdict(list)
    for r in found:
        by_path[r.path].append(r)
    for path, rows in (*sorted(by_path.items()), ("all", found)):
        count = Counter(map(word, rows))
        lines.append(f"| {path} | {len(rows)} | " + " | ".join(str(count[c] or "") for c in COLUMNS) + " |")
    return "\n".join(lines) + (
        f"\n\nThe program as it is, on the {sum(control.values())} cases: {reasons(control)}.\n"
        f"Refused: {reasons(Counter(r.judge for r in found if word(r) == 'refused'))}.\n"
        f"Left to the CPU: {reasons(Counter(r.judge for r in found if word(r) == 'left to the CPU'))}.\n"
        f"Ends otherwise: {reasons(Counter(r.outcome for r in found if word(r) == 'ends otherwise'))}.\n"
        f"Killed, and nothing to judge: {reasons(apart)}.\n")


def is_clean(found):
    """The GPU's judge has passed none that the CPU's fails."""
    return not any(word(r) == "contradicted" for r in found)
