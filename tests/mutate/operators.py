"""What one change of a program can be: every function takes a source and a node and yields Change.

A change is first order: it stands alone, the rest is as written. `text` replaces the node. Texts never repeat what the
program does at the place, and have the original's type, or do not compile; what does not compile is left out and
counted (compile.py)."""
from dataclasses import dataclass

RELATIONAL = {"<": ("<=", ">="), "<=": ("<", ">"), ">": (">=", "<="), ">=": (">", "<"), "==": ("!=",), "!=": ("==",)}
ARITHMETIC = {"+": ("-",), "-": ("+",), "*": ("/", "+"), "/": ("*",), "%": ("/",)}
BITWISE = {"&": ("|", "^"), "|": ("&",), "^": ("|",), "<<": (">>",), ">>": ("<<",)}
LOGICAL = {"&&": ("||",), "||": ("&&",)}
ASSIGNED = {"+=": ("-=", "="), "-=": ("+=", "="), "*=": ("/=", "="), "/=": ("*=",), "%=": ("/=",), "&=": ("|=", "="),
            "|=": ("&=", "="), "^=": ("|=",), "<<=": (">>=",), ">>=": ("<<=",)}
SWAPPED_NAMES = {"min_int": "max_int", "max_int": "min_int", "fmin": "fmax", "fmax": "fmin", "fminf": "fmaxf", "fmaxf": "fminf",
                 "min": "max", "max": "min"}
# Calls whose first two arguments may be swapped.
COMMUTATIVE = {"multiply", "fmaf", "fma"}
# Calls that return their argument whatever it is: to leave one out changes nothing.
IDENTITIES = {"opaque", "uniform"}


@dataclass
class Change:
    """kind: the operator's name; node: what is replaced; text: by what; whole: the node is a statement."""
    kind: str
    node: object
    text: str
    whole: bool = False


def operator_of(source, node):
    at = node.child_by_field_name("operator")
    return source.of(at) if at is not None else ""


def sides(source, node):
    return source.of(node.child_by_field_name("left")), source.of(node.child_by_field_name("right"))


def binary(source, node):
    """Relational, arithmetic, bitwise and logical operators."""
    if node.type != "binary_expression":
        return
    left, right = sides(source, node)
    op = operator_of(source, node)
    for kind, table in (("relational", RELATIONAL), ("arithmetic", ARITHMETIC), ("bitwise", BITWISE), ("logical", LOGICAL)):
        for other in table.get(op, ()):
            yield Change(kind, node, f"({left} {other} {right})")
    if op in LOGICAL:
        yield Change("operand dropped", node, f"!!({left})")
        yield Change("operand dropped", node, f"!!({right})")
    if op in ("-", "/", "<<", ">>", "%") and left != right:
        yield Change("operands swapped", node, f"FA_AS_TYPE_OF({source.of(node)}, ({right}) {op} ({left}))")


def assigned(source, node):
    """Compound assignments and steps."""
    if node.type == "assignment_expression":
        left, right = sides(source, node)
        for other in ASSIGNED.get(operator_of(source, node), ()):
            yield Change("assignment", node, f"({left} {other} {right})")
    if node.type == "update_expression":
        text = source.of(node)
        yield Change("step", node, "(" + (text.replace("++", "--") if "++" in text else text.replace("--", "++")) + ")")


def condition_of(node):
    at = node.child_by_field_name("condition")
    if at is not None and at.type in ("condition_clause", "parenthesized_expression"):
        inside = [c for c in at.children if c.type not in ("(", ")", "comment")]
        return inside[0] if len(inside) == 1 else None
    return at


def conditions(source, node):
    """Conditions negated; those of an if, and of a choice between two values, always or never true."""
    if node.type not in ("if_statement", "while_statement", "for_statement", "do_statement", "conditional_expression"):
        return
    at = condition_of(node)
    if at is None or at.type == "declaration" or any(c.type == "constexpr" for c in node.children):
        return
    if at.type != "binary_expression" or operator_of(source, at) not in RELATIONAL:
        yield Change("condition negated", at, f"!({source.of(at)})")
    if node.type in ("if_statement", "conditional_expression"):
        arm = "arm" if node.type == "conditional_expression" else "condition"
        yield Change(f"{arm} always", at, "(0 == 0)")
        yield Change(f"{arm} never", at, "(0 != 0)")


