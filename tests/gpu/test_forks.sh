#!/usr/bin/env bash
# The process that imports for all children of py:NAME and forks them: what it spares, and that a child is what it is without it.
# usage: test_forks.sh FA-VERIFY (from the top of the source tree)
set -uo pipefail
command -v python3 >/dev/null || { echo 'skipped: no python3'; exit 77; }
PATH=$(python3 -c 'import os, sys; print(os.path.dirname(sys.executable))'):$PATH # a version manager's stand-in takes ten times as long to start
verify=$(realpath "$1") source=$PWD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
. "$source/tests/support/cli_check.sh"
mkdir -p folders package/fa_verify/adapters
export FA_EXEC_DIR=$work/folders PYTHONPATH=$work/package PYTHONDONTWRITEBYTECODE=1 WORK=$work CHILD=$source/tests/exec/child2.py
touch package/fa_verify/__init__.py package/fa_verify/adapters/__init__.py
cp "$source/python/fa_verify/_forks.py" package/fa_verify/

# An adapter that is named after what its import does; what follows is for the child. Imports and children leave a line each:
# process, parent, and whether it was the server that imported.
cat >package/fa_verify/adapters/__main__.py <<'END'
import os, runpy, signal, sys, threading, time
from fa_verify import _forks
name, *arguments = sys.argv[1:]
forks = "--fork" in arguments
def note(file):
    with open(f"{os.environ['WORK']}/{file}", "a") as f: f.write(f"{os.getpid()} {os.getppid()} {'server' if forks else 'own'}\n")
def load():
    note("imports")
    if name == "opens":
        _forks.GPU_FILES = (os.environ["WORK"],)
        global opened
        opened = open(f"{os.environ['WORK']}/imports")
    if name == "threads": threading.Thread(target=time.sleep, args=(3600,), daemon=True).start()
    if name == "old":
        def refuse(pid): raise OSError(38, "Function not implemented")
        os.pidfd_open = refuse
    if name in ("full", "few"):
        which, calls = {"full": "fork", "few": "pidfd_open"}[name], []
        work = getattr(os, which)
        def second(*arguments):
            calls.append(arguments)
            if arguments != (os.getpid(),) and len(calls) > 1: raise OSError(11, "Resource temporarily unavailable")
            return work(*arguments)
        setattr(os, which, second)
    if name == "broken": raise ImportError("no such library")
    if name == "dies" and forks: os.kill(os.getpid(), signal.SIGSEGV)
    if name == "never" and forks: time.sleep(3600)
if forks and not _forks.fork_children(load): sys.exit(0)
if not forks: load()
note("children")
sys.argv[1:] = [a for a in arguments if a != "--fork"]
runpy.run_path(os.environ["CHILD"], run_name="__main__")
END

small='"family":"flash","dtype":"f32","head_dim":8,"mask":{"type":"causal"}'
printf '{"fa_cases":1,"defaults":{%s},"cases":[{"name":"five","seqlen_q":5},{"name":"six","seqlen_q":6,"heads_q":2,"heads_kv":1}]}' "$small" >two.json
printf '{"fa_cases":1,"defaults":{%s},"cases":[{"name":"n6","seqlen_q":6}%s]}' "$small" "$(printf ',{"name":"n%d","seqlen_q":%d}' $(for n in {7..17}; do echo "$n $n"; done))" >twelve.json
judge() { # NAME ARGUMENTS...
  rm -f imports children
  run "$verify" run --no-progress --no-probe --color never --backend "py:$1" "${@:2}"
}
imports() { [ "$(wc -l <imports)" "$1" "$2" ]; }
by_server() { # every child is forked by the one that has imported
  [ "$(cut -d' ' -f1,3 imports)" = "$(cut -d' ' -f2,3 children | sort -u)" ]
}
gone() { # NUMBER: the process
  for _ in $(seq 100); do
    kill -0 "$1" 2>/dev/null || return 0
    sleep 0.1
  done
  return 1
}
none_left() {
  gone "$(cut -d' ' -f1 imports | head -n 1)" && gone "$(cut -d' ' -f1 children | tail -n 1)" && [ -z "$(ls -A folders)" ]
}

