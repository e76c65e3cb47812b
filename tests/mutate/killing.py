"""Asks a suite about mutants, one at a time, and writes down what it says."""
import time

import journal


def judge(mutant, suite, budget):
    """The mutant's row: tries in their order until one kills, or the budget (seconds) is spent."""
    began, tried = time.time(), 0
    tries = suite.of(mutant)
    if not tries:
        return journal.row(mutant, journal.UNREACHED)
    for t in tries:
        tried += 1
        said = t.kills(mutant)
        if said:
            return journal.row(mutant, said[0], by=t.label(), reason=said[1], tried=tried, seconds=time.time() - began)
        if time.time() - began > budget:
            break
    last = suite.kills_judged(mutant, tries)
    if last:
        t, said = last
        return journal.row(mutant, said[0], by=t.label(), reason=said[1], tried=tried, seconds=time.time() - began)
    note = "" if tried == len(tries) else f"{len(tries) - tried} not tried"
    return journal.row(mutant, journal.SURVIVED, reason=note, tried=tried, seconds=time.time() - began)


def judge_all(batch, suite, book, budget, log):
    for m in batch.left_out:
        book.add(journal.row(m, journal.LEFT_OUT, reason="does not compile"))
    for i, m in enumerate(batch.mutants, 1):
        one = judge(m, suite, budget)
        book.add(one)
        said = f"{one.outcome} by {one.by}: {one.reason[:90]}" if one.killed else f"{one.outcome.upper()} {one.reason}"
        log(f"{i}/{len(batch.mutants)} {m.key} {m.label()[:150]} | {said} ({one.tried} tried, {one.seconds:.1f} s)")
