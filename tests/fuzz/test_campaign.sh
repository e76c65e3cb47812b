#!/usr/bin/env bash
# Runs that are interrupted and resumed: after kills at random moments, damage to the journal, a full disk.
# usage: test_campaign.sh FA-VERIFY FAULTY [KILLS]   (KILLS: how often each campaign is killed; default 6)
set -uo pipefail
here=$(realpath "$(dirname "$0")")
verify=$(realpath "$1") faulty=$(realpath "$2") kills=${3:-6}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
. "$here/../support/cli_check.sh"
sanitized=
grep -qa __asan_init "$verify" && sanitized=yes

# A long case file in which every 13th case fails, and a hang on demand.
sweep() { # SEEDS
  cat <<EOF
{ "fa_cases": 1, "sweeps": [ { "base": { "name": "s", "dtype": "f16", "head_dim": 64, "scale": 0.12345678901234567 },
  "over": { "data_seed": [$(seq -s , -f '"%.0f"' "$1")], "mask.type": ["none", "causal"],
            "heads_q": [1, 2, 3], "seqlen_q": [1, 2, 3, 5, 8, 13, 16, 21, 24, 31] } } ] }
EOF
}
sweep 8 >sweep.json

# ---- helpers ----
normal() { # REPORT: with every time 0
  "$verify" report "$1" --no-times --merge "$1.normal" && cat "$1.normal"
}
is_alive() { [ -e "/proc/$1" ] && ! grep -q '^State:.Z' "/proc/$1/status" 2>/dev/null; }
children() { cat "/proc/$1/task/$1/children" 2>/dev/null; }
moment() { # at most MILLISECONDS
  local ms=$((RANDOM * $1 / 32768)) seconds
  printf -v seconds '%d.%03d' $((ms / 1000)) $((ms % 1000))
  sleep "$seconds"
}
# A line that the kill cut in two may come back as another one: its item is run again.
whole_lines() { head -n "$(wc -l <"$1")" "$1"; }
starts_with() { cmp -s <(whole_lines "$1") <(head -c "$(whole_lines "$1" | wc -c)" "$2"); } # OLD NEW
gone() { # PIDS: within 5 s
  local pid
  for pid in "$@"; do
    for _ in $(seq 50); do
      is_alive "$pid" || break
      sleep 0.1
    done
    is_alive "$pid" && return 1
  done
  return 0
}

# Runs COMMAND to its end in whole/, and in cut/ with kill -9 again and again; the reports must be equal. False: it came
# to its end before it had been killed as often as it should be.
cut_off() { # NAME COMMAND...
  local name=$1 pid workers victim i resume= begun longest
  n_parent=0 n_worker=0 held=
  shift
  rm -rf "whole.$name" "cut.$name"
  mkdir "whole.$name" "cut.$name"
  begun=$(date +%s%3N)
  (cd "whole.$name" && "$@" --report out.json -q >stdout 2>stderr)
  local whole_rc=$?
  longest=$((($(date +%s%3N) - begun) / kills / 2)) # so that much is left after the last kill
  cd "cut.$name" || exit 1
  for ((i = 0; i < kills; ++i)); do
    [ -e out.json.journal ] && cp out.json.journal before
    # shellcheck disable=SC2086
    "$@" --report out.json -q $resume >out 2>err &
    pid=$!
    # Before there is a journal nothing is kept, not even the first process's words. Every other time, and the last,
    # a result more is there, however busy the machine is.
    if ((i == 0 || i % 2 == 1 || i == kills - 1)); then
      until { [ -s out.json.journal ] && [ out.json.journal -nt before ]; } || [ -e out.json ] || ! is_alive $pid; do
        sleep 0.01
      done
    fi
    resume=--resume
    moment "$longest"
    workers=$(children $pid)
    if ((i % 3 == 2)) && [ -n "$workers" ]; then # a worker, and then the parent a moment later
      victim=$(echo "$workers" | tr ' ' '\n' | grep . | shuf -n 1)
      kill -KILL "$victim" 2>/dev/null && n_worker=$((n_worker + 1))
      moment "$longest"
      workers="$workers $(children $pid)"
    fi
    kill -KILL $pid 2>/dev/null
    wait $pid 2>/dev/null
    rc=$? what="$name, kill $i"
    # shellcheck disable=SC2086
    expect gone $workers # orphans die too
    [ -e before ] && [ -e out.json.journal ] && expect starts_with before out.json.journal
    if [ $rc != 137 ] || [ -e out.json ]; then
      cd ..
      return 1
    fi
    n_parent=$((n_parent + 1))
    held="$held $(grep -c '"item"' out.json.journal)"
  done
  # shellcheck disable=SC2086
  "$@" --report out.json -q --jobs 1 $resume >out 2>err
  rc=$? what="$name: the last resume"
  expect exits "$whole_rc"
  expect missing out.json.journal
  expect last_line "$(tail -n 1 "../whole.$name/stdout")"
  # the program's arguments differ in --jobs and --resume; the report has the first process's words
  normal "../whole.$name/out.json" >a
  normal out.json >b
  expect [ "$(wc -c <a)" -gt 10000 ]
  expect same a b
  cp out err ..
  cd ..
}

