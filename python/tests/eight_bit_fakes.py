"""Modules in place of libraries whose kernels take 8 bits: they compute in float32 on a processor what the libraries document, and keep
what they were called with. Tensors that do not have the shape or the type that the library checks are refused."""

import pytest

torch = pytest.importorskip("torch")


def attend(q, k, v, scale, causal=False, softcap=0.0, descales=(1.0, 1.0, 1.0)):
    """One sequence, [S, H, D]; descales: numbers, or one for each KV head. O in float32 and LSE [H, Sq]."""
    group = q.shape[1] // k.shape[1]
    descales = [torch.as_tensor(x, dtype=torch.float32).expand(k.shape[1]).repeat_interleave(group) for x in descales]
    q, k, v = q.float().transpose(0, 1), *(x.float().transpose(0, 1).repeat_interleave(group, 0) for x in (k, v))
    t = (q @ k.transpose(1, 2)) * (scale * descales[0] * descales[1])[:, None, None]
    t = softcap * torch.tanh(t / softcap) if softcap else t
    if causal:
        shown = torch.ones(t.shape[1:], dtype=torch.bool).tril(t.shape[2] - t.shape[1])
        t = t.masked_fill(~shown, float("-inf"))
    p = torch.nan_to_num(torch.softmax(t, 2))
    return ((p @ v) * descales[2][:, None, None]).transpose(0, 1), torch.logsumexp(t, 2)


def in_parts(q, k, v, scale, softcap):
    """The same in splits of 128 keys, whose O is rounded to the queries' type."""
    parts = [attend(q, k[i : i + 128], v[i : i + 128], scale, False, softcap) for i in range(0, k.shape[0], 128)]
    lse = torch.logsumexp(torch.stack([lse for _, lse in parts]), 0)
    return sum(o.to(q.dtype).float() * torch.exp(x - lse).T[..., None] for o, x in parts), lse


class Fa3:
    """fa3_fwd_interface: e4m3 alone, descales [B, Hk] of float32, or none."""

    def __init__(self):
        self.calls = []

    def _descales(self, batch, heads, q, given):
        self.calls.append(given)
        assert q.dtype in (torch.bfloat16, torch.float8_e4m3fn) and (given == {}) == (q.dtype == torch.bfloat16)
        names = [f"{name}_descale" for name in "qkv"]
        assert not given or [x for x in given] == names and all(given[x].shape == (batch, heads) and given[x].dtype == torch.float32 for x in names)
        return [[given[name][b] if given else 1.0 for name in names] for b in range(batch)]

    def flash_attn_func(self, q, k, v, softmax_scale, causal, softcap, return_attn_probs, **given):
        descales = self._descales(q.shape[0], k.shape[2], q, given)
        found = [attend(q[b], k[b], v[b], softmax_scale, causal, softcap, descales[b]) for b in range(q.shape[0])]
        return torch.stack([o for o, _ in found]).bfloat16(), torch.stack([lse for _, lse in found])

    def flash_attn_varlen_func(self, q, k, v, ends_q, ends_k, longest_q, longest_k, seqused_k, softmax_scale, causal, softcap, return_attn_probs, **given):
        descales, o, lse = self._descales(len(ends_q) - 1, k.shape[1], q, given), torch.zeros(q.shape), torch.zeros(q.shape[1], q.shape[0])
        for b, descale in enumerate(descales):
            rows, first = slice(ends_q[b], ends_q[b + 1]), int(ends_k[b])
            last = int(ends_k[b + 1]) if seqused_k is None else first + int(seqused_k[b])
            o[rows], lse[:, rows] = attend(q[rows], k[first:last], v[first:last], softmax_scale, causal, softcap, descale)
        return o.bfloat16(), lse

    def flash_attn_with_kvcache(self, q, k, v, k_new, v_new, cache_seqlens, cache_batch_idx, softmax_scale, causal, softcap, num_splits, cache_leftpad, rotary_cos,
                                rotary_sin, rotary_interleaved, return_softmax_lse, **given):  # fmt: skip
        descales, found = self._descales(q.shape[0], k.shape[2], q, given), []
        for b, descale in enumerate(descales):
            row, n = b if cache_batch_idx is None else int(cache_batch_idx[b]), int(cache_seqlens[b])
            if k_new is not None:
                k[row, n : n + k_new.shape[1]], v[row, n : n + k_new.shape[1]] = k_new[b], v_new[b]
                n += k_new.shape[1]
            found.append(attend(q[b], k[row, :n], v[row, :n], softmax_scale, causal, softcap, descale))
        return torch.stack([o for o, _ in found]).bfloat16(), torch.stack([lse for _, lse in found])


class FlashInfer:
    """flashinfer: its two wrappers over pages. run() takes numbers that scale all keys and all values; O is rounded before that of V,
    and what splits of 128 keys leave of it is rounded before they are combined, as an H200 had it."""

    def __init__(self):
        self.calls = []
        self.BatchDecodeWithPagedKVCacheWrapper = lambda workspace, layout: _Wrapper(self, True)
        self.BatchPrefillWithPagedKVCacheWrapper = lambda workspace, layout, backend: _Wrapper(self, False)


class _Wrapper:
    def __init__(self, module, decodes):
        self._module, self._decodes = module, decodes

    def plan(self, *given, q_data_type, kv_data_type, sm_scale, window_left, logits_soft_cap, causal=False):
        given = [torch.arange(len(given[0])), *given] if self._decodes else given
        self._rows, self._ends, self._pages, self._last = given[:4]
        self._types, self._scale, self._cap, self._causal, self._size = (q_data_type, kv_data_type), sm_scale, logits_soft_cap or 0.0, causal, given[7]
        assert window_left < 0

    def run(self, q, caches, return_lse, k_scale=None, v_scale=None):
        assert all(x is None or isinstance(x, float) for x in (k_scale, v_scale)) and self._types == (q.dtype, caches[0].dtype)
        self._module.calls.append((k_scale, v_scale, caches[0].dtype))
        found = []
        for b in range(len(self._ends) - 1):
            pages = self._pages[int(self._ends[b]) : int(self._ends[b + 1])].long()
            n = (len(pages) - 1) * self._size + int(self._last[b])
            k, v = (x.view(torch.uint8)[pages].view(x.dtype).flatten(0, 1)[:n] for x in caches) if caches[0].element_size() == 1 else (x[pages].flatten(0, 1)[:n] for x in caches)
            rows, scale = q[int(self._rows[b]) : int(self._rows[b + 1])], self._scale * (k_scale or 1.0)
            found.append(in_parts(rows, k, v, scale, self._cap) if self._decodes else attend(rows, k, v, scale, self._causal, self._cap))
        o = torch.cat([o for o, _ in found]).to(q.dtype)
        return o if v_scale is None else (o.float() * v_scale).to(q.dtype), torch.cat([lse for _, lse in found], 1).T / torch.log(torch.tensor(2.0))


def on_a_processor(kernel, **changed):
    """An adapter of a kernel for a GPU, for a fake of its library."""
    import dataclasses

    return dataclasses.replace(kernel.adapter, device="cpu", missing=lambda: "", modules=(), **changed).kernel()


