"""Many mutants in one text: each is chosen at run time by its number (switch.h).

A place becomes `(fa_m(17) ? a <= b : a < b)`; the mutant's own text holds the places inside it as written, because only
one mutant is in force at a time, so that the text grows with the number of mutants and not with their combinations.
Lines stay lines: reports of the executor name them."""
import re
from collections import defaultdict

MARK = re.compile("\x01(\\d+)\x02|\x03")


def mutate(text, mutants):
    """The text with all these mutants, and [(line, first column, last column, number)] of where each came to stand."""
    by_span = defaultdict(list)
    for m in mutants:
        by_span[m.begin, m.end].append(m)
    spans = sorted(by_span, key=lambda s: (s[0], -s[1]))
    marked, rest = render(text, 0, len(text), spans, by_span)
    assert not rest, "spans overlap"
    return unmark(marked)


def render(text, begin, end, spans, by_span):
    """text[begin:end] with the places of spans that lie in it, and the spans after it."""
    out, at = [], begin
    while spans and spans[0][0] < end:
        first, last = spans[0]
        inside, spans = render(text, first, last, spans[1:], by_span)
        out += [text[at:first].decode(), chosen(inside, by_span[first, last])]
        at = last
    out.append(text[at:end].decode())
    return "".join(out), spans


def chosen(original, mutants):
    """Statements and expressions never have the same span: one ends with a semicolon."""
    if mutants[0].whole:
        tests = "".join(f"if (fa_m({m.number})) {own(m)} else " for m in mutants)
        return f"{{ {tests}{original} }}"
    tests = "".join(f"fa_m({m.number}) ? {own(m)} : " for m in mutants)
    truth = "!!" if any(m.kind.startswith(("condition", "arm")) for m in mutants) else ""  # it may be a pointer
    return f"({tests}{truth}({original}))"


def own(m):
    """A mutant's text on one line, between marks."""
    return f"\x01{m.number}\x02{re.sub(chr(10), ' ', m.text)}\x03"


def unmark(marked):
    text, places, open_at = [], [], None
    for number, line in enumerate(marked.split("\n"), 1):
        out, last = "", 0
        for m in MARK.finditer(line):
            out += line[last:m.start()]
            last = m.end()
            if m.group(1):
                open_at = int(m.group(1)), len(out) + 1
            else:
                places.append((number, open_at[1], len(out) + 1, open_at[0]))
        text.append(out + line[last:])
    return "\n".join(text), places
