"""Attention in numpy's float32, forward and backward: the worked example of an adapter, in nothing but numpy.

Every sequence is computed by itself, with all its scores at once; only roundings to the call's element type at
the end leave float32."""

from __future__ import annotations

from typing import Any

import numpy as np

from fa_verify._dtypes import from_four_bits
from fa_verify.adapters._adapter import Adapter, result
from fa_verify.adapters._problem import Problem

F32 = np.float32


def _slots(call: Any, b: int, first: int, last: int) -> tuple[Any, Any]:
    """Where a cache has a sequence's keys first .. last - 1: its pages or its row, and the places there."""
    j = np.arange(first, last)
    if call.block_table is None:
        return np.full(j.size, b if call.cache_batch_idx is None else call.cache_batch_idx[b]), j
    size = call.k.shape[1]
    return np.asarray(call.block_table[b])[j // size], j % size


def _append(p: Problem, call: Any) -> None:
    """Puts the new keys and values behind those that the caches hold."""
    for b in range(p.batch if call.k_new is not None else 0):
        at = _slots(call, b, p.cache_seqlens[b], p.cache_seqlens[b] + p.new)
        call.k[at], call.v[at] = call.k_new[b], call.v_new[b]


def _cached(p: Problem, call: Any, x: Any, b: int) -> Any:
    """A sequence's keys or values in the cache, as f32 [Hk, S, D]."""
    seen = _seen(p, b)
    rows = np.asarray(x[_slots(call, b, seen.start, seen.stop)], F32).swapaxes(0, 1)
    if not p.topk:
        return rows
    named = (_times(p, call, b) > 0).any(axis=0)  # the others hold anything
    return np.where(named[:, None], rows, F32(0))


def _keys(p: Problem, call: Any, name: str, b: int) -> Any:
    """A sequence's keys or values without their descales, as f32 [Hk, S, D]."""
    x = getattr(call, name)
    if not p.cached:
        return _rows(p, x, b, True)
    rows = _cached(p, call, x, b)
    if call.quantized != "e2m1":
        return rows
    scales = _cached(p, call, getattr(call, f"{name}_scales"), b)
    return from_four_bits(rows.astype(np.uint8)) * np.repeat(scales, 16, axis=2)


def _times(p: Problem, call: Any, b: int) -> Any:
    """How often each row's list names each key of one sequence: [Sq, Sk]."""
    packed = p.cu_seqlens_q is not None
    lists = np.asarray(call.topk_indices[p.cu_seqlens_q[b] : p.cu_seqlens_q[b + 1]] if packed else call.topk_indices[b])
    lists = lists[:, : call.topk_length[b] if call.topk_length is not None else None]
    page, place = _slots(call, b, 0, max(p.keys[b], 0))
    slots = place if call.block_table is None else page.astype(np.int64) * call.k.shape[1] + place
    return (lists[:, :, None] == slots[None, None, :]).sum(axis=1)


def _rows(p: Problem, x: Any, b: int, on_keys: bool) -> Any:
    """The tokens of one sequence that exist, as f32 [H, S, D]."""
    if not p.varlen:
        tokens = x[b]
    else:
        offsets = p.cu_seqlens_k if on_keys else p.cu_seqlens_q
        tokens = x[offsets[b] : offsets[b + 1]]
    return np.asarray(tokens[_seen(p, b)] if on_keys else tokens, F32).swapaxes(0, 1)


def _seen(p: Problem, b: int) -> slice:
    """The keys of a sequence that lengths leave."""
    first = p.leftpad_k[b] if p.leftpad_k else 0
    return slice(first, first + max(p.keys[b], 0))


def _descale(p: Problem, call: Any, name: str, b: int) -> Any:
    """What one sequence's stored q, k or v are multiplied by: a number, or [H, 1, 1] or [H, S, 1]."""
    x, per = getattr(call, f"{name}_descale"), call.quantized_per
    if x is None or per == "tensor":
        return F32(1) if x is None else x[0]
    if per == "head" or (name == "q" and per == "page") or (name == "v" and call.quantized_queries):
        heads = np.asarray(x[b], F32)
        return (np.repeat(heads, p.group) if name == "q" else heads)[:, None, None]
    if name == "q" or not p.cached:
        return _rows(p, np.asarray(x)[..., None], b, name != "q")
    seen = _seen(p, b)
    pages, places = _slots(call, b, seen.start, seen.stop)
    return np.asarray(x[pages] if per == "page" else x[pages, places], F32).swapaxes(0, 1)[..., None]


def _bias(x: Any, b: int, sq: int, sk: int) -> Any:
    return np.asarray(x[b if x.shape[0] > 1 else 0][:, :sq, :sk], F32)


def _slopes(x: Any, b: int) -> Any:
    return (x[b] if x.ndim == 2 else x)[:, None, None]


def _hidden(p: Problem, call: Any, b: int, sq: int, sk: int) -> Any:
    """Which pairs of one sequence masks hide: bool [Sq, Sk]."""
    i, j = np.arange(sq)[:, None], np.arange(sk)[None, :]
    at = i + p.shift(b)
    hidden = ((p.right >= 0) & (j > at + p.right)) | ((p.left >= 0) & (j < at - p.left))
    if p.chunk:
        hidden |= j < at // p.chunk * p.chunk
    if p.has_mask_bits and sq * sk > 0:
        first = int(call.mask_indptr[b])
        bits = np.unpackbits(np.asarray(call.mask_bits)[first:], count=sq * sk, bitorder="little")
        hidden |= bits.reshape(sq, sk) == 0
    return hidden


def _scores(p: Problem, call: Any, q: Any, k: Any, b: int) -> tuple[Any, Any]:
    """The logits [H, Sq, Sk], hidden ones -inf, and the derivative of the softcap (1 without one)."""
    t = (q @ k.swapaxes(1, 2)) * F32(p.scale)
    slope = F32(1)
    if p.softcap:
        bent = np.tanh(t / F32(p.softcap))
        t, slope = bent * F32(p.softcap), 1 - bent * bent
    i, j = np.arange(q.shape[1])[:, None], np.arange(k.shape[1])[None, :]
    if p.has_alibi:
        t = t - _slopes(call.alibi_slopes, b) * np.abs(i + (k.shape[1] - q.shape[1]) - j).astype(F32)
    if p.has_bias:
        t = t + _bias(call.bias, b, q.shape[1], k.shape[1])
    if p.topk:
        t = t + np.log(_times(p, call, b).astype(F32))
    return np.where(_hidden(p, call, b, q.shape[1], k.shape[1]), F32(-np.inf), t), slope


def _softmax(p: Problem, t: Any, sinks: Any) -> tuple[Any, Any, Any]:
    """P [H, Sq, Sk], LSE [H, Sq], and the sink's share [H, Sq] of each row. sinks: [H], -inf for none. What has neither keys nor a
    sink has P 0 and the LSE that the case asks for."""
    top = np.maximum(t.max(axis=2, initial=-np.inf), sinks[:, None])
    none = np.isneginf(top)
    base = np.where(none, F32(0), top)
    e, sink = np.exp(t - base[..., None]), np.exp(sinks[:, None] - base)
    total = np.where(none, F32(1), e.sum(axis=2) + sink)
    lse = np.where(none, F32(p.empty_lse), base + np.log(total))
    return e / total[..., None], lse.astype(F32), sink / total


def _backward(p: Problem, grads: dict[str, Any], q: Any, k: Any, v: Any, do: Any, dlse: Any, prob: Any, share: Any, slope: Any) -> None:
    """Gradients of one sequence: [H, S, D] of q, [Hk, S, D] of k and v, [H, Sq, Sk] of the bias, [H] of the sinks."""
    group = p.group
    grouped = lambda x: x.reshape(x.shape[0] // group, group, *x.shape[1:]).sum(axis=1)  # noqa: E731
    dp = do @ v.swapaxes(1, 2)
    delta = (prob * dp).sum(axis=2) - (F32(0) if dlse is None else dlse)
    g = prob * (dp - delta[..., None])
    ds = g * slope * F32(p.scale)
    grads.update(dq=ds @ k, dk=grouped(ds.swapaxes(1, 2) @ q), dv=grouped(prob.swapaxes(1, 2) @ do), dbias=g, dsinks=-(share * delta).sum(axis=1))


def _put(p: Problem, out: dict[str, Any], name: str, x: Any, b: int) -> None:
    """Stores [H, S, D] of one sequence in an output of the call's shape."""
    x = x.swapaxes(0, 1)
    if name in ("dk", "dv"):
        at = (p.cu_seqlens_k[b] if p.varlen else 0) + _seen(p, b).start
        (out[name] if p.varlen else out[name][b])[at : at + x.shape[0]] = x
    elif p.varlen:
        out[name][p.cu_seqlens_q[b] : p.cu_seqlens_q[b + 1]] = x
    else:
        out[name][b] = x


def _put_bias(out: Any, g: Any, b: int) -> None:
    """Adds [H, Sq, Sk] to the bias's gradient, summed over the axes that the bias has not."""
    for axis, n in enumerate(out.shape[1:3]):
        g = g.sum(axis=axis, keepdims=True) if n == 1 else g
    out[b if out.shape[0] > 1 else 0, :, : g.shape[1], : g.shape[2]] += g


def _outputs(p: Problem, call: Any) -> dict[str, Any]:
    """Zeros for everything that is to be written."""
    out = {"o": np.zeros((*call.q.shape[:-1], p.head_dim_v), F32)}
    flat = p.varlen and not p.padded_lse
    out["lse"] = np.zeros((p.heads_q, call.q.shape[0]) if flat else (p.batch, p.heads_q, p.seqlen_q), F32)
    if p.has_amax:
        out.update(amax_p=np.zeros(1, F32), amax_o=np.zeros(1, F32))
    if call.wants_gradients:
        out.update({f"d{name}": np.zeros(getattr(call, name).shape, F32) for name in "qkv"})
        if p.has_bias_grad:
            out["dbias"] = np.zeros(call.bias.shape, F32)
        if p.has_sinks_grad:
            out["dsinks"] = np.zeros(p.heads_q, F32)
    return out


def _lse_of(p: Problem, x: Any, b: int) -> Any:
    """One sequence's part [H, Sq] of the LSE or of its gradient, a view."""
    if p.varlen and not p.padded_lse:
        return x[:, p.cu_seqlens_q[b] : p.cu_seqlens_q[b + 1]]
    return x[b, :, : p.lens_q[b]]


def _run(call: Any) -> Any:
    p = Problem(call.json)
    out = _outputs(p, call)
    _append(p, call)
    no_sinks = np.full(p.heads_q, -np.inf, F32)
    sinks = call.sinks if p.has_sinks else no_sinks
    with np.errstate(all="ignore"):  # infinities of masks
        for b in range(p.batch):
            q = _rows(p, call.q, b, False) * _descale(p, call, "q", b)
            k, v = (_keys(p, call, name, b) * _descale(p, call, name, b) for name in "kv")
            k, v = (np.repeat(x, p.group, axis=0) for x in (k, v))
            t, slope = _scores(p, call, q, k, b)
            prob, lse, share = _softmax(p, t, sinks)
            if not p.sinks_in_lse:
                lse = _softmax(p, t, no_sinks)[1]
            o = prob @ v
            _put(p, out, "o", o, b)
            if p.has_amax:
                out["amax_p"] = np.maximum(out["amax_p"], prob.max(initial=0))
                out["amax_o"] = np.maximum(out["amax_o"], np.abs(o).max(initial=0))
            _lse_of(p, out["lse"], b)[...] = lse
            if call.wants_gradients:
                dlse = None if call.dlse is None else _lse_of(p, call.dlse, b)
                grads: dict[str, Any] = {}
                _backward(p, grads, q, k, v, _rows(p, call.do, b, False), dlse, prob, share, slope)
                for name in ("dq", "dk", "dv"):
                    _put(p, out, name, grads[name], b)
                if p.has_bias_grad:
                    _put_bias(out["dbias"], grads["dbias"], b)
                if p.has_sinks_grad:
                    out["dsinks"] += grads["dsinks"]
    if p.quantized_o:
        out["o"] *= call.o_scale
    return result(**out)


KERNEL = Adapter(
    name="numpy_reference",
    what="attention in numpy's float32, with every score at once",
    library="numpy",
    modules=("numpy",),
    run=_run,
    families=("flash", "memeff", "flex", "kvcache"),
    features=(
        *("causal", "window", "top_left", "bottom_right", "varlen", "seqused_k", "leftpad_k", "gqa", "head_dim_v", "softcap", "alibi"),
        *("bias", "bias_grad", "dlse", "deterministic", "empty_lse"),
        *("append", "paged", "batch_idx", "splits", "cu_seqlens_cache", "bias_cache", "head_dim_v_cache", "top_left_cache"),
        *("chunk", "mask_bits", "bias_varlen", "flash_more", "sinks", "sinks_grad", "lse_without_sinks", "mla", "topk", "padded_lse"),
        *("quantized", "quantized_keys", "quantized_tokens", "quantized_e2m1", "quantized_amax", "quantized_o"),
    ),
    passes=("forward", "backward"),
    outputs=("o", "lse", "dq", "dk", "dv", "dbias", "dsinks", "amax_p", "amax_o"),
    lse={"base": "e", "scaled": True, "layout": "as_call", "dtype": "f32", "empty": "as_case", "alibi": "distance"},
    arithmetic={"name": "numpy-f32", "delta": "sum_p_dp", "p_kept": True, "k_descaled": "f32", "v_descaled": "f32"},
).kernel()
