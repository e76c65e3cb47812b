#!/usr/bin/env python3
"""Runs every adapter that can run on this machine over case files and random cases, and prints a table.

    python3 python/tools/adapters_gpu.py --binary build/fa-verify --out results --budget 600

Each adapter is a run of the binary of its own, with a time limit of its own: one that crashes, hangs or cannot be
imported leaves a line in the table and nothing else. results/NAME.json has an adapter's result, results/NAME.log what the
binary printed. Called again, it goes on with the adapters that have no result yet, or were cut short (--again: with all).
Exit code: 0 if every adapter came to a result, whatever it was; 1 if the budget did not reach."""

from __future__ import annotations

import argparse
import collections
import importlib.util
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time
from typing import Any

HERE = pathlib.Path(__file__).resolve().parent
PACKAGE = HERE.parent
CASES = PACKAGE.parent / "cases"
sys.path.insert(0, str(PACKAGE))

from fa_verify.adapters import NAMES, get  # noqa: E402
from fa_verify.adapters._adapter import nothing_to_prepare  # noqa: E402

#: Case files in the order in which they are run, by a family that they belong to.
FILES = {
    "flash": ["causal", "gqa", "window", "softcap", "alibi", "headdim", "crossattn", "varlen", "dropout", "edge"],
    "memeff": ["memeff"],
    "flex": ["flex"],
    "kvcache": ["kvcache"],
}
#: Adapters that compile for each combination of sizes get the files that matter most to them, and more of the time.
SLOW = {"torch_flex": ["flex", "causal"], "torch_flex_decode": ["gqa", "causal", "flex"], "jax_mosaic": ["hopper", "causal"], "triton_example": ["causal", "gqa"]}
WEIGHT = {"torch_flex": 4, "numpy_reference": 0.5, "ort_mha": 0.5, "ort_gqa": 0.5, "ort_attention": 0.5, "mlx": 0.5, "openvino": 0.5, "torch_flex_decode": 2, "jax_pallas": 2, "jax_cudnn": 2, "flashinfer_single": 3, "flashinfer_paged": 2}
LINE = re.compile(r"^([A-Z_]+)\s+(\S.*?)  (?:exec|py):.*?-m fa_verify\.adapters \S+  (.*)$")


def parse(text: str) -> dict[str, Any]:
    """Counts, reasons and failures of what the binary printed; a run that was cut short has fewer lines."""
    states: collections.Counter[str] = collections.Counter()
    skipped: collections.Counter[str] = collections.Counter()
    failing: dict[str, str] = {}
    for line in text.splitlines():
        found = LINE.match(line)
        if not found:
            continue
        state, name, rest = found.groups()
        states[state] += 1
        if state == "SKIP":
            skipped[re.sub(r"^exec: ", "", rest).strip()[:100]] += 1
        elif state != "PASS":
            failing[name] = f"{state}: {rest.split('  repro:')[0][:300]}"
    return {"states": dict(states), "judged": sum(n for s, n in states.items() if s not in ("SKIP", "ERROR")), "skipped": dict(skipped.most_common()), "failing": failing}