# SIZE in the command is replaced by the number of cases, which doubles if the program was too fast to be killed.
campaign() { # NAME SIZE COMMAND...
  local name=$1 size=$2
  shift 2
  for _ in 1 2 3 4 5; do
    sweep "$size" >"sweep-$size.json"
    cut_off "$name" "${@//SIZE/$size}" && break
    echo "$name: at its end after $n_parent of $kills kills; once more with more cases"
    size=$((2 * size))
  done
  what="$name: killed $n_parent times, its journals held$held results"
  expect [ "$n_parent" = "$kills" ]
  expect [ "${held##* }" -gt 0 ]
  echo "$name: $n_parent parents and $n_worker workers killed; the journals held$held of" \
    "$(sed -n 's/^tests:\([0-9]*\) .*/\1/p' out) results; $(grep -c '"worst_ratio"' "cut.$name/b") numbers in" \
    "$(wc -c <"cut.$name/b") bytes of report are equal"
}
count=$((kills * 40 > 160 ? kills * 40 : 160))
[ -n "$sanitized" ] && count=$((count / 4))

campaign random "$count" "$verify" random --count SIZE --seed 11 --profile edge --backend ref-f32 --jobs 2
campaign sweep 8 "$faulty" run --cases ../sweep-SIZE.json --backend faulty:wrong_o --backend ref-f32 --jobs 2
campaign lanes 8 "$faulty" run --cases ../sweep-SIZE.json --backend faulty:wrong_o --jobs 8 --lanes 4

# A campaign limited by seconds: time spent counts, and no item is missing or duplicated.
mkdir seconds && cd seconds
resume=
for _ in 1 2 3; do
  "$verify" random --seconds 1.5 --seed 4 --profile edge --backend ref-f32 --report out.json -q --jobs 2 $resume >out 2>err &
  pid=$!
  resume=--resume
  wait_for '"item"' out.json.journal
  sleep 0.2
  kill -KILL $pid
  wait $pid 2>/dev/null
done
# If the last result came after 1000 s, the time is over: only items already started are finished.
sed -i '$s/"elapsed":[0-9.e+-]*/"elapsed":1000/' out.json.journal
begun=$(grep -o '"item":[0-9]*' out.json.journal | cut -d: -f2 | sort -n | tail -n 1)
run "$verify" random --seconds 1.5 --seed 4 --profile edge --backend ref-f32 --report out.json -q --jobs 2 --resume
expect exits 0
expect says_line "^tests:$((begun + 1)) passed:[0-9]+ failed:0 skipped:[0-9]+ error:0\$"
expect grep -qE '"seconds":	100[0-9]' out.json
made=$(sed -n 's/^tests:\([0-9]*\) .*/\1/p' out)
run "$verify" random --count "$made" --seed 4 --profile edge --backend ref-f32 --report whole.json -q
expect exits 0
results() { grep -oE '"(name|state|o|lse|dq|dk|dv)":\s*[^ ,}]*' "$1"; }
results out.json >a && results whole.json >b
expect [ "$(wc -l <a)" -gt $((2 * made)) ]
expect same a b
cd ..

# Options of the first process count too: with --seconds no list of items would distinguish the two runs.
mkdir laws && cd laws
laws=("$verify" random --seconds 20 --seed 4 --profile edge --backend ref-f32 --report out.json -q --jobs 2)
"${laws[@]}" --law repeat >out 2>err &
pid=$!
wait_for '"item"' out.json.journal
{ kill -KILL $pid && wait $pid; } 2>/dev/null
cp out.json.journal before
run "${laws[@]}" --resume
expect exits 2
expect complains 'its laws is ["repeat"], now missing'
expect same before out.json.journal
run env FA_HOPPER=off "${laws[@]}" --law repeat --resume
expect exits 2
expect complains 'its environment is missing, now {"FA_HOPPER":"off"}'
expect same before out.json.journal
sed -i '1s/"cases_sha256"/"environment":{"FA_NVRTC":"off"},&/; $s/"elapsed":[0-9.e+-]*/"elapsed":1000/' out.json.journal
run "${laws[@]}" --law repeat --resume
expect exits 2
expect complains 'its environment is {"FA_NVRTC":"off"}, now missing'
run env FA_NVRTC=off FA_HOPPER= "${laws[@]}" --law repeat --resume
expect exits 0
cd ..

