"""Kernels in numpy for the tests: a right one, and wrong ones made of it."""

import numpy as np

import fa_verify


def scores(call):
    """Scaled and masked, float32 [B, H, Sq, Sk]."""
    q, k = call.q.astype(np.float32), np.repeat(call.k, call.group, axis=2).astype(np.float32)
    s = np.einsum("bqhd,bkhd->bhqk", q, k) * np.float32(call.scale)
    if call.causal:
        s[..., np.triu(np.ones(s.shape[-2:], bool), 1 + call.seqlen_k - call.seqlen_q)] = -np.inf
    return s


def softmax_v(call, s):
    """O and LSE of scores."""
    top = s.max(-1, keepdims=True, initial=-1e30)
    p = np.exp(s - top)
    total = p.sum(-1, keepdims=True)
    v = np.repeat(call.v, call.group, axis=2).astype(np.float32)
    with np.errstate(divide="ignore", invalid="ignore"):
        lse = np.where(total > 0, top + np.log(total), call.empty_lse)[..., 0]
        return np.einsum("bhqk,bkhd->bqhd", np.where(total > 0, p / total, 0), v), lse


def softmax_of(call):
    return softmax_v(call, scores(call))


def kernel_of(**options):
    return fa_verify.kernel(causal=True, gqa=True, arithmetic="recorded", **options)


@kernel_of(lse="natural")
def attention(call):
    return softmax_of(call)


@kernel_of()
def without_lse(call):
    return softmax_v(call, scores(call))[0]


@kernel_of(lse="natural")
def scaled(call):
    """1 % too large."""
    o, lse = attention(call)
    return 1.01 * o, lse


@kernel_of(lse="natural")
def without_last_key(call):
    s = scores(call)
    s[..., -1:] = -np.inf
    return softmax_v(call, s)


@kernel_of(lse="natural")
def lse_in_base_2(call):
    """It says natural, and is not."""
    o, lse = attention(call)
    return o, lse * np.float32(np.log2(np.e))


@kernel_of(lse="base2")
def honest_base_2(call):
    return lse_in_base_2(call)


@fa_verify.kernel(lse="natural", supports=lambda case: "not today")
def refusing(call):
    raise AssertionError("it was called")


@kernel_of(lse="natural", backward=True)
def with_gradients(call):
    """The backward as FlashAttention has it: from the stored O and LSE."""
    s = scores(call)
    o, lse = softmax_v(call, s)
    if not call.wants_gradients:
        return o, lse
    heads, scale = (2, call.group), np.float32(call.scale)
    k, v = (np.repeat(x, call.group, axis=2).astype(np.float32) for x in (call.k, call.v))
    q, do = call.q.astype(np.float32), call.do.astype(np.float32)
    stored = fa_verify.rounded(o, call.dtype)
    p = np.where(np.isfinite(lse)[..., None], np.exp(s - np.where(np.isfinite(lse), lse, 0)[..., None]), 0)
    delta = np.einsum("bqhd,bqhd->bhq", do, stored)[..., None]
    ds = p * (np.einsum("bqhd,bkhd->bhqk", do, v) - delta)
    dk, dv = np.einsum("bhqk,bqhd->bkhd", ds, q) * scale, np.einsum("bhqk,bqhd->bkhd", p, do)
    summed = [x.reshape(*x.shape[:2], -1, heads[1], x.shape[3]).sum(3) for x in (dk, dv)]
    return fa_verify.Result(o=o, lse=lse, dq=np.einsum("bhqk,bkhd->bqhd", ds, k) * scale, dk=summed[0], dv=summed[1])
