"""cuDNN attention in 8 bits by its Python frontend: operands in e4m3 with a descale each, and on Hopper O in e4m3 times a scale. A
graph is built for every case."""

from __future__ import annotations

from typing import Any

from fa_verify.adapters._adapter import Adapter, result
from fa_verify.adapters._cudnn import execute, graph, written
from fa_verify.adapters._problem import Problem
from fa_verify.adapters._torch import aligned, cuda_missing, swap

#: What P is multiplied by before it is rounded to e4m3, which cuDNN leaves to its caller: 1 becomes 256, and all of P below has as many of
#: the type's exponents as it can.
SCALE_P = 256.0

#: Its running maximum does not lag: P of maxima that rise by up to 8 powers of two a tile is not cut off, whatever its scale. It has one
#: accumulator of Hopper's for all keys (the finding cudnn-fp8-one-accumulator) and is judged, as fa3_fwd is, by what a fresh one every
#: 128 keys keeps: with accumulator_keys 0 the bound of 32,768 keys would be O itself.
ARITHMETIC = {"name": "fp8-sm90", "p_scale": SCALE_P, "max_lags": False}


def _refuses(p: Problem, backward: bool) -> str:
    if p.quantized != "e4m3" or not p.quantized_queries or p.quantized_per != "tensor":
        return "queries, keys and values are e4m3 with one descale each"
    if p.quantized_o != "e4m3":
        return "before Blackwell its O is e4m3"
    if p.nothing_there:
        return "no rows or no keys"
    if p.corner_matters and not p.top_left:
        return "before Blackwell its masks begin at the top left"
    if p.masked and p.right != 0:
        return "its masks end at the diagonal"
    return ""


def _mask(p: Problem) -> dict[str, Any]:
    import cudnn

    if not p.masked:
        return {}
    edges = {"diagonal_alignment": cudnn.diagonal_alignment.TOP_LEFT, "right_bound": 0}
    return {**edges, "left_bound": p.left + 1} if p.left >= 0 else edges


def _factors(call: Any) -> dict[str, Any]:
    """Numbers of float32 on the device, each [1, 1, 1, 1]."""
    given = {"descale_q": call.q_descale, "descale_k": call.k_descale, "descale_v": call.v_descale, "scale_o": call.o_scale}
    given["scale_s"], given["descale_s"] = call.o_scale.new_full((1,), SCALE_P), call.o_scale.new_full((1,), 1 / SCALE_P)
    return {name: x.reshape(1, 1, 1, 1) for name, x in given.items()}


def _run(call: Any) -> Any:
    import cudnn
    import torch

    p = Problem(call.json)
    eight, f32 = cudnn.data_type.FP8_E4M3, cudnn.data_type.FLOAT
    g = graph(eight)
    operands = {name: swap(aligned(getattr(call, name))) for name in "qkv"}
    factors = _factors(call)
    inputs = {**operands, **factors}
    given = {name: g.tensor(name=name, dim=list(x.shape), stride=list(x.stride()), data_type=f32 if name in factors else eight) for name, x in inputs.items()}
    nodes = g.sdpa_fp8(name="sdpa_fp8", **given, attn_scale=p.scale, generate_stats=True, **_mask(p))

    q = operands["q"]
    o = torch.empty((p.batch, p.seqlen_q, p.heads_q, p.head_dim_v), dtype=q.dtype, device=q.device).transpose(1, 2)
    lse = torch.empty((p.batch, p.heads_q, p.seqlen_q, 1), dtype=torch.float32, device=q.device)
    amax = [torch.empty((1, 1, 1, 1), dtype=torch.float32, device=q.device) for _ in range(2)]
    outputs = {written(node, x, eight if x is o else f32): x for node, x in zip(nodes, (o, lse, *amax))}
    execute(g, {**{given[name]: x for name, x in inputs.items()}, **outputs})
    return result(o=swap(o), lse=lse.squeeze(-1), amax_p=amax[0].reshape(1), amax_o=amax[1].reshape(1))


KERNEL = Adapter(
    name="cudnn_frontend_fp8",
    what="cuDNN attention in 8 bits by its Python frontend",
    library="nvidia-cudnn-frontend",
    modules=("torch", "cudnn"),
    run=_run,
    families=("flash",),
    dtypes=("f16", "bf16"),
    features=("causal", "window", "top_left", "bottom_right", "gqa", "head_dim_v", "flash_more", "quantized", "quantized_o", "quantized_amax", "empty_lse"),
    outputs=("o", "lse", "amax_p", "amax_o"),
    lse={"base": "e", "scaled": True, "layout": "as_call", "dtype": "f32", "empty": "any"},
    empty_o="any",
    limits={"seqlen_q": {"min": 2}, "head_dim": {"max": 256, "multiple_of": 16}, "head_dim_v": {"max": 256, "multiple_of": 16}},
    arithmetic=ARITHMETIC,
    refuses=_refuses,
    missing=cuda_missing,
    arrays="torch",
    device="cuda:0",
).kernel()
