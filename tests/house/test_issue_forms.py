"""The issue forms of .github/ISSUE_TEMPLATE/ are ones that GitHub accepts: known keys and types, every field with a label and an id of its own.
A form with a mistake is not shown at all. Afterwards copies with one fault each, every one of which must be found.

Run in the repository's root. Exit code 77: no PyYAML.
"""
import copy
import pathlib
import re
import sys

try:
    import yaml
except ImportError:
    print("skipped: no PyYAML (Debian: apt install python3-yaml)")
    sys.exit(77)

FOLDER = pathlib.Path(".github/ISSUE_TEMPLATE")
FORM_KEYS = {"name", "description", "title", "labels", "assignees", "projects", "type", "body"}
CONFIG_KEYS = {"blank_issues_enabled", "contact_links"}
# What each type of field may have as attributes, and what it must.
ATTRIBUTES = {
    "markdown": ({"value"}, {"value"}),
    "textarea": ({"label", "description", "placeholder", "value", "render"}, {"label"}),
    "input": ({"label", "description", "placeholder", "value"}, {"label"}),
    "dropdown": ({"label", "description", "multiple", "options", "default"}, {"label", "options"}),
    "checkboxes": ({"label", "description", "options"}, {"label", "options"}),
}


def is_text(value):
    return isinstance(value, str) and value.strip() != ""


def field_faults(field, at):
    kind = field.get("type")
    if kind not in ATTRIBUTES:
        return [f"{at}: no type {kind}"]
    found = [f"{at}: unknown key {key}" for key in set(field) - {"type", "id", "attributes", "validations"}]
    allowed, needed = ATTRIBUTES[kind]
    attributes = field.get("attributes") or {}
    found += [f"{at}: {kind} has no attribute {key}" for key in set(attributes) - allowed]
    found += [f"{at}: {kind} needs {key}" for key in needed if not attributes.get(key)]
    found += [f"{at}: {key} must be text" for key in ("label", "description", "value") if key in attributes and not is_text(attributes[key])]
    options = attributes.get("options", [])
    if kind == "dropdown" and (not all(map(is_text, options)) or len(set(options)) < len(options)):
        found.append(f"{at}: options must be texts, each once")
    validations = field.get("validations", {})
    if kind == "markdown" and ("id" in field or validations):
        found.append(f"{at}: markdown is no field")
    if set(validations) - {"required"} or not isinstance(validations.get("required", True), bool):
        found.append(f"{at}: validations can only say required: true or false")
    if kind != "markdown" and not re.fullmatch(r"[A-Za-z0-9_-]+", str(field.get("id", ""))):
        found.append(f"{at}: a field needs an id of letters, digits, - and _")
    return found


def form_faults(form):
    if not isinstance(form, dict):
        return ["no mapping"]
    found = [f"unknown key {key}" for key in set(form) - FORM_KEYS]
    found += [f"{key} must be text" for key in ("name", "description") if not is_text(form.get(key))]
    body = form.get("body") or []
    for i, field in enumerate(body):
        found += field_faults(field, f"body[{i}]")
    for key in ("id", "label"):
        values = [field.get(key) or (field.get("attributes") or {}).get(key) for field in body if field.get("type") != "markdown"]
        found += [f"{key} {value} stands there twice" for value in {v for v in values if v and values.count(v) > 1}]
    if not any(field.get("type") != "markdown" for field in body):
        found.append("it asks for nothing")
    return found


def planted(form):
    """The form with one fault each."""
    field = next(i for i, f in enumerate(form["body"]) if f["type"] == "textarea")
    changes = [
        lambda f: f.pop("description"),
        lambda f: f.update(titel="x"),
        lambda f: f["body"][field].update(type="textaera"),
        lambda f: f["body"][field].pop("id"),
        lambda f: f["body"][field]["attributes"].pop("label"),
        lambda f: f["body"][field]["attributes"].update(lable="x"),
        lambda f: f["body"][field].update(validations={"required": "yes"}),
        lambda f: f["body"].append(copy.deepcopy(f["body"][field])),
        lambda f: f.update(body=[]),
    ]
    for n, change in enumerate(changes):
        wrong = copy.deepcopy(form)
        change(wrong)
        yield n, wrong


def main():
    found = []
    forms = {p.name: yaml.safe_load(p.read_text()) for p in sorted(FOLDER.glob("*.yml"))}
    config = forms.pop("config.yml", {})
    found += [f"config.yml: unknown key {key}" for key in set(config) - CONFIG_KEYS]
    for name, form in forms.items():
        found += [f"{name}: {fault}" for fault in form_faults(form)]
    names = [form.get("name") for form in forms.values()]
    if len(set(names)) < len(names) or len(names) < 4:
        found.append(f"names of forms: {names}")
    for n, wrong in planted(forms["wrong_verdict.yml"]) if not found else []:
        if not form_faults(wrong):
            found.append(f"not noticed: planted fault {n}")
    print("\n".join(found) or f"{len(forms)} forms")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