def constants(source, node):
    """Numbers a little off: one more, one less, twice as much."""
    if node.type != "number_literal":
        return
    text = source.of(node)
    is_float = "." in text or (not text.lower().startswith("0x") and ("e" in text.lower() or text.lower().endswith("f")))
    try:
        value = float(text.rstrip("fFlL")) if is_float else int(text.rstrip("uUlL").replace("'", ""), 0)
    except ValueError:
        return
    yield Change("constant + 1", node, f"({text} + 1)")
    yield Change("constant - 1", node, f"({text} - 1)")
    if value not in (0, 1):
        yield Change("constant * 2", node, f"({text} * 2)")


def arguments_of(node):
    at = node.child_by_field_name("arguments")
    return [c for c in at.children if c.type not in ("(", ")", ",", "comment")] if at is not None else []


def is_cast(source, node):
    called = source.of(node.child_by_field_name("function")) if node.type == "call_expression" else ""
    return node.type == "cast_expression" or called.startswith("static_cast<")


def calls(source, node):
    """Arguments of one type swapped, the smaller for the larger, and f(x) left out where it has x's type."""
    if node.type != "call_expression" or is_cast(source, node):
        return
    called, arguments = node.child_by_field_name("function"), arguments_of(node)
    name, texts = source.of(called), [source.of(a) for a in arguments]
    bare = name.split("<")[0].split("::")[-1]
    for i in range(len(texts) - 1):
        if texts[i] != texts[i + 1] and bare not in SWAPPED_NAMES and (i > 0 or bare not in COMMUTATIVE):
            swapped = texts[:i] + [texts[i + 1], texts[i]] + texts[i + 2:]
            yield Change("arguments swapped", node, f"(FA_ONE_TYPE(({texts[i]}), ({texts[i + 1]})), {name}({', '.join(swapped)}))")
    if bare in SWAPPED_NAMES:
        yield Change("min for max", node, f"{name.replace(bare, SWAPPED_NAMES[bare])}({', '.join(texts)})")
    is_value = node.parent is not None and node.parent.type != "expression_statement"
    if len(texts) == 1 and bare not in IDENTITIES and is_value:
        yield Change("call left out", node, f"(FA_ONE_TYPE({source.of(node)}, ({texts[0]})), ({texts[0]}))")


def casts(source, node):
    """A cast of an operand left out, so that the operation is done in another type. Its result keeps its type."""
    if node.type != "binary_expression" or operator_of(source, node) in LOGICAL:
        return
    for side in ("left", "right"):
        cast = node.child_by_field_name(side)
        if not is_cast(source, cast):
            continue
        value = arguments_of(cast)[0] if cast.type == "call_expression" else cast.child_by_field_name("value")
        left, right = sides(source, node)
        plain = f"({source.of(value)})"
        pair = (plain, right) if side == "left" else (left, plain)
        op = operator_of(source, node)
        yield Change("cast left out", node, f"FA_AS_TYPE_OF({source.of(node)}, {pair[0]} {op} {pair[1]})")


def statements(source, node):
    """Statements left out: calls (barriers, waits and fences among them), assignments, returns, jumps."""
    if node.type == "expression_statement" and len(node.children) > 1:
        inside = node.children[0]
        if inside.type in ("call_expression", "assignment_expression", "update_expression"):
            kind = "call left out" if inside.type == "call_expression" else "statement left out"
            yield Change(kind, node, ";", whole=True)
    if node.type in ("break_statement", "continue_statement"):
        yield Change("jump left out", node, ";", whole=True)
        in_switch = node.type == "break_statement" and any(a.type == "switch_statement" for a in ancestors(node))
        if not in_switch:
            yield Change("break for continue", node, "continue;" if node.type == "break_statement" else "break;", whole=True)
    if node.type == "return_statement" and source.of(node).replace(" ", "") == "return;":
        yield Change("return left out", node, ";", whole=True)


def ancestors(node):
    at = node.parent
    while at is not None and at.type not in ("for_statement", "while_statement", "do_statement"):
        yield at
        at = at.parent


ALL = (binary, assigned, conditions, constants, calls, casts, statements)
