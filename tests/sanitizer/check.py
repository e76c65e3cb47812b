#!/usr/bin/env python3
"""Runs the kernels under compute-sanitizer's tools and fails on every report that is not known to be false. Needs a GPU.

    tests/sanitizer/check.py [--verify build/fa-verify] [--sanitizer compute-sanitizer] [--tools memcheck,racecheck] [--jobs N]

Cases are those of cases.txt, one process for each of its lines and tools. known.txt says which reports are false, and which program of
this folder shows it. A case that does not pass, is skipped, or is not there fails as well: what did not run was not looked at.
Exit: 0 nothing unknown, 1 a report or a case, 2 wrong usage, 77 no tool or no GPU."""
import argparse
import collections
import concurrent.futures
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass, field

HERE = os.path.dirname(os.path.abspath(__file__))
TOOLS = ["memcheck", "initcheck", "racecheck", "synccheck"]
# The tools take the number of mbarriers from the compiler, which may see those of a loop as one; what is reported when their tables overflow
# means nothing.
OPTIONS = ["--num-cuda-barriers", "64", "--print-limit", "0", "--show-backtrace", "no"]
SUMMARY = re.compile(r"(ERROR|RACECHECK) SUMMARY: ")
PREFIX = "========="
# Known reports of a long case alone fill the usual table of 10,000,000 hazards; the tool leaves out the rest, with a warning, which fails.
ENVIRONMENT = {**os.environ, "NV_COMPUTE_SANITIZER_MAX_RACECHECK_HAZARDS": "40000000"}


@dataclass
class Report:
    """headline: its first line; kernel: where, or - if nothing says it."""
    headline: str
    kernel: str

    def kind(self):
        return re.sub(r"\+0x[0-9a-f]+|\[\d+ hazards\]|\b\d+\b", "", self.headline).strip(), self.kernel


@dataclass
class Known:
    """tool, kernel, text: regular expressions of what is false; shown_by: the program that shows it."""
    tool: str
    kernel: str
    text: str
    shown_by: str
    seen: int = field(default=0)

    def is_of(self, tool, report):
        return (re.fullmatch(self.tool, tool) and re.fullmatch(self.kernel, report.kernel)
                and re.search(self.text, report.headline))


def lines_of(path):
    with open(path, encoding="utf-8") as f:
        return [line.strip() for line in f if line.strip() and not line.startswith("#")]


def read_known(path):
    return [Known(*(part.strip() for part in line.split(" | "))) for line in lines_of(path)]


def missing_cases(source, lines):
    """FILE/NAME of what no case file has."""
    missing = []
    for file, *names in lines:
        with open(f"{source}/cases/{file}.json", encoding="utf-8") as f:
            there = {c["name"] for c in json.load(f)["cases"]}
        missing += [f"{file}/{name}" for name in names if name not in there]
    return missing


def blocks_of(text):
    """The tool's messages, each as the list of its lines."""
    block = []
    for line in text.splitlines():
        if not line.startswith(PREFIX):
            continue
        line = line[len(PREFIX):].rstrip()
        if line.startswith("     ") and block:
            block.append(line.strip())
            continue
        if block:
            yield block
        block = [line.strip()] if line.strip() else []
    if block:
        yield block


def reports_of(text):
    """What the tool reports, and whether it came to its summary."""
    reports, ended = [], False
    for block in blocks_of(text):
        if SUMMARY.match(block[0]):
            ended = True
        elif block[0] != "COMPUTE-SANITIZER":
            where = re.search(r"\bat (?:void )?([\w:]+)(?:\([^)]*\))?\+0x", " ".join(block))
            reports.append(Report(block[0], where.group(1) if where else "-"))
    return reports, ended


def command_of(a, tool, file, names):
    verify = [a.verify, "--backend", "cuda", "--cases", f"{a.source}/cases/{file}.json", "--filter", f"^({'|'.join(names)})$", "-j", "1",
              "--no-progress", "--color", "never"]
    return [a.sanitizer, "--tool", tool, *OPTIONS, *a.option, *verify]


