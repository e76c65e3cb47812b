"""Asks a suite about mutants, and writes down what it says."""
import random
from concurrent.futures import ThreadPoolExecutor, as_completed

import journal


def judge(mutant, suite, budget):
    """The mutant's row: tries in the suite's order until one kills, or the budget (seconds of the processor) is spent."""
    tries, asked, spent = suite.of(mutant), set(), 0.0
    if not tries:
        return journal.row(mutant, journal.UNREACHED)
    for t, judged in suite.order(tries):
        if spent > budget:
            break
        said = t.ask(mutant, judged)
        asked.add(t)
        spent += said.seconds
        if t.kills(said):
            return journal.row(mutant, said.state, by=t.label(), reason=said.reason, tried=len(asked), seconds=spent)
    note = "" if len(asked) == len(tries) else f"{len(tries) - len(asked)} not tried"
    return journal.row(mutant, journal.SURVIVED, reason=note, tried=len(asked), seconds=spent)


def judge_all(batch, suite, book, budget, log, jobs=1):
    """In no order of files: what a run that is stopped has judged is a sample too."""
    for m in batch.left_out:
        book.add(journal.row(m, journal.LEFT_OUT, reason="does not compile"))
    with ThreadPoolExecutor(jobs) as pool:
        mixed = random.Random(len(batch.mutants)).sample(batch.mutants, len(batch.mutants))
        waiting = {pool.submit(judge, m, suite, budget): m for m in mixed}
        for i, done in enumerate(as_completed(waiting), 1):
            m, one = waiting[done], done.result()
            book.add(one)
            said = f"{one.outcome} by {one.by}: {one.reason[:90]}" if one.killed else f"{one.outcome.upper()} {one.reason}"
            log(f"{i}/{len(batch.mutants)} {m.key} {m.label()[:150]} | {said} ({one.tried} tried, {one.seconds:.1f} s)")
