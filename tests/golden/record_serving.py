#!/usr/bin/env python3
"""Records what PyTorch and JAX compute on a processor of calls that serving stacks make, as recorded runs.

usage: record_serving.py FA-VERIFY OUT.safetensors

Inputs are those of the program's goldens of the cases below; O and LSE are the libraries'. Needs torch, jax and ml_dtypes; the
test `recorded` needs none of them and judges the file as it is. Each group is made by its function:

    torch_packed_lse     flex_attention, eager: packed documents under a mask, whose LSE is then that of packed queries
    torch_split_merge    _SDPAMerger, which merges partial results of context parallelism one after the other
    jax_paged_prefill    ref_ragged_paged_attention: packed queries over pages, causal
    jax_paged_window     the same with a window and a soft cap, rows of decoding and of prompts in one call

Attention is in float32: with 16-bit elements these functions round every step to them, which no recorded run may.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import ml_dtypes
import numpy as np
import torch
from jax.experimental.pallas.ops.tpu.ragged_paged_attention.kernel import ref_ragged_paged_attention
from torch.distributed.tensor.experimental._context_parallel import _attention as context_parallel
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))
from fa_verify._safetensors import load, save

Arrays = dict[str, np.ndarray]
Case = dict[str, Any]
NUMPY = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32}
TORCH = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32}


def tensor(x: np.ndarray, dtype: str) -> torch.Tensor:
    return torch.from_numpy(x.astype(np.float32)).to(TORCH[dtype])


def array(x: torch.Tensor) -> np.ndarray:
    result: np.ndarray = x.detach().float().numpy()
    return result


def packed_flex(case: Case, t: Arrays) -> Arrays:
    """One sequence of documents: a row sees the keys of its own, up to its own place."""
    starts = t["cu_seqlens_q"]
    total = int(starts[-1])
    document = torch.from_numpy(np.repeat(np.arange(len(starts) - 1), np.diff(starts)))
    mask = create_block_mask(lambda b, h, q, k: (document[q] == document[k]) & (q >= k), None, None, total, total, device="cpu")
    q, k, v = (tensor(t[name], case["dtype"]).transpose(0, 1)[None] for name in "qkv")
    o, lse = flex_attention(q, k, v, block_mask=mask, return_lse=True, enable_gqa=q.shape[1] != k.shape[1])
    return {"o": array(o[0].transpose(0, 1)), "lse": array(lse[0])}


def merged(case: Case, t: Arrays) -> Arrays:
    merger = context_parallel._SDPAMerger(convert_to_f32=True, seq_dim=2)
    for o, lse in zip(t["o_parts"], t["lse_parts"], strict=True):
        merger.step(tensor(o, case["dtype"]).transpose(1, 2), torch.from_numpy(lse.copy()), partial=False)
    o, lse = merger.results()
    return {"o": array(o.transpose(1, 2)), "lse": array(lse)}


def paged_jax(case: Case, t: Arrays) -> Arrays:
    """K and V of a page lie side by side, as this function wants them; slots without a key are NaN and not read."""
    dtype = NUMPY[case["dtype"]]
    pages = np.stack([t["k"], t["v"]], axis=3).reshape(*t["k"].shape[:2], -1, t["k"].shape[3])
    mask = case["mask"]
    o = ref_ragged_paged_attention(
        *(jnp.asarray(x) for x in (t["q"].astype(dtype), pages.astype(dtype), t["cache_seqlens"])),
        jnp.asarray(np.clip(t["block_table"], 0, len(pages) - 1)),
        jnp.asarray(t["cu_seqlens_q"]),
        jnp.asarray([len(t["cu_seqlens_q"]) - 1]),
        sm_scale=case.get("scale", case["head_dim"] ** -0.5),
        sliding_window=mask["left"] + 1 if mask["type"] == "window" else None,
        soft_cap=case.get("softcap"),
    )
    return {"o": np.asarray(o).astype(np.float32)}


CASES: list[tuple[Callable[[Case, Arrays], Arrays], Case]] = [
    (packed_flex, {"name": "torch_packed_lse", "family": "flex", "dtype": "f32", "heads_q": 4, "heads_kv": 2, "head_dim": 32, "backward": False,
                   "cu_seqlens_q": [0, 1, 40, 40, 105, 168], "cu_seqlens_k": [0, 1, 40, 40, 105, 168], "mask": {"type": "causal"}}),
    (merged, {"name": "torch_split_merge", "family": "merge", "dtype": "bf16", "batch": 2, "heads_q": 3, "seqlen_q": 20, "head_dim": 16,
              "backward": False, "merge": {"parts": 5}, "fill": {"lse_parts": "lse_near"}}),
    (paged_jax, {"name": "jax_paged_prefill", "family": "kvcache", "dtype": "f32", "heads_q": 4, "heads_kv": 2, "head_dim": 8, "seqlen_k": 96,
                 "cu_seqlens_q": [0, 1, 18, 50, 53], "mask": {"type": "causal"}, "kvcache": {"len": [80, 17, 33, 96], "page_size": 16}}),
    (paged_jax, {"name": "jax_paged_window", "family": "kvcache", "dtype": "f32", "heads_q": 2, "heads_kv": 2, "head_dim": 8, "seqlen_k": 64,
                 "cu_seqlens_q": [0, 1, 2, 30], "mask": {"type": "window", "left": 11, "right": 0}, "softcap": 10.0,
                 "kvcache": {"len": [40, 64, 28], "page_size": 8}}),
]  # fmt: skip


def recorded(program: str, case: Case, compute: Callable[[Case, Arrays], Arrays]) -> tuple[dict[str, tuple[str, np.ndarray]], str]:
    """The group's tensors and its case, as the program writes it."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([program, "golden", "write", folder, "-q", "--case", json.dumps(case)], check=True, stdout=subprocess.DEVNULL)
        path = Path(folder) / f"{case['name']}.forward.safetensors"
        raw = path.read_bytes()
        text = json.loads(raw[8 : 8 + int.from_bytes(raw[:8], "little")])["__metadata__"][case["name"]]
        stored = {name.rpartition("/")[2]: held for name, held in load(path).items()}
        inputs = {name: (dtype, np.array(x)) for name, (dtype, x) in stored.items() if dtype != "f64"}
    numbers = {name: x.view(NUMPY[dtype]).astype(np.float32) if dtype in ("f16", "bf16") else x for name, (dtype, x) in inputs.items()}
    outputs = compute(json.loads(text), numbers)
    group = {f"{case['name']}/{name}": held for name, held in inputs.items()}
    o = outputs["o"].astype(NUMPY[case["dtype"]])
    group[f"{case['name']}/o"] = (case["dtype"], o.view(np.uint16) if case["dtype"] != "f32" else o)
    if "lse" in outputs:
        group[f"{case['name']}/lse"] = ("f32", outputs["lse"])
    return group, text


def main() -> int:
    program, out = sys.argv[1:]
    tensors: dict[str, tuple[str, np.ndarray]] = {}
    cases: dict[str, str] = {}
    for compute, case in CASES:
        group, cases[case["name"]] = recorded(program, case, compute)
        tensors.update(group)
    save(out, tensors, cases)
    return 0


if __name__ == "__main__":
    sys.exit(main())
