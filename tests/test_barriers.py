#!/usr/bin/env python3
"""Takes each barrier, wait and commit out of the kernels, one at a time, and expects the host backend to notice.

usage: test_barriers.py BARRIER_VERIFY CXX [--all] [--write docs/detection.md] [--only TEXT]

BARRIER_VERIFY is fa-verify with the kernels in a shared library, so that a changed copy can be put in their place.
Without --all only the cases that QUICK names are run. Exit: 0 every removal was caught or is in HARMLESS, 1 not so."""
import os
import re
import subprocess
import sys
import tempfile

FILES = ["cases/causal.json", "cases/headdim.json", "cases/edge.json", "cases/gqa.json", "cases/memeff.json",
         "cases/varlen.json", "cases/window.json", "cases/dropout.json", "cases/alibi.json", "cases/softcap.json"]
QUICK_FILTER = "^(square_(17|65)|gqa_5.*|d200|scale_negative.*|deterministic_.*|splits_(bf16|mixed)|d_72_f32|f32_gqa|bias_b.*)$"
CAUGHT = re.compile(r"(FAIL|RACE|OOB|DEADLOCK|CRASH|HANG|ERROR|REJECTED) (\S+)  \S+  \S+  [\d.]+ m?s  (.*?)(?: \[.*)?$")
SITE = re.compile(r"\b(sync_block|sync_warp|cp_async_commit|cp_async_wait<\d+>)\(\);")
# Text of the line -> why nothing can be seen of its removal.
HARMLESS = {
    "sync_block(); /* the tiles are read before the next block's copies come */":
        "each thread copies into the chunks that it alone read before; the barrier stays because only it orders an "
        "asynchronous copy after reads",
}


def sources():
    folder = "gpu/kernels"
    return [f"{folder}/{name}" for name in sorted(os.listdir(folder))
            if name.endswith(".cuh") and not name.startswith("prim")]


def sites():
    """(file, line number, column span, what) of every removable call."""
    for path in sources():
        with open(path) as f:
            for number, line in enumerate(f, 1):
                for m in SITE.finditer(line):
                    yield path, number, m.span(), m.group(1)


def units_of(path):
    """The translation units to compile again when this header changes."""
    name = os.path.basename(path)
    units = [u for u in sorted(os.listdir("gpu/kernels")) if u.endswith("_host.cpp")]
    own = [u for u in units if name.startswith(u[:-len("_host.cpp")])]
    return own or units


def build(cxx, folder, path, units):
    """The kernels with the changed header, which lies in folder, as a shared library. Which header is found must not
    depend on where the others lie: the whole folder is copied."""
    library = os.path.join(folder, "kernels.so")
    command = [cxx, "-std=gnu++17", "-O0", "-shared", "-fPIC", f"-fmacro-prefix-map={folder}/=", f"-I{folder}", "-I."]
    command += [os.path.join(folder, "gpu/kernels", u) for u in units] + ["-o", library]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{path}: does not compile:\n{done.stderr[:2000]}")
    return library


def copy_kernels(folder, path, number, span):
    target = os.path.join(folder, "gpu/kernels")
    os.makedirs(target, exist_ok=True)
    for name in os.listdir("gpu/kernels"):
        if not name.endswith((".cuh", ".h", ".cpp")):
            continue
        with open(os.path.join("gpu/kernels", name)) as f:
            lines = f.readlines()
        if path and name == os.path.basename(path):
            line = lines[number - 1]
            lines[number - 1] = line[:span[0]] + ";" + line[span[1]:]
        with open(os.path.join(target, name), "w") as f:
            f.writelines(lines)


def runs(everything):
    """What to run, in this order: (backend, cases and filter). More processors than the host has by default reach the
    backward that is parallel over query blocks with several key blocks to a head."""
    yield "host", FILES if everything else FILES[:5] + ["--filter", QUICK_FILTER]
    yield "host:processors=132", ["cases/crossattn.json"] + ([] if everything else ["--filter", "^two_blocks_d64$"])


def judge(verify, library, everything):
    """None, or the first case that failed and what it says."""
    for backend, cases in runs(everything):
        command = [verify, "run", "--backend", backend, "--jobs", "2", "--fail-fast", "--timeout", "60", "--color",
                   "never", "--no-progress", "--schedule-seed", "1", "--cases"] + cases
        done = subprocess.run(command, env=dict(os.environ, LD_PRELOAD=library), capture_output=True, text=True)
        if done.returncode == 0:
            continue
        return first_failure(done)
    return None


def first_failure(done):
    if done.returncode != 1:
        sys.exit(f"exit status {done.returncode}: {done.stdout[-1000:]}{done.stderr[-1000:]}")
    for line in done.stdout.splitlines():
        m = CAUGHT.match(line.split("  repro:")[0])
        if m:
            return m.groups()
    return "FAIL", "?", done.stdout[-300:]


def write_table(path, rows):
    """Replaces the rows of the table between the two marks."""
    with open(path) as f:
        before, _, rest = f.read().partition("<!-- barriers -->\n")
        _, _, after = rest.partition("<!-- end of barriers -->\n")
    table = "| Removed | Outcome | First case | What it said |\n|---|---|---|---|\n"
    for where, number, text, said, harmless in rows:
        outcome, case, detail = said or ("not caught", "", harmless or "")
        call = text.split(";")[0]
        table += f"| {os.path.basename(where)}:{number} `{call}` | {outcome} | {case} | {detail} |\n"
    with open(path, "w") as f:
        f.write(f"{before}<!-- barriers -->\n{table}<!-- end of barriers -->\n{after}")


def main(arguments):
    everything, only, write = "--all" in arguments, None, None
    if "--only" in arguments:
        only = arguments[arguments.index("--only") + 1]
    if "--write" in arguments:
        write = arguments[arguments.index("--write") + 1]
    verify, cxx = os.path.abspath(arguments[0]), arguments[1]
    missed, rows = 0, []
    with tempfile.TemporaryDirectory() as folder:
        copy_kernels(folder, None, 0, None)
        unchanged = build(cxx, folder, "unchanged", [u for u in os.listdir("gpu/kernels") if u.endswith("_host.cpp")])
        said = judge(verify, unchanged, False)
        if said:
            sys.exit(f"the unchanged kernels fail: {said}")
        for path, number, span, what in sites():
            text = open(path).readlines()[number - 1].strip()
            if only and only not in f"{path}:{number}":
                continue
            copy_kernels(folder, path, number, span)
            said = judge(verify, build(cxx, folder, path, units_of(path)), everything)
            harmless = HARMLESS.get(text)
            print(f"{path}:{number}: {what}: {' | '.join(said) if said else harmless or 'NOT CAUGHT'}", flush=True)
            missed += not said and not harmless
            rows.append((path, number, text, said, harmless))
    if not rows:
        sys.exit("no barrier found in any kernel")
    print(f"{len(rows)} removals, {missed} not caught")
    if write:
        write_table(write, rows)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