def execute(command: list[str], log: pathlib.Path, seconds: float) -> tuple[str, int | None]:
    """Runs it with its own process group; the output so far and the exit code, None if it was ended for the time it took."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(PACKAGE), *filter(None, [os.environ.get("PYTHONPATH")])])}
    with log.open("ab") as out:
        begin = out.tell()
        process = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, env=environment, start_new_session=True)
        try:
            code: int | None = process.wait(timeout=max(seconds, 1))
        except subprocess.TimeoutExpired:
            code = None
            for sent in (signal.SIGINT, signal.SIGKILL):
                try:
                    os.killpg(process.pid, sent)
                except ProcessLookupError:
                    break
                try:
                    process.wait(timeout=5)
                except subprocess.TimeoutExpired:
                    continue
    with log.open("rb") as written:
        written.seek(begin)
        return written.read().decode(errors="replace"), code


def reason_not_here(name: str) -> str:
    """Why the adapter cannot run here, as far as that shows without importing anything; empty if nothing shows."""
    for module in get(name).adapter.modules:
        if importlib.util.find_spec(module.split(".")[0]) is None:
            return f"{module} is not installed"
    return ""


def order(name: str) -> bool:
    """Adapters that run on a GPU come first."""
    return get(name).adapter.device == "cpu" and not name.startswith("jax")


def files_of(name: str, asked: list[str] | None) -> list[str]:
    if asked:
        return asked
    words = SLOW.get(name) or [word for family in get(name).adapter.families for word in FILES[family]]
    return [str(CASES / f"{word}.json") for word in words]


def prepares(name: str) -> bool:
    return get(name).adapter.prepare is not nothing_to_prepare


def prepare(name: str, log: pathlib.Path, seconds: float) -> float:
    """Lets the adapter compile what most cases need; the seconds that it took. What is not ready then is compiled by the first case."""
    started = time.monotonic()
    if prepares(name):
        execute([sys.executable, "-m", "fa_verify.adapters", name, "--prepare"], log, seconds)
    return time.monotonic() - started


def judge(name: str, options: argparse.Namespace, seconds: float) -> dict[str, Any]:
    """One adapter: its case files, then random cases, within so many seconds."""
    started = time.monotonic()
    adapter = get(name).adapter
    found: dict[str, Any] = {"adapter": name, "library": adapter.library, "version": adapter.version(), "why_not": reason_not_here(name)}
    if found["why_not"]:
        return {**found, "complete": True}
    log = options.out / f"{name}.log"
    log.write_bytes(b"")
    common = ["-v", "--backend", f"exec:{sys.executable} -m fa_verify.adapters {name}", "--jobs", str(options.jobs), "--timeout", str(int(max(options.case_timeout, seconds if prepares(name) else 0)))]
    seconds -= prepare(name, log, seconds / 2)
    share = seconds * (0.7 if options.random else 1.0)
    text, code = execute([options.binary, "run", *common, "--cases", *files_of(name, options.cases)], log, share)
    found.update(parse(text), exit_code=code)
    if not found["states"]:
        refused = re.search(r"not usable here: (.*)", text)
        if refused:
            return {**found, "why_not": refused.group(1)[-200:], "complete": True}
        found["said"] = text.strip()[-300:]
    if options.random:
        left = seconds - (time.monotonic() - started)
        more = ["--count", str(options.random), "--seed", str(options.seed), "--profile", options.profile]
        text, random_code = execute([options.binary, "random", *common, *more], log, left)
        found["random"] = {**parse(text), "exit_code": random_code}
        code = code if code is None else random_code
    return {**found, "complete": code is not None, "seconds": round(time.monotonic() - started, 1)}


def line(found: dict[str, Any]) -> str:
    head = f"{found['adapter']:19} {found['version'] or '-':12}"
    if found["why_not"]:
        return f"{head} not here: {found['why_not'][:100]}"
    both = [found, found.get("random", {})]
    judged = "+".join(str(part.get("judged", 0)) for part in both)
    failing = [name for part in both for name in part.get("failing", {})]
    top = sorted(((n, why) for part in both for why, n in part.get("skipped", {}).items()), reverse=True)[:3]
    skipped = sum(n for part in both for n in part.get("skipped", {}).values())
    text = f"{head} judged {judged:9} skipped {skipped:4} failing {len(failing):4}  {found['seconds']:5.0f} s{'' if found['complete'] else '  (cut short)'}"
    if found.get("said"):
        text += f"\n      said: {found['said']}"
    if failing:
        text += f"\n      failing: {', '.join(failing[:12])}{' ...' if len(failing) > 12 else ''}"
    return text + "".join(f"\n      skipped {n}: {why}" for n, why in top)


def options_of(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default=os.environ.get("FA_VERIFY_BINARY", "build/fa-verify"))
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("adapter-results"))
    parser.add_argument("--budget", type=float, default=600, help="seconds for everything (600)")
    parser.add_argument("--only", nargs="+", choices=NAMES, help="these adapters")
    parser.add_argument("--cases", nargs="+", help="these case files instead of those that fit the adapter")
    parser.add_argument("--random", type=int, default=40, help="random cases for each adapter (40)")
    parser.add_argument("--profile", default="everything")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=4, help="children of an adapter at a time (4)")
    parser.add_argument("--case-timeout", type=int, default=120)
    parser.add_argument("--again", action="store_true", help="also adapters that have a result")
    return parser.parse_args(arguments)


def finished(path: pathlib.Path) -> bool:
    try:
        return bool(json.loads(path.read_text())["complete"])
    except (OSError, ValueError, KeyError):
        return False


def main(arguments: list[str]) -> int:
    options = options_of(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    end = time.monotonic() + options.budget
    names = [n for n in options.only or sorted(NAMES, key=order) if options.again or not finished(options.out / f"{n}.json")]
    for at, name in enumerate(names):
        rest = sum(WEIGHT.get(n, 1) for n in names[at:])
        left = end - time.monotonic()
        if left < 5:
            print(f"the time is up; not run: {', '.join(names[at:])}", flush=True)
            return 1
        try:
            found = judge(name, options, left * WEIGHT.get(name, 1) / rest)
        except Exception as e:  # nothing that one adapter does may stop the others
            found = {"adapter": name, "version": "", "why_not": f"{type(e).__name__}: {e}", "complete": False}
        (options.out / f"{name}.json").write_text(json.dumps(found, indent=1))
        print(line(found), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
