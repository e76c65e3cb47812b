#!/usr/bin/env python3
"""Runs every adapter that can run on this machine over case files and random cases, and prints a table.

    python3 python/tools/adapters_gpu.py --binary build/fa-verify --out results --budget 600 --prepare
    python3 python/tools/adapters_gpu.py --binary build/fa-verify --out results --budget 600 --seconds torch_flex=300

With --prepare it only compiles what adapters need beforehand, and says how far it is. Otherwise each adapter is a run of the
binary of its own, with a time limit of its own: one that crashes, hangs or cannot be imported leaves a line in the table and
nothing else. results/NAME.json has an adapter's result, also of a run that was cut short; NAME.log and NAME.random.log have
what the binary printed, and NAME.run.json and NAME.random.json are its reports. Called again it goes on where it was cut, case
by case, and leaves out what is finished (--again: everything from the beginning).
Exit code: 0 if every adapter came to an end, whatever it was; 1 if the budget did not reach."""

from __future__ import annotations

import argparse
import collections
import contextlib
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

from fa_verify.adapters import NAMES, get
from fa_verify.adapters._adapter import nothing_to_prepare

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
#: Seconds that the binary has to write its report when it is interrupted, and between two lines of progress.
GRACE, EVERY = 20, 10


def parse(text: str) -> dict[str, Any]:
    """Counts, reasons and failures of what the binary printed, by the last line of each case: a run that went on behind an
    interruption has those of both."""
    last: dict[str, tuple[str, str]] = {}
    for line in text.splitlines():
        found = LINE.match(line)
        if found:
            last[found.group(2)] = (found.group(1), found.group(3))
    states = collections.Counter(state for state, _ in last.values())
    skipped = collections.Counter(re.sub(r"^exec: ", "", rest).strip()[:100] for state, rest in last.values() if state == "SKIP")
    failing = {name: f"{state}: {rest.split('  repro:')[0][:300]}" for name, (state, rest) in last.items() if state not in ("PASS", "SKIP")}
    judged = sum(n for state, n in states.items() if state not in ("SKIP", "ERROR"))
    return {"states": dict(states), "judged": judged, "skipped": dict(skipped.most_common()), "failing": failing}


def counted(report: pathlib.Path, log: str) -> dict[str, Any]:
    """The same by the binary's report, which has every case of a run that went on; where it had no time to write one, by what it printed."""
    said = parse(log)
    try:
        told = json.loads(report.read_text())
    except (OSError, ValueError):
        return said
    states = collections.Counter(case["state"] for case in told["cases"])
    reasons = {re.sub(r"^exec: ", "", why)[:100]: n for why, n in told["summary"]["skip_reasons"].items()}
    failing = {case["name"]: said["failing"].get(case["name"], case["state"]) for case in told["cases"] if case["state"] not in ("PASS", "SKIP")}
    judged = sum(n for state, n in states.items() if state not in ("SKIP", "ERROR"))
    return {"states": dict(states), "judged": judged, "skipped": dict(sorted(reasons.items(), key=lambda x: -x[1])), "failing": failing}


