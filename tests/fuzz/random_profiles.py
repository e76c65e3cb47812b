#!/usr/bin/env python3
"""Random cases of all profiles on a backend, and a table by profile of what came of them.

usage: random_profiles.py FA_VERIFY BACKEND COUNT FOLDER [--seed S] [--jobs N] [--seconds T] [-- OPTION...]

COUNT cases are shared out evenly among the profiles, but `long` gets a twentieth of a share. The reports are FOLDER/PROFILE.json; a
profile that has one is not run again, and one that was stopped goes on where it was. --seconds: no more of the clock for all.
OPTIONs are fa-verify's, such as --judge cuda or --laws.
Exit: 0 all that were judged passed, 1 some failed, 3 some profile could not be run."""
import argparse
import json
import os
import signal
import subprocess
import sys
import time

LEFT_OUT = ("rate-gpu", "rate-host")  # what rates are measured with is in others


def profiles(verify):
    listed = subprocess.run([verify, "list", "profiles"], capture_output=True, text=True, check=True).stdout
    return [name for line in listed.splitlines() for name in line.split()[:1] if name not in LEFT_OUT]


def share(profile, count, n):
    return max(1, count // n // (20 if profile == "long" else 1))


def run(a, profile, n, seconds):
    report = os.path.join(a.folder, f"{profile}.json")
    if os.path.exists(report) and not os.path.exists(report + ".journal"):
        return
    words = [a.verify, "random", "--backend", a.backend, "--profile", profile, "--seed", str(a.seed), "--jobs", str(a.jobs), "--count", str(n),
             "-q", "--no-progress", "--report", report, *a.options]
    if os.path.exists(report + ".journal"):
        words.append("--resume")
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL)
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGINT)  # it writes what it has, and a journal to go on from
        process.wait()


def counts_of(a, profile):
    """{outcome: number}; None: there is no report yet."""
    try:
        with open(os.path.join(a.folder, f"{profile}.json"), encoding="utf-8") as f:
            report = json.load(f)
    except FileNotFoundError:
        return None
    return {**report["summary"], "seconds": report["seconds"]}


def table(found):
    columns = ("total", "passed", "failed", "skipped", "error")
    lines = ["| Profile | " + " | ".join(columns) + " | seconds |", "|---|" + "---|" * (len(columns) + 1)]
    for profile, c in found.items():
        lines.append(f"| {profile} | " + (" | ".join(f"{c[k]:,}" for k in columns) + f" | {c['seconds']:.0f} |" if c else "not finished |" + " |" * len(columns)))
    whole = {k: sum(c[k] for c in found.values() if c) for k in (*columns, "seconds")}
    lines.append("| all | " + " | ".join(f"{whole[k]:,}" for k in columns) + f" | {whole['seconds']:.0f} |")
    return "\n".join(lines)


def main(words):
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("verify")
    p.add_argument("backend")
    p.add_argument("count", type=int)
    p.add_argument("folder")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--jobs", type=int, default=os.cpu_count())
    p.add_argument("--seconds", type=float, default=1e9)
    at = words.index("--") if "--" in words else len(words)
    a = p.parse_args(words[:at])
    a.options = words[at + 1:]
    os.makedirs(a.folder, exist_ok=True)
    end, names = time.time() + a.seconds, profiles(a.verify)
    for profile in names:
        if time.time() < end:
            run(a, profile, share(profile, a.count, len(names)), end - time.time())
    found = {profile: counts_of(a, profile) for profile in names}
    print(table(found))
    if not all(found.values()):
        return 3
    return 1 if any(c["failed"] or c["error"] for c in found.values()) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