# ---- the report cannot be written: the journal stays, and a resume only writes the report ----
small='"dtype": "f16", "head_dim": 16, "seqlen_q": 8'
cat >five.json <<EOF
{ "fa_cases": 1, "defaults": { $small },
  "cases": [ { "name": "one" }, { "name": "two", "data_seed": "2" }, { "name": "thirteen", "seqlen_q": 13 },
             { "name": "four", "data_seed": "4" }, { "name": "five", "data_seed": "5" } ] }
EOF
"$faulty" --cases five.json --backend faulty:hang --timeout 1 --report hang.json >out 2>err & # a report that cannot be
pid=$!
wait_for one hang.json.journal
mkdir hang.json
wait $pid
rc=$? what="a folder stands where the report goes"
expect exits 3
expect complains "hang.json: cannot write"
expect lines '^PASS' 4
expect [ "$(wc -l <hang.json.journal)" = 6 ]
rmdir hang.json
run "$faulty" --cases five.json --backend faulty:hang --timeout 1 --report hang.json --resume
expect exits 1
expect lines . 1
expect [ -s hang.json ]
run "$faulty" --cases five.json --backend faulty:hang --timeout 1 --report hang.json --resume # once too often
expect exits 1
expect complains "the run is over"
expect last_line "tests:5 passed:4 failed:1 skipped:0 error:0"

# ---- a full disk (here: a limit on the size of files; both are a write that fails) ----
part=("$faulty" run --cases sweep.json --filter 'data_seed=[12],.*heads_q=1,' --backend faulty:wrong_o --report out.json -q --jobs 2)
run "${part[@]}"
expect exits 1
expect last_line "tests:40 passed:36 failed:4 skipped:0 error:0"
normal out.json >want
size=$(stat -c %s out.json)
rm out.json*
limited() { # KIB COMMAND...
  local limit=$1
  shift
  (ulimit -f "$limit" && exec "$@") | cat # the limit is not for what the test itself writes
}
run limited $((size / 1024)) "${part[@]}" # the journal fits, the report does not
expect exits 3
expect complains "out.json: cannot write"
expect missing out.json
expect [ "$(wc -l <out.json.journal)" = 41 ]
expect [ "$(ls -d out.json*)" = out.json.journal ]
cp out.json.journal full
# Without a report, repro takes the failures from the journal, with the numbers that were printed: results stand there
# in the order in which they arrived, and those behind a missing one have no number yet.
cp out printed
numbered() { # K: the name printed with it is the name that it has
  run "$faulty" repro out.json:$1 -q
  expect exits 1
  expect [ "$(sed -n 's/^FAIL \([^ ]*\) .*/\1/p' out)" = "$(grep -B9 "^    repro: .*repro out.json:$1\$" printed | sed -n 's/^FAIL \([^ ]*\) .*/\1/p' | tail -n 1)" ]
}
for k in 0 1 2 3; do numbered $k; done
{ head -n 1 full; tail -n +2 full | tac; } >out.json.journal
for k in 0 3; do numbered $k; done
last=$(sed -n '/"failure":/s/.*"item":\([0-9]*\),.*/\1/p' full | sort -n | tail -n 1) # without the item before it, it waits
grep -v "\"item\":$((last - 1))," full >out.json.journal
run "$faulty" repro out.json:3
expect exits 2
expect complains "there is no failure 3; the report has 3"
cp full out.json.journal
run limited 6 "${part[@]}" # not even the journal; the old one is not lost
expect exits 3
expect complains "kept as out.json.journal.old"
expect same full out.json.journal.old
expect complains "out.json.journal: cannot write: File too large; the run goes on"
expect last_line "tests:40 passed:36 failed:4 skipped:0 error:0"
expect lines '^FAIL ' 4
expect [ "$(stat -c %s out.json.journal)" = 6144 ]
run "${part[@]}" --resume
expect exits 1
normal out.json >got
expect same want got
run limited 1 "$faulty" --cases five.json --backend faulty:wrong_o --keep dumps
expect exits 3
expect says_failure '^FAIL thirteen .*  note: no dump: '
expect lines '^PASS' 4
expect complains "--keep: not every dump could be written"
expect [ -z "$(ls dumps)" ]
run bash -c '"$1" --cases five.json --backend ref-f32 --report closed.json >&-' sh "$verify" # which would be the journal's number
expect exits 3
expect complains "cannot write the results to stdout"
expect [ -s closed.json ]
run bash -c '"$1" --cases - --backend ref-f32 <&- 2>&-' sh "$verify"
expect exits 2
run bash -c '"$1" --cases five.json --backend ref-f32 >/dev/full' sh "$verify"
expect exits 3
expect complains "cannot write the results to stdout"

