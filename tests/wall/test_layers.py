#!/usr/bin/env python3
"""Each layer of the wall holds, and is missed when it is left out: burglar.py tries, with all layers and without one.

usage: test_layers.py FA_VERIFY"""
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import venv
import time

HERE = os.path.dirname(os.path.abspath(__file__))
BURGLAR = os.path.join(HERE, "burglar.py")
HONEST = os.path.abspath(os.path.join(HERE, "..", "exec", "cheats", "timing", "honest.py"))
CASE = ["--case", '{"dtype":"f16","seqlen_q":5,"seqlen_k":5}', "--timeout", "120"]
# The judge's own layers have tests of their own, and make many calls of a case.
OF_JUDGE = [x for layer in ("contract", "hidden", "replay", "fresh") for x in ("--without", layer)]
SKIPPED = 77
failures = []


def check(condition, what, text=""):
    if not condition:
        failures.append(what)
        print(f"FAILED: {what}\n{text}")


def run(program, command, *options, environment=None, folder=None):
    """One run of fa-verify on the command as a candidate that nobody trusts."""
    words = [program, "run", "--untrusted", "--backend", f"exec:{command}", *OF_JUDGE, *CASE, *options]
    return subprocess.run(words, capture_output=True, text=True, timeout=300, cwd=folder,
                          env={**os.environ, **(environment or {})})


def saw(result, attempt):
    found = re.search(rf"saw {attempt}: (\w+)", result.stderr)
    return found.group(1) if found else "nothing"


def attempts(scratch, port):
    """Layer, attempt, its arguments, and whether it goes through once the layer is left out: None = not to be tried."""
    secret = os.path.join(scratch, "secret")
    with open(secret, "w") as f:
        f.write("the answer")
    rows = [
        ("processes", "processes", [], True),
        ("processes", "signals", [os.getpid()], True),
        ("network", "network", [port], True),
        ("files", "reads", [secret.encode().hex()], True),  # a path that the command spells out would be shown
        ("files", "writes", [secret.encode().hex()], True),
        ("files", "writes", [b"/usr/fa-verify-was-here".hex()], None),
        ("files", "sysctl", [], None),
        ("files", "fills_tmp", [], None),
        ("environment", "environment", ["FA_VERIFY_SECRET"], True),
        ("limits", "forks", [max(600, 9 * os.cpu_count())], True),
        ("memory", "resizes", [0], True),
        ("memory", "resizes", [1 << 31], True),
        ("memory", "sends", [], None),  # whatever the layers
    ]
    for call in ("ptrace", "process_vm_readv", "keyctl", "io_uring_setup", "userfaultfd", "perf_event_open", "bpf",
                 "unshare", "setns", "mount", "open_by_handle_at", "kcmp"):
        # Without the filter the other layers, or the machine, may refuse it all the same.
        rows.append(("seccomp", call, [], True if call in ("ptrace", "process_vm_readv", "keyctl") else None))
    rows += [("seccomp", "vsock", [], None), ("seccomp", "peer", [], None)]
    return rows


def test_attempts(program, scratch):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        for layer, attempt, arguments, goes_through in attempts(scratch, port):
            command = " ".join(["python3", BURGLAR, attempt, *map(str, arguments)])
            environment = {"FA_VERIFY_SECRET": "1"}
            held = run(program, command, environment=environment)
            if attempt == "forks" and "do not bound how many processes root has" in held.stdout:
                print("forks: not tried, root has no cgroup here")
                continue
            check(saw(held, attempt) == "refused", f"{layer}: {attempt} {arguments} goes through", held.stderr)
            if goes_through is None:
                continue
            open_ = run(program, command, "--without", layer, environment=environment)
            check(saw(open_, attempt) == "done", f"without {layer}: {attempt} {arguments} is refused", open_.stderr)


def running(mark):
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                if f.read() == b"sleep\0" + mark.encode() + b"\0":
                    found.append(int(pid))
        except OSError:
            pass
    return found