# ---- one import, whatever the number of children ----
judge plain --jobs 3 --cases twelve.json
expect exits 0
expect lines '^PASS n' 12
expect imports = 1
expect [ "$(wc -l <children)" -ge 3 ]
expect by_server
expect none_left
FA_PY_FORK=off judge plain --jobs 3 --cases twelve.json
expect exits 0
expect imports -ge 3
FA_PY_FORK=maybe judge plain --cases two.json
expect exits 2
expect complains "FA_PY_FORK=maybe: auto or off"

# ---- a child's misbehaviour costs a case, not an import ----
goes_wrong() { # FAULT STATE TEXT [SECONDS]
  judge "plain --fault $1" --jobs 1 --cases two.json --timeout "${4:-60}"
  expect exits 1
  expect says_failure "^$2 five  .*$3"
  expect says_line '^PASS six  '
  expect imports = 1
  expect by_server
  expect none_left
}
goes_wrong wrong FAIL 'o: 1 of 40 bad'
goes_wrong guard OOB 'o'
goes_wrong crash CRASH 'the adapter died of SIGSEGV'
goes_wrong garbage CRASH 'what is no answer: "computing row 1"'
goes_wrong hang HANG 'not done after 5 s' 5
CHILD=$source/tests/exec/child.py goes_wrong endless CRASH 'a line that does not end: "xxx'
CHILD=$source/tests/exec/child.py goes_wrong exit CRASH 'the adapter ended with status 3'

# ---- what cannot be forked ----
unforked() { # NAME TEXT
  judge "$1" --jobs 1 --cases two.json
  expect exits 0
  expect lines '^PASS (five|six)' 2
  expect complains "every process imports for itself: $2"
  expect imports = 3 # the server's, the first question's, the worker's
}
unforked opens "the import opened $work/"
unforked threads 'the import started threads'
unforked old 'this system has no pidfd_open'
for name in full few; do # no room for a second child, or for a descriptor of the first: whoever asks starts its own
  judge "$name" --jobs 1 --cases two.json
  expect exits 0
  expect lines '^PASS (five|six)' 2
  expect [ "$(grep -c own imports)" -ge 1 ]
  expect [ "$(grep -c server imports)" = 1 ]
  expect none_left
done
judge dies --jobs 1 --cases two.json
expect exits 0
expect lines '^PASS (five|six)' 2
judge broken --jobs 1 --cases two.json
expect exits 2
cp err with
FA_PY_FORK=off judge broken --jobs 1 --cases two.json
expect exits 2
expect same err with
judge plain --untrusted --jobs 1 --cases two.json # wherever it has a wall, or has none
expect [ "$(grep -c server imports 2>/dev/null)" != 1 ]

# ---- what is killed takes its children along, and nobody waits for it ----
start() { # NAME ARGUMENTS...: in the background
  rm -f imports children
  "$verify" run --jobs 1 --no-progress --no-probe --timeout 600 --color never --backend "py:$1" --cases two.json >out 2>err &
  top=$!
}
start "plain --fault hang"
for _ in $(seq 300); do
  [ "$(wc -l 2>/dev/null <children)" = 2 ] && break # the second one is the worker's
  sleep 0.1
done
sleep 0.5
kill -9 "$(cut -d' ' -f1 imports | head -n 1)"
wait $top
rc=$?
expect exits 1
expect says_failure '^CRASH five  .*the adapter died of SIGKILL'
expect says_line '^PASS six  '
expect none_left
start "plain --fault hang"
disown
for _ in $(seq 300); do
  [ "$(wc -l 2>/dev/null <children)" = 2 ] && break
  sleep 0.1
done
kill -9 $top
expect none_left
start never # in the midst of its import
disown
wait_for server imports
kill -9 $top
expect gone "$(cut -d' ' -f1 imports | head -n 1)"
done_checking