# ---- a journal truncated at any byte ----
n_bytes=$(stat -c %s full)
header=$(head -n 1 full | wc -c)
for cut in 0 5 $((header - 1)) "$header" $((header + 7)) $((n_bytes - 1)) "$n_bytes" $((RANDOM % n_bytes)) $((RANDOM % n_bytes)); do
  rm -f out.json
  head -c "$cut" full >out.json.journal
  run "${part[@]}" --resume
  what="a journal cut after $cut bytes"
  expect exits 1
  normal out.json >got
  # without the header the words are those of this process
  if [ "$cut" -lt "$header" ]; then sed -i '/^	"command":/d' got && sed '/^	"command":/d' want >a; else cp want a; fi
  expect same a got
done

# ---- what a resume rejects: exit 2, and the journal is unchanged ----
refuses() { # MESSAGE ARGUMENTS...
  local message=$1
  shift
  rm -f out.json
  cp full out.json.journal
  run "$@"
  expect exits 2
  expect complains "$message"
  expect silent
  expect same full out.json.journal
}
refuses 'its filter is "data_seed=[12],.*heads_q=1,", now ""' "$faulty" run --cases sweep.json --backend faulty:wrong_o --report out.json --resume
refuses 'its backends is ["faulty:wrong_o"], now ["ref-f32"]' "$faulty" run --cases sweep.json --filter 'data_seed=[12],.*heads_q=1,' --backend ref-f32 --report out.json --resume
refuses 'its shard is "0/1", now "0/2"' "${part[@]}" --resume --shard 0/2
refuses 'its end_to_end is false, now true' "${part[@]}" --resume --end-to-end
refuses 'its schedule_seed is "0", now "9"' "${part[@]}" --resume --schedule-seed 9
cp sweep.json sweep.kept && sed -i 's/"seqlen_q": \[1, /"seqlen_q": [4, /' sweep.json
refuses 'its cases_sha256 is "' "${part[@]}" --resume
mv sweep.kept sweep.json
cp full kept
damaged() { # MESSAGE SED-COMMAND
  sed "$2" kept >full
  refuses "$1" "${part[@]}" --resume
}
damaged 'out.json.journal:3: no JSON object' '3s/.*/{"name": nonsense/'
damaged 'out.json.journal:4: $.state' '4s/"state":"[A-Z]*"/"state":"FINE"/'
damaged 'out.json.journal:4: $.item' '4s/"item":/"iten":/'
damaged 'stands there twice' '4{p}'
damaged 'out.json.journal: has item 4000 of a run of 40' '4s/"item":[0-9]*/"item":4000/'
damaged 'out.json.journal:1: no journal' '1s/fa_journal/something/'
cp kept full && cp full out.json.journal
run "${part[@]}" --resume # the complete journal still works
expect exits 1

# ---- one process at a time ----
"$faulty" --cases five.json --backend faulty:hang --timeout 20 --report busy.json >out 2>err &
pid=$!
wait_for '"five"' busy.json.journal
cp busy.json.journal busy
for also in "" --resume; do
  run "$faulty" --cases five.json --backend faulty:hang --timeout 20 --report busy.json $also
  expect exits 2
  expect complains "busy.json.journal: process $pid is writing it"
  expect same busy busy.json.journal
done
{ kill -KILL $pid && wait $pid; } 2>/dev/null
run "$faulty" --cases five.json --backend faulty:hang --timeout 1 --report busy.json --resume
expect exits 1
expect last_line "tests:5 passed:4 failed:1 skipped:0 error:0"

# ---- a finished run: its exit code depends on today's waivers ----
over=("$faulty" --cases five.json --backend faulty:wrong_o --report over.json)
waive() { # NAME
  printf '{ "fa_waivers": 1, "waivers": [ { "match": { "name": "%s" }, "states": ["FAIL"], "reason": "known", "expires": "9999-12-31" } ] }' "$1"
}
waive '^thirteen$' >thirteen.json
waive '^four$' >four.json
over_is() { # CODE WAIVED ARGUMENTS...
  local code=$1 waived=$2
  shift 2
  run "${over[@]}" "$@"
  expect exits "$code"
  expect last_line "tests:5 passed:4 failed:$((1 - waived)) skipped:0 error:0$([ "$waived" = 0 ] || echo " waived:$waived")"
}
over_is 0 1 --waivers thirteen.json
cp over.json before
for again in 1 2; do
  over_is 0 1 --waivers thirteen.json --resume
  expect complains "the run is over"
  over_is 1 0 --resume
  over_is 1 0 --waivers four.json --resume
  expect complains "all 1 cases that it matches passed; remove it"