def test_daemon(program):
    mark = f"600.{os.getpid()}"
    held = run(program, f"python3 {BURGLAR} daemon {mark}")
    check(saw(held, "daemon") == "done" and not running(mark), "processes: a daemon outlives the candidate", held.stderr)
    run(program, f"python3 {BURGLAR} daemon {mark}", "--without", "processes")
    left = running(mark)
    check(left, "without processes: no daemon is left")
    for pid in left:
        os.kill(pid, 9)


def test_stderr(program):
    held = run(program, f"python3 {BURGLAR} forges")
    check(not re.search(r"^tests:1 passed:1 failed:0", held.stderr, re.M) and "\x1b" not in held.stderr
          and re.search(r"^candidate .*\| tests:1 passed:1", held.stderr, re.M), "stderr: a forged line", held.stderr)
    open_ = run(program, f"python3 {BURGLAR} forges", "--without", "stderr")
    check(re.search(r"^tests:1 passed:1 failed:0", open_.stderr, re.M), "without stderr: no forged line", open_.stderr)
    flood = run(program, f"python3 {BURGLAR} floods")
    check(len(flood.stderr) < 100_000 and "which is dropped" in flood.stderr, "stderr: a flood passes")


def test_memory(program):
    files = f"python3 {BURGLAR} greets '" + '{"transport":"files"}' + "'"
    held = run(program, files)
    check(held.returncode == 2 and "must take shared" in held.stderr, "memory: files are let through", held.stderr)
    open_ = run(program, files, "--without", "memory")
    check("must take shared" not in open_.stderr, "without memory: files are refused", open_.stderr)


def test_memory_limit(program):
    """A bomb ends in words under the limit, of a group or of each process, and goes off above it."""
    command, limit = f"python3 {BURGLAR} eats {3 << 29}", ["--memory-limit", "512M"]
    open_ = run(program, command)
    check(saw(open_, "eats") == "done", "memory that nobody limits is refused", open_.stderr)
    held = run(program, command, *limit)
    grouped = "it wanted more memory than 512 MiB, which is its limit" in held.stderr
    alone = "rlimits alone" in held.stdout and saw(held, "eats") == "refused"
    check(saw(held, "eats") != "done" and (grouped or alone), "limits: a bomb goes off, or ends without words", held.stdout + held.stderr)
    ungrouped = run(program, command, *limit, "--without", "processes")  # no group without it
    check(saw(ungrouped, "eats") == "refused", "limits: a bomb goes off without a group", ungrouped.stdout + ungrouped.stderr)
    open_ = run(program, command, *limit, "--without", "limits")
    check(saw(open_, "eats") == "done", "without limits: 512M are a limit", open_.stderr)


def test_honest(program):
    child = os.path.join(HERE, "..", "exec", "child2.py")
    with tempfile.TemporaryDirectory() as folder:
        report = os.path.join(folder, "report.json")
        result = run(program, f"python3 {os.path.abspath(child)}", "--report", report)
        check(result.returncode == 0, "an honest child fails", result.stdout + result.stderr)
        with open(report) as f:
            wall = json.load(f)["untrusted"]["wall"]
        check("limits: " in wall and "child2.py" in wall, "the report's wall", wall)
        shutil.copy(child, os.path.join(folder, "mine.py"))
        relative = run(program, "python3 mine.py", folder=folder)
        check(relative.returncode == 0, "a path from the current folder", relative.stderr)
        hidden_folder = os.path.join(folder, ".venv")  # an environment in a folder whose name begins with a dot
        venv.create(hidden_folder, symlinks=True, with_pip=False)
        dotted = run(program, f"{hidden_folder}/bin/python3 mine.py", folder=folder)
        check(dotted.returncode == 0, "a Python in a folder whose name begins with a dot", dotted.stderr)