def end(process: subprocess.Popen[bytes]) -> None:
    """An interruption, on which the binary writes its report; then the end of everything that it has started."""
    process.send_signal(signal.SIGINT)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(timeout=GRACE)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def execute(command: list[str], log: pathlib.Path, seconds: float, name: str) -> int | None:
    """Runs it in its own process group, its output added to the log; the exit code, None if its time was up. Says now and
    then what the last line is."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(PACKAGE), *filter(None, [os.environ.get("PYTHONPATH")])])}
    started = time.monotonic()
    with log.open("ab") as out:
        process = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, env=environment, start_new_session=True)
        while True:
            left = seconds - (time.monotonic() - started)
            try:
                return process.wait(timeout=max(min(left, EVERY), 0.1))
            except subprocess.TimeoutExpired:
                pass
            except BaseException:
                end(process)
                raise
            if left <= 0:
                end(process)
                return None
            print(f"  {name}: {time.monotonic() - started:.0f} s; {last_line(log)}", file=sys.stderr, flush=True)


def last_line(log: pathlib.Path) -> str:
    lines = log.read_text(errors="replace").split("\n")[-2:-1]
    found = LINE.match(lines[0]) if lines else None
    return f"{found.group(1)} {found.group(2)}" if found else (lines[0][:100] if lines else "nothing yet")


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


# ---- what is compiled beforehand


def needs_preparing(name: str, out: pathlib.Path) -> bool:
    return get(name).adapter.prepare is not nothing_to_prepare and not reason_not_here(name) and not (out / f"{name}.prepared").exists()


def prepare(name: str, out: pathlib.Path, seconds: float) -> bool:
    """Lets the adapter compile what most cases need; what is not ready then is compiled by the first case that needs it."""
    log = out / f"{name}.prepare.log"
    started = time.monotonic()
    code = execute([sys.executable, "-m", "fa_verify.adapters", name, "--prepare"], log, seconds, name)
    took = f"{time.monotonic() - started:.0f} s"
    if code == 0:
        (out / f"{name}.prepared").write_text(took)
    print(f"{name:19} {'prepared' if code == 0 else 'cut short' if code is None else f'failed ({code}), see {log}'} after {took}", flush=True)
    return code is not None


def prepare_all(names: list[str], options: argparse.Namespace) -> int:
    until = time.monotonic() + options.budget
    wanted = [name for name in names if needs_preparing(name, options.out)]
    done = 0
    for name in wanted:
        left = until - time.monotonic()
        if left < 5:
            break
        done += prepare(name, options.out, min(left, options.seconds.get(name, left)))
    print(f"{done} of {len(wanted)} adapters prepared", flush=True)
    return 0 if done == len(wanted) else 1


# ---- judging


def is_finished(report: pathlib.Path) -> bool:
    try:
        return bool(json.loads(report.read_text())["finished"])
    except (OSError, ValueError, KeyError):
        return False


def part(name: str, kind: str, arguments: list[str], options: argparse.Namespace, seconds: float) -> tuple[dict[str, Any], str]:
    """One command of the binary, from where it was cut last time; what is known of it so far, and what it printed."""
    report, log = options.out / f"{name}.{kind}.json", options.out / (f"{name}.log" if kind == "run" else f"{name}.{kind}.log")
    before = log.stat().st_size if log.exists() else 0
    code: int | None = 0
    if not is_finished(report):
        code = execute([options.binary, arguments[0], *arguments[1:], "--report", str(report), "--resume"], log, seconds, name)
    text = log.read_text(errors="replace") if log.exists() else ""
    return {**counted(report, text), "exit_code": code, "finished": is_finished(report)}, text[before:]


def judge(name: str, options: argparse.Namespace, seconds: float) -> dict[str, Any]:
    """One adapter: its case files, then random cases, within so many seconds."""
    started = time.monotonic()
    adapter = get(name).adapter
    found: dict[str, Any] = {"adapter": name, "library": adapter.library, "version": adapter.version(), "why_not": reason_not_here(name)}
    if found["why_not"]:
        return {**found, "complete": True}
    if needs_preparing(name, options.out):
        prepare(name, options.out, seconds / 2)
    seconds -= time.monotonic() - started
    compiles = adapter.prepare is not nothing_to_prepare
    common = ["-v", "--backend", f"exec:{sys.executable} -m fa_verify.adapters {name}", "--jobs", str(options.jobs), "--timeout", str(int(max(options.case_timeout, seconds if compiles else 0)))]
    run, text = part(name, "run", ["run", *common, "--cases", *files_of(name, options.cases)], options, seconds * (0.7 if options.random else 1.0))
    found.update(run)
    if not found["states"]:
        refused = re.search(r"not usable here: (.*)", text)
        if refused:
            return {**found, "why_not": refused.group(1)[-200:], "complete": True}
        found["said"] = text.strip()[-300:]
    whole = run["exit_code"] is not None
    if options.random:
        left = seconds - (time.monotonic() - started)
        more = ["--count", str(options.random), "--seed", str(options.seed), "--profile", options.profile]
        found["random"], _ = part(name, "random", ["random", *common, *more], options, left)
        whole = whole and found["random"]["exit_code"] is not None
    return {**found, "complete": whole, "seconds": round(time.monotonic() - started, 1)}


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


def finished(path: pathlib.Path) -> bool:
    try:
        return bool(json.loads(path.read_text())["complete"])
    except (OSError, ValueError, KeyError):
        return False


def judge_all(names: list[str], options: argparse.Namespace) -> int:
    until = time.monotonic() + options.budget
    names = [name for name in names if not finished(options.out / f"{name}.json")]
    for at, name in enumerate(names):
        rest = sum(WEIGHT.get(n, 1) for n in names[at:])
        left = until - time.monotonic()
        if left < 5:
            print(f"the time is up; not run: {', '.join(names[at:])}", flush=True)
            return 1
        try:
            found = judge(name, options, min(left, options.seconds.get(name, left * WEIGHT.get(name, 1) / rest)))
        except Exception as e:  # nothing that one adapter does may stop the others
            found = {"adapter": name, "version": "", "why_not": f"{type(e).__name__}: {e}", "complete": False}
        (options.out / f"{name}.json").write_text(json.dumps(found, indent=1))
        print(line(found), flush=True)
    return 0


# ---- the command


def seconds_of(text: str) -> tuple[str, float]:
    name, _, seconds = text.partition("=")
    if name not in NAMES or not seconds:
        raise argparse.ArgumentTypeError(f"{text}: NAME=SECONDS of an adapter is needed")
    return name, float(seconds)


def options_of(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default=os.environ.get("FA_VERIFY_BINARY", "build/fa-verify"))
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("adapter-results"))
    parser.add_argument("--budget", type=float, default=600, help="seconds for everything (600)")
    parser.add_argument("--seconds", type=seconds_of, action="append", default=[], metavar="NAME=SECONDS", help="the time of one adapter, instead of its part of the budget; repeatable")
    parser.add_argument("--prepare", action="store_true", help="only compile what adapters need beforehand")
    parser.add_argument("--only", nargs="+", choices=NAMES, help="these adapters")
    parser.add_argument("--cases", nargs="+", help="these case files instead of those that fit the adapter")
    parser.add_argument("--random", type=int, default=40, help="random cases for each adapter (40)")
    parser.add_argument("--profile", default="everything")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=4, help="children of an adapter at a time (4)")
    parser.add_argument("--case-timeout", type=int, default=120)
    parser.add_argument("--again", action="store_true", help="forget earlier results of these adapters")
    options = parser.parse_args(arguments)
    options.seconds = dict(options.seconds)
    return options


def forget(names: list[str], out: pathlib.Path) -> None:
    for name in names:
        for path in out.glob(f"{name}.*"):
            path.unlink()


def main(arguments: list[str]) -> int:
    options = options_of(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    names = options.only or sorted(NAMES, key=order)
    if options.again:
        forget(names, options.out)
    return prepare_all(names, options) if options.prepare else judge_all(names, options)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
