"""The mutants of a source, each with a key that outlives edits elsewhere in the file."""
import hashlib
import re
from collections import Counter
from dataclasses import dataclass

import operators

STATEMENTS = {"expression_statement", "declaration", "return_statement", "if_statement", "for_statement", "while_statement",
              "do_statement", "switch_statement", "break_statement", "continue_statement", "field_initializer_list"}


@dataclass
class Mutant:
    """key: hash of what is changed, in which statement of which function, so that an edit of that statement makes
    another mutant of it. begin, end: bytes of the file. text replaces them. before: what stands there, on one line."""
    key: str
    path: str
    line: int
    function: str
    kind: str
    begin: int
    end: int
    before: str
    text: str
    whole: bool
    number: int = 0

    def label(self):
        return f"{self.path}:{self.line} {self.kind}: {self.before} -> {shown(self.text)}"


def one_line(text):
    return re.sub(r"\s+", " ", text).strip()


def shown(text):
    """What a person reads: without the words that keep the types."""
    text = re.sub(r"\(FA_ONE_TYPE\(.*?\)\), ", "(", one_line(text)) if "FA_ONE_TYPE" in text else one_line(text)
    return "nothing" if text == ";" else text


def statement_of(node):
    """The head of the statement: of an if or a loop, not what it holds."""
    at = node
    while at.parent is not None and at.type not in STATEMENTS:
        at = at.parent
    body = at.child_by_field_name("body") or at.child_by_field_name("consequence")
    return at.start_byte, body.start_byte if body is not None and body.start_byte > node.end_byte else at.end_byte


def find(source):
    """All mutants of a source, in the order of the text."""
    found, seen = [], Counter()
    for function, body in source.bodies():
        for node in source.runtime(body):
            for operator in operators.ALL:
                for change in operator(source, node):
                    found.append(of_change(source, function, change, seen))
    found.sort(key=lambda m: (m.begin, m.end, m.kind, m.text))
    return found


def of_change(source, function, change, seen):
    node = change.node
    begin, end = statement_of(node)
    around = one_line(source.text[begin:end].decode())
    identity = "|".join((source.path, function, around, change.kind, one_line(source.of(node)), one_line(change.text)))
    seen[identity] += 1
    key = hashlib.sha256(f"{identity}|{seen[identity]}".encode()).hexdigest()[:10]
    return Mutant(key, source.path, node.start_point[0] + 1, function, change.kind, node.start_byte, node.end_byte,
                  one_line(source.of(node)), change.text, change.whole)
