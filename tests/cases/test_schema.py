"""cases/schema.json and the parser accept and reject the same documents, as far as a schema can say it.

Every document of schema_cases.json carries what it must be: "accept", "structural" (both refuse) or "cross" (two keys
contradict each other: the schema accepts, the parser refuses). Then valid documents with one value changed, which no
table would have thought of. Usage: test_schema.py PATH-OF-case_classify
"""
import copy
import json
import random
import subprocess
import sys

try:
    from jsonschema import Draft202012Validator
except ImportError as reason:
    print(f"skipped: {reason} (Debian: apt install python3-jsonschema)")
    sys.exit(77)

N_CHANGED = 3000
ODD = [-1, 0, 1, 2, 3, 64, 65, 1.5, 1.0, 1e9, 1e18, 1e300, 1048577, 65537, 2147483648, None, True, False, "", "x", "1",
       "0x1f", "18446744073709551616", "-1", "none", "causal", "normal", "neg_inf_rows", "do_one_hot", "standard", "b",
       "mask_mod", "a\nb", "+inf", [], {}, [0], [[0]], [1, 2], [0, 1], ["b"], ["b", "b"], {"type": "causal"}, {"p": 1},
       {"x": 1}, [[[1]]], [[[[0]]]], {"gap": [1, 2, 3]}, [1, 1, 1, "k"], {"q": "zero"}]


def parser_says(binary, documents):
    lines = "".join(json.dumps(d) + "\n" for d in documents)
    out = subprocess.run([binary], input=lines, capture_output=True, text=True, check=True).stdout.splitlines()
    assert len(out) == len(documents), f"{len(out)} answers to {len(documents)} documents"
    return [line.split("\t", 1) for line in out]


def places(value, path=()):
    """Every place of a document, the root first."""
    yield path
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in children:
        yield from places(child, path + (key,))


def changed(rng, document, keys):
    """One value replaced, one key added, or one thing taken away."""
    document = copy.deepcopy(document)
    path = rng.choice(list(places(document))[1:])
    parent = document
    for key in path[:-1]:
        parent = parent[key]
    kind = rng.random()
    if kind < 0.7:
        parent[path[-1]] = copy.deepcopy(rng.choice(ODD))
    elif kind < 0.85 or not isinstance(parent, dict):
        del parent[path[-1]]
    else:
        parent[rng.choice(keys)] = copy.deepcopy(rng.choice(ODD))
    return document


def disagreements(schema, answers):
    """answers: (tag or None, document, (what the parser said, message))"""
    validator = Draft202012Validator(schema)
    for tag, document, (said, message) in answers:
        valid = validator.is_valid(document)
        if tag is None and said == "cross" and not valid:
            continue  # a changed document with a fault of each kind, of which the parser names one
        if valid != (said != "structural") or tag not in (None, said):
            yield f"{tag}: parser {said} {message}, schema {valid}: {json.dumps(document)[:300]}"


def with_change(schema, path, value):
    """A copy of the schema in which the place path ("$defs/case/...") holds value; None removes it."""
    schema = copy.deepcopy(schema)
    *parents, last = path.split("/")
    place = schema
    for key in parents:
        place = place[key]
    assert last in place, path
    place.pop(last)
    if value is not None:
        place[last] = value
    return schema


# Mistakes that a schema could have; the table must notice each.
MISTAKES = [("$defs/case/properties/batch/maximum", 1 << 21), ("$defs/case/properties/batch/minimum", None),
            ("$defs/case/additionalProperties", None), ("$defs/case/properties/splits/type", "number"),
            ("$defs/case/properties/softcap/minimum", None), ("$defs/dropout/properties/p/exclusiveMaximum", None),
            ("$defs/mask/properties/type/enum", ["none", "causal"]), ("$defs/u64/pattern", "^[0-9a-fA-Fx]*$"),
            ("$defs/u64/not", None), ("$defs/text/not", None), ("$defs/recipe/properties/expand/uniqueItems", None),
            ("$defs/fill/anyOf", [{"type": "object"}]), ("$defs/bias/properties/shape/prefixItems", []),
            ("$defs/over/minProperties", None), ("$defs/over/additionalProperties", None),
            ("$defs/over/properties/mask.type/minItems", 2), ("$defs/buffers/propertyNames", None),
            ("$defs/random/required", ["count"]), ("$defs/file/properties/defaults", {}), ("if", {})]


def main(binary):
    schema = json.load(open("cases/schema.json"))
    Draft202012Validator.check_schema(schema)
    table = json.load(open("tests/cases/schema_cases.json"))
    tagged = [(tag, d) for tag in ("accept", "structural", "cross") for d in table[tag]]
    answers = [(tag, d, said) for (tag, d), said in zip(tagged, parser_says(binary, [d for _, d in tagged]))]
    failures = list(disagreements(schema, answers))
    for path, value in MISTAKES:
        if not any(disagreements(with_change(schema, path, value), answers)):
            failures.append(f"no document of the table notices {path} = {value}")

    def listing(option):
        return subprocess.run([binary, option], capture_output=True, text=True, check=True).stdout.split("\n")[:-1]

    keys = listing("--keys")
    case = schema["$defs"]["case"]["properties"]
    if keys != list(case):
        failures.append(f"keys differ: {set(keys) ^ set(case)} (or their order)")
    for allowed, name in (
        ("any", "fill_name"), ("any bias", "fill_bias"), ("any do", "fill_do"), ("any lse", "fill_lse"),
        ("any sinks", "fill_sinks"),
    ):
        fills = [f.split()[1] for f in listing("--fills") if f.split()[0] in allowed]
        if sorted(fills) != sorted(schema["$defs"][name]["enum"]):
            failures.append(f"{name} differs: {set(fills) ^ set(schema['$defs'][name]['enum'])}")

    rng = random.Random(int(sys.argv[2]) if len(sys.argv) > 2 else 1)
    full = [d for d in table["accept"] if d]
    odd = [changed(rng, rng.choice(full), keys + ["type", "seed", "p", "count", "x"]) for _ in range(N_CHANGED)]
    odd_answers = [(None, d, said) for d, said in zip(odd, parser_says(binary, odd))]
    failures += disagreements(schema, odd_answers)
    count = {tag: sum(said[0] == tag for _, _, said in odd_answers) for tag in ("accept", "structural", "cross")}
    if min(count.values()) < N_CHANGED // 50:
        failures.append(f"the changed documents are one-sided: {count}")

    for failure in failures[:20]:
        print(failure, file=sys.stderr)
    print(f"{len(tagged)} documents of the table, changed ones {count}, {len(failures)} failed")
    return 1 if failures or len(tagged) < 150 else 0


sys.exit(main(sys.argv[1]))