def test_hide(program, scratch):
    """What --hide names is empty, by whichever name it is shown; a name that hides nothing is refused."""
    folder, link = os.path.join(scratch, "shown"), os.path.join(scratch, "link")
    os.makedirs(os.path.join(folder, "library"))
    os.symlink(folder, link)
    for name in ("library/kernel", "file"):
        with open(os.path.join(folder, name), "w") as f:
            f.write("the answer")
    for shown in (folder, link):
        for name, hidden in (("library/kernel", "library"), ("file", "file")):
            command = f"python3 {BURGLAR} reads {os.path.join(shown, name).encode().hex()}"
            open_ = run(program, command, "--allow", shown)
            check(saw(open_, "reads") == "done", f"{name} of {shown} is not shown", open_.stderr)
            held = run(program, command, "--allow", shown, "--hide", os.path.join(shown, hidden))
            check(saw(held, "reads") == "refused", f"--hide {hidden} of {shown} hides nothing", held.stderr)
    held = run(program, "true", "--allow", link, "--hide", os.path.join(folder, "file"))
    check(held.returncode == 2 and "by another name" in held.stderr, "--hide of what is shown by another name", held.stderr)
    system = "/lib/os-release" if os.path.exists("/lib/os-release") else "/usr/lib/os-release"  # /lib is a link
    for name in (system, "/usr/lib/os-release"):
        held = run(program, f"python3 {BURGLAR} reads {b'/usr/lib/os-release'.hex()}", "--hide", name)
        check(saw(held, "reads") == "refused", f"--hide {name} hides nothing", held.stderr)


def test_absent(program, scratch):
    """Without bubblewrap, or with too old a one, its layers are refused by name; the others do without it."""
    folder = os.path.join(scratch, "bin")
    os.mkdir(folder)
    for name in ("sh", "python3"):
        os.symlink(shutil.which(name, path="/usr/bin:/bin"), os.path.join(folder, name))
    result = run(program, "true", environment={"PATH": folder})
    check(result.returncode == 2 and "install the package bubblewrap" in result.stderr, "no bubblewrap", result.stderr)
    rest = [word for layer in ("processes", "network", "files") for word in ("--without", layer)]
    result = run(program, f"/usr/bin/python3 {BURGLAR} keyctl", *rest, environment={"PATH": folder})
    check(saw(result, "keyctl") == "refused", "the filter needs bubblewrap", result.stderr)
    with open(os.path.join(folder, "bwrap"), "w", encoding="utf-8") as old:
        old.write("#!/bin/sh\necho 'bwrap: Unknown option --disable-userns' >&2\nexit 1\n")
        os.chmod(old.fileno(), 0o755)
    result = run(program, "true", environment={"PATH": folder})
    check(result.returncode == 2 and "needs bubblewrap 0.8 or later" in result.stderr, "a bubblewrap that is too old", result.stderr)


def test_refusals(program):
    rows = [
        (["--untrusted", "--backend", "host"], "cannot stand behind a wall"),
        (["--untrusted", "--backend", "connect:/nowhere"], "cannot stand behind a wall"),
        (["--untrusted"], "needs a --backend"),
        (["--untrusted", "--backend", "exec:true", "--without", "roof"], "roof"),
        (["--without", "files", "--backend", "host"], "goes with --untrusted"),
        (["--untrusted", "--backend", "exec:true", "--allow", "/"], "--allow /: this would show"),
        (["--untrusted", "--backend", "exec:true", "--allow", "/nowhere"], "--allow /nowhere: there is no such"),
        (["--untrusted", "--backend", "exec:true", "--hide", "/nowhere"], "--hide /nowhere: there is no such"),
        (["--untrusted", "--backend", "exec:true", "--hide", "/sys"], "--hide /sys: it is not in what the kernel is shown"),
        (["--hide", "/usr", "--backend", "host"], "--hide goes with --untrusted"),
        (["--memory-limit", "1G", "--backend", "host"], "--memory-limit goes with --untrusted"),
        *((["--untrusted", "--backend", "exec:true", "--memory-limit", size], "a size of at least 64M is needed")
          for size in ("63M", "1.5G", "64MB", "99999999999T", "")),
    ]
    for options, words in rows:
        result = subprocess.run([program, "run", *CASE, *options], capture_output=True, text=True, timeout=120)
        check(result.returncode == 2 and words in result.stderr, f"{options}: {words}", result.stderr)


def bench(program, *options):
    """The words of a race between an honest child and whom the options name."""
    case = '{"name":"tiny","dtype":"f32","seqlen_q":32,"seqlen_k":32,"head_dim":16,"backward":false}'
    return [program, "bench", "--untrusted", "--backend", f"exec:exec python3 {HONEST}", "--case", case, *options]


