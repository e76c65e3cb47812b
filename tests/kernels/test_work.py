#!/usr/bin/env python3
"""work.py sees more of anything, less of anything, and a case that the table does not have.

usage: test_work.py FA_VERIFY   (from the top of the source tree)"""
import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import work  # noqa: E402


def said(path):
    done = subprocess.run([sys.executable, work.__file__, path], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def main(verify):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "report.json")
        subprocess.run([verify, "run", "--backend", "host", "--cases", "cases/causal.json", "--filter", "^square_(17|65)$", "-q",
                        "--report", path], check=True, capture_output=True)
        with open(path, encoding="utf-8") as file:
            report = json.load(file)

        def changed(change, backend="host"):
            copy = json.loads(json.dumps(report))
            for case in copy["cases"]:
                case["backend"] = backend
            change(copy["cases"][0])
            with open(path, "w", encoding="utf-8") as file:
                json.dump(copy, file)
            return said(path)

        assert changed(lambda case: None) == (0, "work of 2 cases: 0 not as recorded\n")
        for key in work.COUNTS:
            for more in (1, -1):
                code, text = changed(lambda case, k=key, n=more: case["work"].update({k: case["work"][k] + n}))
                assert code == 1 and f"square_17: {key} " in text and "1 not as recorded" in text, text
        code, text = changed(lambda case: case.update(name="unheard_of"))
        assert code == 1 and "host causal/unheard_of: not in the table" in text, text
        code, text = changed(lambda case: None, "ref-f32")
        assert code == 1 and "ref-f32 causal/square_17: not in the table" in text, text
        code, text = changed(lambda case: [c.pop("work") for c in [case]])
        assert code == 0 and "work of 1 cases" in text, text
        report["cases"] = report["cases"][:1]
        code, text = changed(lambda case: case.pop("work"))
        assert code == 2 and "no case of these reports has its work counted" in text, text


if __name__ == "__main__":
    main(*sys.argv[1:])
