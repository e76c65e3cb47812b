"""Asks a suite about mutants, and writes down what it says."""
import itertools
import random
from concurrent.futures import ThreadPoolExecutor, as_completed

import journal


def judge(mutant, suite, budget, after=0):
    """The mutant's row, and how many questions were asked if some are left: tries in the suite's order until one kills, or the
    budget (seconds of the processor) is spent. after: so many questions have been asked before."""
    tries, spent, n = suite.of(mutant), 0.0, after
    if not tries:
        return journal.row(mutant, journal.UNREACHED), None
    asked = {t for t, _ in itertools.islice(suite.order(tries), after)}
    for t, judged in itertools.islice(suite.order(tries), after, None):
        if spent > budget:
            note = f"{len(tries) - len(asked)} not tried" if len(asked) < len(tries) else "not all judged"
            return journal.row(mutant, journal.SURVIVED, reason=note, tried=len(asked), seconds=spent), n
        said = t.ask(mutant, judged)
        asked.add(t)
        spent, n = spent + said.seconds, n + 1
        if t.kills(said):
            return journal.row(mutant, said.state, by=t.label(), reason=said.reason, tried=len(asked), seconds=spent), None
    return journal.row(mutant, journal.SURVIVED, tried=len(asked), seconds=spent), None


def mixed(some):
    """In no order of files, but always the same."""
    return random.Random(len(some)).sample(some, len(some))


def judge_all(batch, suite, book, budgets, log, jobs=1, excused=()):
    """In no order of files: what a run that is stopped has judged is a sample too. budgets: whoever survives the first is asked on
    under the next, so that the dear survivors come last. excused: keys of those that are asked under the first alone."""
    for m in batch.left_out:
        book.add(journal.row(m, journal.LEFT_OUT, reason="does not compile"))
    waiting = [(m, 0) for m in mixed(batch.mutants)]
    with ThreadPoolExecutor(jobs) as pool:
        for budget in budgets:
            waiting = [(m, n) for m, n in judge_round(waiting, suite, book, budget, log, pool) if m.key not in excused]


def judge_round(waiting, suite, book, budget, log, pool):
    """[(mutant, questions asked)] of those that still may be asked more."""
    alive, running = [], {pool.submit(judge, m, suite, budget, after): m for m, after in waiting}
    for i, done in enumerate(as_completed(running), 1):
        m, (one, n) = running[done], done.result()
        book.add(one)
        said = f"{one.outcome} by {one.by}: {one.reason[:90]}" if one.killed else f"{one.outcome.upper()} {one.reason}"
        log(f"{i}/{len(running)} {m.key} {m.label()[:150]} | {said} ({one.tried} tried, {one.seconds:.1f} s)")
        if n is not None:
            alive.append((m, n))
    return alive