def raced(program, *options):
    return subprocess.run(bench(program, *options), capture_output=True, text=True, timeout=300)


def test_rivals(program, scratch):
    """Rivals that are not of this program stand behind the wall too, or do not take part."""
    report = os.path.join(scratch, "bench.json")
    rivals = ["--rival", f"exec:exec python3 {HONEST} --calls", "--rival", "ref-f32"]
    compiler, plugin = shutil.which("cc"), os.path.join(scratch, "plugin.so")
    if compiler:
        source = os.path.join(HERE, "..", "exec", "example_plugin.c")
        subprocess.run([compiler, "-shared", "-fPIC", "-O1", f"-I{HERE}/../..", "-o", plugin, source, "-lm"], check=True)
        rivals += ["--rival", f"plugin:{plugin}"]
    result = raced(program, *rivals, "--report", report)
    check(result.returncode == 0 and "behind the same wall, and judged" in result.stdout
          and "rival ref-f32: a kernel of this program, trusted" in result.stdout, "bench: rivals", result.stdout + result.stderr)
    with open(report) as f:
        told = json.load(f)["bench"]
    by_name = {p["backend"]: p for p in told["cases"][0]["participants"]}
    for rival in rivals[1::2]:
        foreign = rival != "ref-f32"
        check(by_name[rival].get("behind_wall", False) == foreign and (by_name[rival].get("judged_outputs", 0) > 0) == foreign,
              f"bench: the rival {rival}", by_name[rival])
    check(told["stopped_by"] in ("cgroup", "signals"), "bench: how it stands still", told)
    for options, outcome in (([], "refused"), (["--without", "processes"], "done")):
        result = raced(program, "--rival", f"exec:python3 {BURGLAR} signals {os.getpid()}", *options)
        check(saw(result, "signals") == outcome, f"bench: a rival {options} signals the judge: not {outcome}", result.stderr)
    result = raced(program, "--rival", "connect:/nowhere")
    check(result.returncode == 2 and "cannot stand behind a wall" in result.stderr, "bench: a rival that cannot", result.stderr)


def test_killed(program):
    """A judge that dies while its candidate stands still leaves nothing behind."""
    mark = f"--calls={os.getpid()}"
    words = bench(program, "--rival", f"exec:exec python3 {HONEST} {mark}")
    words[4] += f" {mark}"
    words += ["--case", words[6]] * 4
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as judge:
        for line in judge.stdout:
            if b"median" in line:  # the first race is over, and the next one under way
                break
        time.sleep(0.3)
        check(judge.poll() is None, "bench: it has ended too soon to be killed")
        judge.kill()
    deadline = time.monotonic() + 15
    while with_word(mark) and time.monotonic() < deadline:
        time.sleep(0.1)
    check(not with_word(mark), "bench: a killed judge leaves its candidate")


def with_word(word):
    """Processes in whose command line it stands."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                if word.encode() in f.read():
                    found.append(int(pid))
        except OSError:
            pass
    return found


def why_not():
    """Why there can be no wall here; None: there can."""
    if not shutil.which("bwrap"):
        return "no bubblewrap"
    trial = subprocess.run(["bwrap", "--unshare-user", "--disable-userns", "--unshare-pid", "--unshare-net", "--dev-bind", "/", "/",
                            "--proc", "/proc", "true"], capture_output=True, text=True)
    return None if trial.returncode == 0 else f"no namespaces: {trial.stderr.strip()}"


def main():
    program = os.path.abspath(sys.argv[1])
    reason = why_not()
    if reason:
        print(f"skipped: {reason}")
        return SKIPPED
    started = time.time()
    with tempfile.TemporaryDirectory() as scratch:
        test_refusals(program)
        test_attempts(program, scratch)
        test_daemon(program)
        test_stderr(program)
        test_memory(program)
        test_memory_limit(program)
        test_honest(program)
        test_hide(program, scratch)
        test_absent(program, scratch)
        test_rivals(program, scratch)
        test_killed(program)
    print(f"{len(failures)} failures, {time.time() - started:.0f} s")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
