#!/usr/bin/env bash
# A run of a candidate that nobody trusts, from outside, in a few seconds: which cases are hidden, which numbers items have, who may read
# the journal, and what the report says of where the candidate came from.
# usage: test_run.sh FA_VERIFY
set -uo pipefail
here=$(realpath "$(dirname "$0")")
verify=$(realpath "$1")
command -v python3 >/dev/null || { echo "skipped: no python3"; exit 77; }
PATH=$(python3 -c 'import os, sys; print(os.path.dirname(sys.executable))'):$PATH # a version manager's stand-in takes ten times as long to start
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
. "$here/../support/cli_check.sh"

cat >from.py <<EOF
import sys
sys.path.insert(0, "$here")
import child


class Candidate(child.Candidate):
    def hello(self):
        return {**super().hello(), "source": "made by hand"}


child.child2.serve(Candidate("honest", ""), sys.stdin, lambda text: print(text, end="", flush=True))
EOF
wall=(processes network files environment seccomp limits memory stderr)
# untrusted COMMAND CANDIDATE [option...]
untrusted() {
  local command=$1 candidate=$2 options=()
  shift 2
  for layer in "${wall[@]}"; do options+=(--without "$layer"); done
  run "$verify" "$command" --untrusted "${options[@]}" --no-progress -j 1 --backend "exec:exec python3 $candidate" "$@"
}
named() { untrusted run "$1" --case '{"name": "plain", "dtype": "f32", "heads_q": 2, "seqlen_q": 9, "seqlen_k": 12, "head_dim": 8, "backward": false}' "${@:2}"; }

# All cases but the one that was named are hidden.
named from.py --report r.json
expect exits 0
expect lines '^PASS plain  ' 1
count=$(grep -cE '^PASS (plain|hidden-[0-9]+)  ' out)
expect [ "$count" -gt 2 ]
expect says "untrusted: $count cases, $((count - 1)) of them hidden;"
# The report says where a candidate comes from, of each once.
expect grep -qE '"exec:exec python3 from.py":[[:space:]]*"made by hand"' r.json
expect [ "$(grep -c '"sources"' r.json)" = 1 ]

# A run that is over is not begun again.
named from.py --report r.json --resume
expect exits 0
expect complains "the run is over"

# The commitment is to the cases that were named.
commitment() { sed -n 's/^untrusted: commitment //p' out; }
drawn=$(printf '5c%.0s' {1..32})
named from.py --without hidden --without replay --without fresh --secret "$drawn"
first=$(commitment)
named from.py --without hidden --without replay --without fresh --secret "$drawn" --case '{"name": "another", "dtype": "f32", "seqlen_q": 2, "head_dim": 8}'
expect [ -n "$first" ]
expect [ "$(commitment)" != "$first" ]

# The journal has the secret, and is nobody else's to read. A failure has the number of its item.
named "'$here/child.py' near" --without hidden --fail-fast --no-explain --report f.json --schedule-seed 3 \
  --case '{"name": "again", "dtype": "f32", "heads_q": 2, "seqlen_q": 9, "seqlen_k": 12, "head_dim": 8, "backward": false}'
expect exits 1
expect complains "ended by --fail-fast"
expect [ "$(stat -c %a f.json.journal)" = 600 ]

# Random cases without a hidden seed are those that everybody has, without a list of cases to hash.
untrusted random from.py --count 2 --seed 5 --profile causal --without hidden
expect exits 1 # its contract claims what no case has tested
expect lines '^PASS causal-5-[01]' 2
done_checking