done
expect same before over.json
over_is 1 0
over_is 0 1 --waivers thirteen.json --resume
run "$faulty" --cases five.json --backend ref-f32 --report unneeded.json --waivers four.json
expect exits 1
run "$faulty" --cases five.json --backend ref-f32 --report unneeded.json --waivers four.json --resume
expect exits 1
expect complains "the run is over"
expect last_line "tests:5 passed:5 failed:0 skipped:0 error:0"
tr '\n' ' ' <over.json | sed 's/"failures":.*"cases"/"failures": [],\n"cases"/' >cut.json && mv cut.json over.json
run "${over[@]}" --resume
expect exits 2
expect complains 'over.json: $.cases[2]: $.failure: an object is needed'

# ---- with --fail-fast: no more items after a failure ----
"$faulty" --cases five.json --backend faulty:wrong_o --report ff.json --fail-fast --jobs 1 -q >out 2>err
run "$faulty" --cases five.json --backend faulty:wrong_o --report ff.json --fail-fast --jobs 1 --resume
expect exits 1
expect last_line "tests:3 passed:2 failed:1 skipped:0 error:0"
expect complains "ended by --fail-fast; the same command without it and with --resume goes on (ff.json.journal)"
expect grep -q '"finished":	false' ff.json
run "$faulty" --cases five.json --backend faulty:wrong_o --report ff.json --jobs 1 --resume # and now the others
expect exits 1
expect lines . 3
expect last_line "tests:5 passed:4 failed:1 skipped:0 error:0"
expect missing ff.json.journal
expect grep -q '"finished":	true' ff.json
run "$faulty" --cases five.json --filter '^(one|two|thirteen)$' --backend faulty:wrong_o --report ff.json --fail-fast --jobs 1
expect exits 1
expect missing ff.json.journal # it was the last one
expect grep -q '"finished":	true' ff.json
"$faulty" --cases five.json --backend faulty:wrong_o --backend faulty:hang --report ff.json --jobs 1 >out 2>err &
pid=$!
wait_for '"backend":"faulty:hang"' ff.json.journal # one..five and one, two on the other backend
{ kill -KILL $pid && wait $pid; } 2>/dev/null
run "$faulty" --cases five.json --backend faulty:wrong_o --backend faulty:hang --report ff.json --jobs 1 --fail-fast --resume
expect exits 1
expect says_line '^tests:[67] passed:[56] failed:1 '

# ---- memory ----
if [ -z "$sanitized" ]; then # AddressSanitizer reserves more than any limit
  cat >big.json <<EOF
{ "fa_cases": 1, "defaults": { $small }, "cases": [ { "name": "one" },
  { "name": "big", "heads_q": 64, "head_dim": 128, "seqlen_q": 65536 }, { "name": "two" } ] }
EOF
  run bash -c "ulimit -v 1500000 && exec '$verify' --cases big.json --backend ref-f32 --jobs 1"
  expect exits 3
  expect says_line '^ERROR big .*out of memory'
  expect last_line "tests:3 passed:2 failed:0 skipped:0 error:1"
fi

# ---- progress: a line in place on a terminal, a line now and then with -v ----
if command -v python3 >/dev/null; then
  cat >terminal.py <<'PY'
import os, pty, sys
pid, fd = pty.fork()
if pid == 0:
    os.execvp(sys.argv[1], sys.argv[1:])
text = b''
try:
    while True:
        chunk = os.read(fd, 4096)
        if not chunk:
            break
        text += chunk
except OSError:
    pass
os.waitpid(pid, 0)
sys.stdout.buffer.write(text.replace(b'\r', b'\n'))
PY
  run python3 terminal.py "$verify" random --seconds 0.6 --profile edge --backend ref-f32
  expect says_line '^.\[K\[#+ *\] [0-9]+ cases  [01]/1 s  [0-9.]+/s  passed:[0-9]+ failed:0 skipped:[0-9]+'
  run python3 terminal.py "$verify" random --seconds 0.6 --profile edge --backend ref-f32 --no-progress
  expect lines 'cases  [01]/1 s' 0
fi

done_checking
