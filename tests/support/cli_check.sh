# Shared by the tests of the program from outside; sourced. run COMMAND..., then expect CONDITION...
failed=0 n=0 rc=0
unset FA_SHARD_INDEX FA_SHARD_TOTAL GTEST_SHARD_INDEX GTEST_TOTAL_SHARDS TEST_SHARD_INDEX TEST_TOTAL_SHARDS SLURM_ARRAY_TASK_ID SLURM_ARRAY_TASK_COUNT

run() { # COMMAND...: fills out, err, rc
  what=$*
  "$@" >out 2>err </dev/null
  rc=$?
}
expect() { # CONDITION...
  n=$((n + 1))
  if ! "$@"; then
    failed=$((failed + 1))
    printf 'failed: %s\n  after: %s (exit %s)\n  stdout: %s\n  stderr: %s\n' "$*" "$what" "$rc" "$(head -c 1500 out)" "$(head -c 800 err)"
  fi
}
exits() { [ "$rc" = "$1" ]; }
says() { grep -qF -- "$1" out; }
says_line() { grep -qE -- "$1" out; }
# Of a failure's lines as one: those behind its first are indented by four spaces.
says_failure() { sed -e ':a' -e 'N' -e '$!ba' -e 's/\n    /  /g' out | grep -E -- "$1" >/dev/null; }
complains() { grep -qF -- "$1" err; }
complains_line() { grep -qE -- "$1" err; }
silent() { [ ! -s out ]; }
last_line() { [ "$(tail -n 1 out)" = "$1" ]; }
lines() { [ "$(grep -cE "$1" out)" = "$2" ]; }
missing() { [ ! -e "$1" ]; }
wait_for() { # TEXT FILE: until the text is in it, at most 30 s
  for _ in $(seq 300); do
    grep -qsF -- "$1" "$2" && return
    sleep 0.1
  done
}
same() { cmp -s "$1" "$2"; }
done_checking() { # the script's exit status
  echo "$n checks, $failed failed"
  [ "$failed" = 0 ] && [ "$n" -gt 0 ]
}
