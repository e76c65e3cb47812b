"""The kernels of the adapter triton_example: attention for a GPU in Triton, forward and backward, causal masks from either
corner, groups of query heads. Written to be read; docs/guide/your-kernel.md shows how it is judged."""

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

LOG2E = tl.constexpr(1.4426950408889634)
LN2 = tl.constexpr(0.6931471805599453)


@triton.jit
def _tile(base, rows, columns, n_rows, n_columns, row_stride):
    """Elements [rows, columns] of a matrix, 0 outside."""
    inside = (rows[:, None] < n_rows) & (columns[None, :] < n_columns)
    return tl.load(base + rows[:, None] * row_stride + columns[None, :], mask=inside, other=0.0)


@triton.jit
def _put(base, values, rows, columns, n_rows, n_columns, row_stride):
    inside = (rows[:, None] < n_rows) & (columns[None, :] < n_columns)
    tl.store(base + rows[:, None] * row_stride + columns[None, :], values.to(base.dtype.element_ty), mask=inside)


@triton.jit
def _scores(q, k, i, j, sq, sk, shift, scale, CAUSAL: tl.constexpr):
    """Logits times log2(e), -inf where a pair does not exist or is hidden: row i of a causal mask sees keys up to i + shift."""
    s = tl.dot(q, tl.trans(k)) * (scale * LOG2E)
    seen = (i[:, None] < sq) & (j[None, :] < sk)
    if CAUSAL:
        seen = seen & (j[None, :] <= i[:, None] + shift)
    return tl.where(seen, s, float("-inf"))


