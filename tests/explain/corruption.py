#!/usr/bin/env python3
"""What chance has spoilt is not explained.

usage: corruption.py FA-VERIFY PLANTED.so   (-v before them: what was spoilt how)

Right outputs are spoilt in a dozen ways (corrupt.c of the plugin `planted`); 200 of these failures, or more, get no
explanation. Exit 1: one does, or too few cases failed. Exit 77: this program explains nothing."""
import os
import sys

import cases

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
from share import share  # noqa: E402

KINDS = ("one_bit", "bits", "noise_few", "noise_uniform", "noise_gauss", "noise_relative", "zeroed", "swapped",
         "scrambled", "garbage", "columns")
SEEDS = (1, 2)
NEEDED = 200
FEATURES = ({}, {"mask": {"type": "causal"}}, {"mask": {"type": "window", "left": 12, "right": 3}},
            {"heads_q": 4, "heads_kv": 2}, {"softcap": 2.0, "alibi": {"slopes": "standard"}},
            {"dropout": {"p": 0.2, "seed": "5"}}, {"bias": {"shape": [1, "h", "q", "k"], "grad": True}})


def spoilt_cases() -> list[dict]:
    """Two cases of each kind of call, in sizes that no two share: what is spoilt depends on the sizes."""
    found = []
    for i, features in enumerate(FEATURES * 2):
        found.append({"name": f"{i}", "batch": 1 + i % 2, "heads_q": 2, "seqlen_q": 40 + 7 * i, "seqlen_k": 50 + 9 * i,
                      "head_dim": (32, 64, 40)[i % 3], "dtype": ("f16", "bf16", "f32")[i % 3],
                      "backward": i % 4 != 3, **features})
    return found


def main(arguments: list[str]) -> int:
    verbose = arguments[:1] == ["-v"]
    verify, plugin = arguments[verbose:]
    cases.hypotheses(verify)
    wanted = spoilt_cases()
    every_job = [(verify, plugin, f"corrupt:{kind}:{seed}", wanted) for kind in KINDS for seed in SEEDS]
    jobs = share(every_job)
    needed = NEEDED if jobs == every_job else 1  # some kinds are rarely seen
    failed = explained = 0
    for (_, _, planted, _), found in zip(jobs, cases.in_parallel(cases.failures, jobs)):
        failed += len(found)
        if verbose:
            print(f"{planted}: {len(found)} of {len(wanted)} failed")
        for failure in found:
            for reason in failure.get("explained_by", []):
                print(f"{planted}, case {failure['name']}: {reason['hypothesis']}: {reason['text']}, "
                      f"{reason['wrong']} elements, share {reason['share']}")
            explained += bool(cases.names(failure))
    print(f"{failed} failures made by chance, {explained} of them explained")
    return 1 if explained or failed < needed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
