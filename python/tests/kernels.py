"""Kernels in numpy for the tests: a right one, and wrong ones made of it."""

import numpy as np

import fa_verify


@fa_verify.kernel(causal=True, gqa=True, lse="natural", arithmetic="recorded")
def attention(call):
    q, k, v = (x.astype(np.float32) for x in (call.q, call.k, call.v))
    k, v = (np.repeat(x, call.group, axis=2) for x in (k, v))
    s = np.einsum("bqhd,bkhd->bhqk", q, k) * np.float32(call.scale)
    if call.causal:
        s[..., np.triu(np.ones(s.shape[-2:], bool), 1 + call.seqlen_k - call.seqlen_q)] = -np.inf
    top = s.max(-1, keepdims=True, initial=-1e30)
    p = np.exp(s - top)
    total = p.sum(-1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        lse = np.where(total > 0, top + np.log(total), call.empty_lse)[..., 0]
        return np.einsum("bhqk,bkhd->bqhd", np.where(total > 0, p / total, 0), v), lse


@fa_verify.kernel(causal=True, gqa=True, lse="natural", arithmetic="recorded")
def scaled(call):
    """1 % too large."""
    o, lse = attention(call)
    return 1.01 * o, lse


@fa_verify.kernel(causal=True, gqa=True, lse="natural", arithmetic="recorded")
def without_last_key(call):
    """The last key of the sequence is dropped."""
    if call.seqlen_k > 1:
        call.k[:, -1] = -np.float32(np.inf) * np.sign(call.q[:, -1:, :1]).astype(np.float32)[:, 0]
    return attention(call)


@fa_verify.kernel(causal=True, gqa=True, lse="natural", arithmetic="recorded")
def lse_in_base_2(call):
    """It says natural, and is not."""
    o, lse = attention(call)
    return o, lse * np.float32(np.log2(np.e))


@fa_verify.kernel(lse="natural", supports=lambda case: "not today")
def refusing(call):
    """It does nothing."""
    raise AssertionError("it was called")
