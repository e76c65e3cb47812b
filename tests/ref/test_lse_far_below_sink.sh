#!/usr/bin/env bash
# An LSE that leaves out a sink thousands above it is off by what its keys' scores are, though their exponentials beside the sink are
# 0. These scores of 8 bits cover the whole range of e4m3.
# usage: test_lse_far_below_sink.sh FA_VERIFY
set -uo pipefail
said=$("$1" run --backend host:hopper --no-progress --case '{"name": "sink_far_above", "dtype": "bf16", "batch": 3, "heads_q": 8,
  "seqlen_q": 193, "seqlen_k": 8, "seqused_k": [6, 7, 0], "mask": {"type": "causal"}, "sinks": {"in_lse": false},
  "quantized": {"dtype": "e4m3", "descale": "head", "values": "one"}, "fill": {"q": "edges", "k": "edges", "sinks": "sink_sizes"},
  "data_seed": "11869338653340209618"}' 2>&1)
if [[ $said != *"PASS sink_far_above"* ]]; then
  echo "the LSE is not within its bounds: $said"
  exit 1
fi