def output_of(command, limit):
    """What a command prints, and whether it ended in time; what it has started ends with it."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", env=ENVIRONMENT,
                          start_new_session=True) as p:
        try:
            return p.communicate(timeout=limit)[0], True
        except subprocess.TimeoutExpired:
            os.killpg(p.pid, signal.SIGKILL)
            return p.communicate()[0], False


def run(a, tool, file, names):
    """The reports of a line under a tool, and what else is wrong."""
    text, in_time = output_of(command_of(a, tool, file, names), a.limit)
    wrong = [] if in_time else [f"not done after {a.limit} s"]
    if a.logs:
        with open(f"{a.logs}/{tool}.{file}.{names[0]}.log", "w", encoding="utf-8") as f:
            f.write(text)
    reports, ended = reports_of(text)
    passed = len(re.findall(r"^PASS ", text, re.M))
    if not ended and not wrong:
        wrong.append("the tool came to no summary")
    if passed != len(names):
        wrong.append(f"{passed} of {len(names)} cases passed: " + "; ".join(re.findall(r"^(?:FAIL|ERROR|SKIP) .*", text, re.M)))
    return reports, wrong


def judge(tool, reports, known):
    """Counts what is known; returns the rest by kind."""
    rest = collections.Counter()
    for report in reports:
        of = next((k for k in known if k.is_of(tool, report)), None)
        if of:
            of.seen += 1
        else:
            rest[report.kind()] += 1
    return rest


def run_all(a, tools, lines, known):
    failed = False
    with concurrent.futures.ThreadPoolExecutor(a.jobs) as pool:
        jobs = [(tool, words, pool.submit(run, a, tool, words[0], words[1:])) for tool in tools for words in lines]
        for tool, words, job in jobs:
            reports, wrong = job.result()
            rest = judge(tool, reports, known)
            if rest or wrong:
                failed = True
                print(f"{tool}: {' '.join(words)}")
            for (headline, kernel), n in rest.most_common():
                print(f"    {n} x {kernel}: {headline}")
            for what in wrong:
                print(f"    {what}")
            sys.stdout.flush()
    return failed


def arguments():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--verify", default="build/fa-verify")
    p.add_argument("--sanitizer", default="compute-sanitizer")
    p.add_argument("--tools", default=",".join(TOOLS))
    p.add_argument("--source", default=os.path.join(HERE, "..", ".."), help="the folder that holds cases/")
    p.add_argument("--list", default=f"{HERE}/cases.txt")
    p.add_argument("--known", default=f"{HERE}/known.txt")
    p.add_argument("--only", default="", help="lines that this regular expression finds")
    p.add_argument("--logs", default="", help="a folder for what the tools print")
    p.add_argument("--option", action="append", default=[], help="of compute-sanitizer; repeatable")
    p.add_argument("--limit", type=float, default=600, help="seconds for a process")
    p.add_argument("--jobs", type=int, default=os.cpu_count())
    return p.parse_args()


def main():
    a = arguments()
    tools, known = a.tools.split(","), read_known(a.known)
    lines = [line.split() for line in lines_of(a.list) if re.search(a.only, line)]
    missing = missing_cases(a.source, lines)
    if missing or not set(tools) <= set(TOOLS):
        print(f"no such cases: {' '.join(missing)}" if missing else f"tools are {', '.join(TOOLS)}", file=sys.stderr)
        return 2
    if not shutil.which(a.sanitizer):
        print(f"skipped: no {a.sanitizer}")
        return 77
    if a.logs:
        os.makedirs(a.logs, exist_ok=True)
    failed = run_all(a, tools, lines, known)
    n = sum(len(words) - 1 for words in lines)
    print(f"{n} cases under {', '.join(tools)}: {'something is wrong' if failed else 'nothing unknown'}")
    for k in known:
        print(f"    known: {k.seen} x {k.tool}, {k.kernel}: {k.text} (as in {k.shown_by})")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
