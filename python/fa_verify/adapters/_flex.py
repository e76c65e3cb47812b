"""flex_attention of PyTorch for a case: its score_mod, its mask_mod and its block mask.

The built-in mask reads its edges from tensors, so that one compiled kernel serves causal masks and windows of
every width; what the case says in expressions becomes part of the kernel."""

from __future__ import annotations

import re
from typing import Any

from fa_verify.adapters._adapter import result
from fa_verify.adapters._expr import parse
from fa_verify.adapters._expr_torch import function
from fa_verify.adapters._problem import Problem
from fa_verify.adapters._torch import swap

FEATURES = (
    *("causal", "window", "top_left", "bottom_right", "gqa", "head_dim_v", "softcap", "alibi", "bias", "score_mod", "mask_mod"),
    *("captures", "block_sparse", "empty_lse", "flash_more", "memeff_more", "mods_operators"),
)
#: Kinds of buffers that PyTorch takes as it stands; what it compiles has not been tried with them.
BUFFERS = ("captures_bool", "captures_i64", "captures_half", "captures_strides", "captures_many")
FAR = 1 << 29  # an edge that hides nothing


def refuses(p: Problem, backward: bool) -> str:
    if p.nothing_there:
        return "no rows or no keys"
    if p.has_blocks and p.masked:
        return "full blocks do not ask its mask, where ours hold everywhere"
    return ""


def score_mod(torch: Any, p: Problem, bias: Any, slopes: Any, buffers: dict[str, Any]) -> Any:
    """The score chain behind the scale, or None if nothing is in it."""
    if not (p.softcap or p.score_mod or p.has_alibi or p.has_bias):
        return None
    mod = function(torch, parse(p.score_mod, p.buffer_specs), buffers, p.seqlen_q, p.seqlen_k) if p.score_mod else None
    cap, corner = p.softcap, p.seqlen_k - p.seqlen_q
    one = [n == 1 for n in bias.shape[:3]] if bias is not None else []
    by_sequence = slopes is not None and slopes.dim() == 2

    def chain(score: Any, b: Any, h: Any, q_idx: Any, kv_idx: Any) -> Any:
        if cap:
            score = cap * torch.tanh(score / cap)
        if mod is not None:
            found = mod(score, b, h, q_idx, kv_idx)
            score = found if isinstance(found, torch.Tensor) else torch.full_like(score, found)
        if slopes is not None:
            slope = slopes[b, h] if by_sequence else slopes[h]
            score = score - slope * torch.abs(q_idx + corner - kv_idx)
        if bias is not None:
            score = score + bias[0 if one[0] else b, 0 if one[1] else h, 0 if one[2] else q_idx, kv_idx]
        return score

    return chain


def mask_mod(torch: Any, p: Problem, buffers: dict[str, Any], device: Any) -> Any:
    """The case's mask_mod and its built-in mask together, or None if there is neither."""
    mod = function(torch, parse(p.mask_mod, p.buffer_specs), buffers, p.seqlen_q, p.seqlen_k) if p.mask_mod else None
    if not p.masked:
        return None if mod is None else lambda b, h, q_idx, kv_idx: _condition(torch, mod(None, b, h, q_idx, kv_idx), q_idx)
    edges = [p.shift(), p.left if p.left >= 0 else FAR, p.right if p.right >= 0 else FAR]
    shift, left, right = (torch.tensor(x, dtype=torch.int32, device=device) for x in edges)

    def both(b: Any, h: Any, q_idx: Any, kv_idx: Any) -> Any:
        away = kv_idx - q_idx - shift
        seen = (away <= right) & (away >= -left)
        return seen if mod is None else seen & _condition(torch, mod(None, b, h, q_idx, kv_idx), q_idx)

    return both


def _condition(torch: Any, x: Any, like: Any) -> Any:
    """An int or a Python constant as a condition."""
    if not isinstance(x, torch.Tensor):
        return torch.full_like(like, bool(x), dtype=torch.bool)
    return x if x.dtype == torch.bool else x != 0


def block_mask(torch: Any, p: Problem, call: Any, mod: Any, rows: int) -> Any:
    """The block mask of the case's lists; without lists that of the mask, its blocks of so many rows; None if nothing hides anything."""
    from torch.nn.attention.flex_attention import BlockMask, create_block_mask

    if call.kv_num_blocks is not None:
        return BlockMask.from_kv_blocks(
            call.kv_num_blocks, call.kv_indices, call.full_kv_num_blocks, call.full_kv_indices,
            BLOCK_SIZE=(p.q_block, p.kv_block), mask_mod=mod, seq_lengths=(p.seqlen_q, p.seqlen_k),
        )  # fmt: skip
    if mod is None:
        return None
    words = re.findall(r"[A-Za-z_]\w*", p.mask_mod or "")
    b, h = p.batch if "b" in words else None, p.heads_q if "h" in words else None
    # One block that holds everything is enough: whole blocks are made of every pair before they are counted.
    most = [max(128, -(-n // 128) * 128) for n in (p.seqlen_q, p.seqlen_k)]
    blocks = (min(p.q_block, most[0]), min(p.kv_block, most[1])) if p.has_blocks else (rows, 128)
    return create_block_mask(mod, b, h, p.seqlen_q, p.seqlen_k, device=call.q.device, BLOCK_SIZE=blocks)


def run(call: Any, flex: Any, backward: bool, rows: int = 128, **options: Any) -> Any:
    """Calls `flex`, flex_attention or what torch.compile made of it."""
    import torch
    from torch.nn.attention.flex_attention import AuxRequest

    p = Problem(call.json)
    learnt = p.learnt if backward else []
    inputs = {name: getattr(call, name).detach().requires_grad_(backward) for name in "qkv"}
    if call.bias is not None:
        inputs["bias"] = call.bias.detach().requires_grad_(backward and p.has_bias_grad)
    buffers = {name: x.detach().requires_grad_(name in learnt) for name, x in call.buffers.items()}
    scores = score_mod(torch, p, inputs.get("bias"), call.alibi_slopes, buffers)
    mask = block_mask(torch, p, call, mask_mod(torch, p, buffers, call.q.device), rows)
    with torch.set_grad_enabled(backward):
        o, aux = flex(
            *(swap(inputs[name]) for name in "qkv"), score_mod=scores, block_mask=mask, scale=p.scale, enable_gqa=p.group > 1,
            return_aux=AuxRequest(lse=True), **options,
        )  # fmt: skip
    out = result(o=swap(o).detach(), lse=aux.lse.detach())
    if backward:
        wanted = {name: x for name, x in {**inputs, **buffers}.items() if x.requires_grad}
        ends, seeds = ([o, aux.lse], [swap(call.do), call.dlse]) if call.dlse is not None else ([o], [swap(call.do)])
        grads = torch.autograd.grad(ends, list(wanted.values()), seeds, allow_unused=True)
        found = {name: torch.zeros_like(x) if g is None else g for (name, x), g in zip(wanted.items(), grads)}
        out.dq, out.dk, out.dv, out.dbias = (found.get(name) for name in ("q", "k", "v", "bias"))
        out.dbuffers = {name: found[name] for name in learnt}
    return out