@triton.jit
def forward(
    Q, K, V, O, L, q_b, q_s, q_h, k_b, k_s, k_h, v_b, v_s, v_h, o_b, o_s, o_h,
    heads, group, sq, sk, shift, d, dv, scale, CAUSAL: tl.constexpr, M: tl.constexpr, N: tl.constexpr, D: tl.constexpr, DV: tl.constexpr,
):  # fmt: skip
    """A program makes M rows of O [B, H, Sq, Dv] and of LSE [B, H, Sq]."""
    b, h = (tl.program_id(1) // heads).to(tl.int64), (tl.program_id(1) % heads).to(tl.int64)
    i = tl.program_id(0) * M + tl.arange(0, M)
    columns, v_columns = tl.arange(0, D), tl.arange(0, DV)
    q = _tile(Q + b * q_b + h * q_h, i, columns, sq, d, q_s)
    k_base, v_base = K + b * k_b + (h // group) * k_h, V + b * v_b + (h // group) * v_h
    top = tl.full([M], float("-inf"), tl.float32)
    total = tl.zeros([M], tl.float32)
    o = tl.zeros([M, DV], tl.float32)
    end = sk
    if CAUSAL:
        end = tl.minimum(sk, (tl.program_id(0) + 1) * M + shift)
    for first in range(0, end, N):
        j = first + tl.arange(0, N)
        # V here and not where it is needed, so that its tile has an address of its own in shared memory: where K and V took turns at one,
        # ptxas 12.8.93 lost where V begins (docs/findings.md#triton-narrow-values).
        k, v = _tile(k_base, j, columns, sk, d, k_s), _tile(v_base, j, v_columns, sk, dv, v_s)
        s = _scores(q, k, i, j, sq, sk, shift, scale, CAUSAL)
        new_top = tl.maximum(top, tl.max(s, 1))
        shown = tl.where(new_top == float("-inf"), 0.0, new_top)
        p = tl.exp2(s - shown[:, None])
        shrink = tl.exp2(top - shown)
        total = total * shrink + tl.sum(p, 1)
        o = o * shrink[:, None] + tl.dot(p.to(v.dtype), v)
        top = new_top
    some = total > 0
    o = tl.where(some[:, None], o / tl.where(some, total, 1.0)[:, None], 0.0)
    lse = tl.where(some, (top + tl.log2(tl.where(some, total, 1.0))) * LN2, float("inf"))
    _put(O + b * o_b + h * o_h, o, i, v_columns, sq, dv, o_s)
    tl.store(L + tl.program_id(1) * sq + i, lse, mask=i < sq)


@triton.jit
def delta_of(O, DO, DELTA, o_b, o_s, o_h, do_b, do_s, do_h, heads, sq, dv, M: tl.constexpr, DV: tl.constexpr):
    """delta = sum of dO * O for M rows."""
    b, h = (tl.program_id(1) // heads).to(tl.int64), (tl.program_id(1) % heads).to(tl.int64)
    i, columns = tl.program_id(0) * M + tl.arange(0, M), tl.arange(0, DV)
    o = _tile(O + b * o_b + h * o_h, i, columns, sq, dv, o_s).to(tl.float32)
    do = _tile(DO + b * do_b + h * do_h, i, columns, sq, dv, do_s).to(tl.float32)
    tl.store(DELTA + tl.program_id(1) * sq + i, tl.sum(o * do, 1), mask=i < sq)


@triton.jit
def _p_and_ds(q, k, v, do, L, DELTA, row, i, j, sq, sk, shift, scale, CAUSAL: tl.constexpr):
    """P and dS [M, N], from the LSE and delta of the rows."""
    lse = tl.load(L + row * sq + i, mask=i < sq, other=float("inf"))
    delta = tl.load(DELTA + row * sq + i, mask=i < sq, other=0.0)
    p = tl.exp2(_scores(q, k, i, j, sq, sk, shift, scale, CAUSAL) - (lse * LOG2E)[:, None])
    return p, p * (tl.dot(do, tl.trans(v)) - delta[:, None])


@triton.jit
def backward_keys(
    Q, K, V, DO, L, DELTA, DK, DV_, q_b, q_s, q_h, k_b, k_s, k_h, v_b, v_s, v_h, do_b, do_s, do_h, dk_b, dk_s, dk_h, dv_b, dv_s, dv_h,
    heads, group, sq, sk, shift, d, dv, scale, CAUSAL: tl.constexpr, M: tl.constexpr, N: tl.constexpr, D: tl.constexpr, DV: tl.constexpr,
):  # fmt: skip
    """A program makes N rows of dK and dV, over all query heads of the KV head, so that nothing is added in memory."""
    heads_kv = heads // group
    b, hk = (tl.program_id(1) // heads_kv).to(tl.int64), (tl.program_id(1) % heads_kv).to(tl.int64)
    j = tl.program_id(0) * N + tl.arange(0, N)
    columns, v_columns = tl.arange(0, D), tl.arange(0, DV)
    k = _tile(K + b * k_b + hk * k_h, j, columns, sk, d, k_s)
    v = _tile(V + b * v_b + hk * v_h, j, v_columns, sk, dv, v_s)
    dk = tl.zeros([N, D], tl.float32)
    dv_sum = tl.zeros([N, DV], tl.float32)
    begin = 0
    if CAUSAL:
        begin = tl.maximum(tl.program_id(0) * N - shift, 0) // M * M
    for g in range(group):
        h = hk * group + g
        for first in range(begin, sq, M):
            i = first + tl.arange(0, M)
            q = _tile(Q + b * q_b + h * q_h, i, columns, sq, d, q_s)
            do = _tile(DO + b * do_b + h * do_h, i, v_columns, sq, dv, do_s)
            p, ds = _p_and_ds(q, k, v, do, L, DELTA, b * heads + h, i, j, sq, sk, shift, scale, CAUSAL)
            dv_sum += tl.dot(tl.trans(p.to(do.dtype)), do)
            dk += tl.dot(tl.trans(ds.to(q.dtype)), q)
    _put(DK + b * dk_b + hk * dk_h, dk * scale, j, columns, sk, d, dk_s)
    _put(DV_ + b * dv_b + hk * dv_h, dv_sum, j, v_columns, sk, dv, dv_s)


@triton.jit
def backward_queries(
    Q, K, V, DO, L, DELTA, DQ, q_b, q_s, q_h, k_b, k_s, k_h, v_b, v_s, v_h, do_b, do_s, do_h, dq_b, dq_s, dq_h,
    heads, group, sq, sk, shift, d, dv, scale, CAUSAL: tl.constexpr, M: tl.constexpr, N: tl.constexpr, D: tl.constexpr, DV: tl.constexpr,
):  # fmt: skip
    """A program makes M rows of dQ."""
    b, h = (tl.program_id(1) // heads).to(tl.int64), (tl.program_id(1) % heads).to(tl.int64)
    i = tl.program_id(0) * M + tl.arange(0, M)
    columns, v_columns = tl.arange(0, D), tl.arange(0, DV)
    q = _tile(Q + b * q_b + h * q_h, i, columns, sq, d, q_s)
    do = _tile(DO + b * do_b + h * do_h, i, v_columns, sq, dv, do_s)
    k_base, v_base = K + b * k_b + (h // group) * k_h, V + b * v_b + (h // group) * v_h
    dq = tl.zeros([M, D], tl.float32)
    end = sk
    if CAUSAL:
        end = tl.minimum(sk, (tl.program_id(0) + 1) * M + shift)
    for first in range(0, end, N):
        j = first + tl.arange(0, N)
        k = _tile(k_base, j, columns, sk, d, k_s)
        v = _tile(v_base, j, v_columns, sk, dv, v_s)
        _, ds = _p_and_ds(q, k, v, do, L, DELTA, b * heads + h, i, j, sq, sk, shift, scale, CAUSAL)
        dq += tl.dot(ds.to(k.dtype), k)
    _put(DQ + b * dq_b + h * dq_h, dq * scale, i, columns, sq, d, dq_s)


def attention(call: Any, causal: bool, shift: int) -> dict[str, Any]:
    """Runs the kernels on the call's tensors, [B, S, H, D]; o, lse, and the gradients if they are wanted. shift: of a causal mask,
    from the top left 0, from the bottom right Sk - Sq."""
    import torch

    q, k, v = call.q, call.k, call.v
    (b, sq, h, d), (sk, hk), dv = q.shape, k.shape[1:3], v.shape[3]
    tile, wide = 32 if d > 128 or q.dtype == torch.float32 else 64, [max(16, triton.next_power_of_2(n)) for n in (d, dv)]
    o, lse = torch.empty((b, sq, h, dv), dtype=q.dtype, device=q.device), torch.empty((b, h, sq), dtype=torch.float32, device=q.device)
    sizes = (h, h // hk, sq, sk, shift, d, dv, call.scale, causal, tile, tile, *wide)
    rows, keys = (triton.cdiv(sq, tile), b * h), (triton.cdiv(sk, tile), b * hk)
    step = lambda *tensors: [n for x in tensors for n in x.stride()[:3]]  # noqa: E731
    forward[rows](q, k, v, o, lse, *step(q, k, v, o), *sizes)
    out = {"o": o, "lse": lse}
    if not call.wants_gradients:
        return out
    do, delta = call.do, torch.empty_like(lse)
    dq, dk, dv_ = (torch.empty(x.shape, dtype=x.dtype, device=x.device) for x in (q, k, v))
    delta_of[rows](o, do, delta, *step(o, do), h, sq, dv, tile, wide[1])
    backward_keys[keys](q, k, v, do, lse, delta, dk, dv_, *step(q, k, v, do, dk, dv_), *sizes)
    backward_queries[rows](q, k, v, do, lse, delta, dq, *step(q, k, v, do, dq), *sizes)
    return {**out, "dq": dq, "dk": dk, "dv": dv_}
