"""Reads the YAML that actions and pipelines of this repository are written in: maps, lists, plain and quoted scalars, and the short
forms `[a, b]` and `{ a: b }`. Anything else is an error, so that nothing is read otherwise than a whole reader would."""
import json
import re

KEY = re.compile(r"(?P<key>[A-Za-z_$][\w./-]*):(?: +(?P<value>.*))?$")


def scalar(text):
    text = text.strip()
    if text.startswith('"'):
        return json.loads(text)
    if text.startswith("{"):
        pairs = (part.split(":", 1) for part in text[1:-1].split(","))
        return {key.strip(): scalar(value) for key, value in pairs}
    if text.startswith("["):
        return [scalar(part) for part in text[1:-1].split(",")]
    if text[:1] in ("'", "|", ">", "&", "*"):
        raise ValueError(f"this reader does not know {text!r}")
    return {"true": True, "false": False, "": None}.get(text, text)


def lines_of(text):
    for number, line in enumerate(text.splitlines(), 1):
        bare = line.strip()
        if bare and not bare.startswith("#"):
            yield number, len(line) - len(line.lstrip()), bare


def read(text):
    """The document as dicts, lists and strings."""
    lines = list(lines_of(text))
    value, rest = block(lines, 0)
    if rest != len(lines):
        raise ValueError(f"line {lines[rest][0]}: out of place")
    return value


def block(lines, at):
    """The block that begins at line `at`, and where the next begins."""
    depth = lines[at][1]
    is_list = lines[at][2].startswith("- ")
    found = [] if is_list else {}
    while at < len(lines) and lines[at][1] == depth and lines[at][2].startswith("- ") == is_list:
        number, _, bare = lines[at]
        if is_list:  # what follows the dash stands two columns further in
            inner = bare[2:].strip()
            if KEY.match(inner):
                lines[at] = (number, depth + 2, inner)
                value, at = block(lines, at)
            else:
                value, at = scalar(inner), at + 1
            found.append(value)
            continue
        match = KEY.match(bare)
        if not match or match["key"] in found:
            raise ValueError(f"line {number}: {bare!r} is no key, or one that there is")
        at += 1
        if match["value"] is not None:
            found[match["key"]] = scalar(match["value"])
        elif at < len(lines) and (lines[at][1] > depth or (lines[at][1] == depth and lines[at][2].startswith("- "))):
            found[match["key"]], at = block(lines, at)
        else:
            found[match["key"]] = None
    return found, at
