"""cuDNN attention by its own Python frontend: both corners, windows, bias and its gradient, and the LSE. A graph is built for every case."""

from __future__ import annotations

from typing import Any

from fa_verify.adapters._adapter import Adapter, result
from fa_verify.adapters._cudnn import execute, graph, written
from fa_verify.adapters._problem import Problem
from fa_verify.adapters._torch import aligned, cuda_missing, swap


def _refuses(p: Problem, backward: bool) -> str:
    if p.nothing_there:
        return "no rows or no keys"
    if p.corner_matters and not p.top_left and (p.has_bias or p.seqlen_q > p.seqlen_k):
        return "masks from the bottom right go without a bias and with no more rows than keys"
    if p.masked and p.right != 0:
        return "its masks end at the diagonal"
    if p.left >= 0 and p.seqlen_q > p.seqlen_k:
        return "its windows go with no more rows than keys"
    if backward and p.has_bias_grad and (p.bias_spec["shape"][2] != 1 or p.seqlen_q == 1):
        return "its dBias is rounded with the scale, and where it is a sum its parts are, which no arithmetic says"
    if backward and p.seqlen_q == 1 and p.seqlen_k == 1:
        return "no backward of one pair"
    return ""


def _graph(p: Problem) -> Any:
    import cudnn

    return graph({"f16": cudnn.data_type.HALF, "bf16": cudnn.data_type.BFLOAT16}[p.dtype])


def _mask(p: Problem) -> dict[str, Any]:
    import cudnn

    if not p.masked:
        return {}
    corner = cudnn.diagonal_alignment.TOP_LEFT if p.top_left or p.square else cudnn.diagonal_alignment.BOTTOM_RIGHT
    edges = {"diagonal_alignment": corner, "diagonal_band_right_bound": 0}
    return {**edges, "diagonal_band_left_bound": p.left + 1} if p.left >= 0 else edges


def _forward(p: Problem, q: Any, k: Any, v: Any, bias: Any) -> tuple[Any, Any]:
    import cudnn
    import torch

    g = _graph(p)
    names = {"q": q, "k": k, "v": v, **({"bias": bias} if bias is not None else {})}
    given = {name: g.tensor_like(x) for name, x in names.items()}
    o_, stats_ = g.sdpa(name="sdpa", **given, attn_scale=p.scale, generate_stats=True, **_mask(p))
    o = torch.empty((p.batch, p.seqlen_q, p.heads_q, p.head_dim_v), dtype=q.dtype, device=q.device).transpose(1, 2)
    lse = torch.empty((p.batch, p.heads_q, p.seqlen_q, 1), dtype=torch.float32, device=q.device)
    written(o_, o)
    written(stats_, lse, cudnn.data_type.FLOAT)
    execute(g, {**{given[name]: x for name, x in names.items()}, o_: o, stats_: lse})
    return o, lse


def _backward(p: Problem, q: Any, k: Any, v: Any, bias: Any, o: Any, lse: Any, do: Any) -> dict[str, Any]:
    import torch

    g = _graph(p)
    names = {"q": q, "k": k, "v": v, "o": o, "dO": do, "stats": lse, **({"bias": bias} if bias is not None else {})}
    given = {name: g.tensor_like(x) for name, x in names.items()}
    found = {f"d{name}": torch.empty_like(x) for name, x in (("q", q), ("k", k), ("v", v))}
    more = {}
    if p.has_bias_grad:
        found["dbias"] = torch.empty_like(bias)
        more["dBias"] = g.tensor_like(found["dbias"])
    outs = g.sdpa_backward(name="sdpa_backward", **given, attn_scale=p.scale, **more, **_mask(p))
    pointers = {given[name]: x for name, x in names.items()}
    for node, name in zip(outs, ("dq", "dk", "dv")):
        pointers[written(node, found[name])] = found[name]
    if p.has_bias_grad:
        pointers[more["dBias"]] = found["dbias"]
    execute(g, pointers)
    return found


def _run(call: Any) -> Any:
    p = Problem(call.json)
    q, k, v = (swap(aligned(getattr(call, name))) for name in "qkv")
    o, lse = _forward(p, q, k, v, call.bias)
    out = result(o=swap(o), lse=lse.squeeze(-1))
    if call.wants_gradients:
        found = _backward(p, q, k, v, call.bias, o, lse, swap(aligned(call.do)))
        out.dq, out.dk, out.dv = (swap(found[name]) for name in ("dq", "dk", "dv"))
        out.dbias = found.get("dbias")
    return out


KERNEL = Adapter(
    name="cudnn_frontend",
    what="cuDNN attention by its Python frontend",
    library="nvidia-cudnn-frontend",
    modules=("torch", "cudnn"),
    run=_run,
    dtypes=("f16", "bf16"),
    features=("causal", "window", "top_left", "bottom_right", "gqa", "head_dim_v", "bias", "bias_grad", "empty_lse"),
    passes=("forward", "backward"),
    outputs=("o", "lse", "dq", "dk", "dv", "dbias"),
    lse={"base": "e", "scaled": True, "layout": "as_call", "dtype": "f32", "empty": "any"},
    empty_o="any",
    limits={"head_dim": {"max": 256, "multiple_of": 8}, "head_dim_v": {"max": 256, "multiple_of": 8}},
    arithmetic={"name": "wgmma-sm90", "delta": "stored_o", "ds_scaled": True, "dq_atomic": True, "dkv_atomic": True, "dbias_atomic": True, "gqa_partials_rounded": True},
    refuses=_refuses,
    missing=cuda_missing,
    arrays="torch",
    device="cuda:0",
).kernel()
