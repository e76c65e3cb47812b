"""Modules in place of libraries whose kernels take 8 bits: they compute in float32 on a processor what the libraries document, and keep
what they were called with. Tensors that do not have the shape or the type that the library checks are refused."""

import types

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


class Cudnn:
    """cudnn: graphs of sdpa_fp8. Every tensor has the shape, the strides and the type that its node was given, numbers of float32 have four
    axes of 1; P is rounded to e4m3 after it is multiplied by scale_s, O after scale_o. 128 keys have an accumulator."""

    class cudnnGraphNotSupportedError(Exception):
        pass

    def __init__(self):
        self.calls = []
        self.data_type = types.SimpleNamespace(FP8_E4M3=torch.float8_e4m3fn, FLOAT=torch.float32)
        self.diagonal_alignment = types.SimpleNamespace(TOP_LEFT="top left", BOTTOM_RIGHT="bottom right")
        self.heur_mode = types.SimpleNamespace(A="a", FALLBACK="fallback")
        self.create_handle = lambda: "handle"
        self.set_stream = lambda handle, stream: None

    def pygraph(self, io_data_type, intermediate_data_type, compute_data_type, handle):
        assert intermediate_data_type == compute_data_type == torch.float32 and handle == "handle"
        return _Graph(self)


class _Node:
    def __init__(self, dim=None, stride=None, data_type=None):
        self.dim, self.stride, self.data_type, self.output = dim, stride, data_type, False

    def set_output(self, output):
        self.output = output
        return self

    def set_dim(self, dim):
        self.dim = dim
        return self

    def set_stride(self, stride):
        self.stride = stride
        return self

    def set_data_type(self, data_type):
        self.data_type = data_type
        return self

    def seen_in(self, x):
        """x as the node says it lies in memory."""
        assert x.element_size() == self.data_type.itemsize and len(self.dim) == len(self.stride) == 4
        return x.view(self.data_type).as_strided(self.dim, self.stride)


class _Graph:
    def __init__(self, module):
        self._module = module

    def tensor(self, name, dim, stride, data_type):
        return _Node(dim, stride, data_type)

    def sdpa_fp8(self, name, q, k, v, descale_q, descale_k, descale_v, descale_s, scale_s, scale_o, attn_scale, generate_stats,
                 diagonal_alignment="top left", right_bound=None, left_bound=None):  # fmt: skip
        assert generate_stats and isinstance(attn_scale, float) and diagonal_alignment == "top left"
        self._given = {"q": q, "k": k, "v": v, "descale_q": descale_q, "descale_k": descale_k, "descale_v": descale_v, "descale_s": descale_s, "scale_s": scale_s, "scale_o": scale_o}
        assert all(node.data_type == (torch.float8_e4m3fn if name in "qkv" else torch.float32) for name, node in self._given.items())
        self._scale, self._edges, self._out = attn_scale, (left_bound, right_bound), [_Node() for _ in range(4)]
        return self._out

    def build(self, modes):
        assert modes == ["a", "fallback"] and all(node.output for node in self._out)

    def get_workspace_size(self):
        return 0

    def execute(self, tensors, workspace, handle):
        x = {name: node.seen_in(tensors[node]) for name, node in self._given.items()}
        numbers = {name: float(x[name]) for name in self._given if name not in "qkv"}
        self._module.calls.append(numbers)
        o, lse, amax = self._attend(*(x[name].float() for name in "qkv"), numbers)
        for node, value in zip(self._out, (self._stored(o, numbers["scale_o"]), lse, amax.reshape(1, 1, 1, 1), o.abs().max().reshape(1, 1, 1, 1))):
            node.seen_in(tensors[node]).copy_(value)

    def _stored(self, o, scale):
        return (o * scale).clamp(-448, 448).to(torch.float8_e4m3fn)

    def _attend(self, q, k, v, numbers):
        k, v = (x.repeat_interleave(q.shape[1] // k.shape[1], 1) for x in (k, v))
        t = (q @ k.transpose(2, 3)) * self._scale * numbers["descale_q"] * numbers["descale_k"]
        left, right = self._edges
        distance = torch.arange(t.shape[3])[None, :] - torch.arange(t.shape[2])[:, None]
        hidden = (distance > right if right is not None else distance < -t.shape[2]) | (distance <= -(left or t.shape[2] + 1))
        t = t.masked_fill(hidden, float("-inf"))
        lse, e = torch.logsumexp(t, 3, keepdim=True), torch.exp(t - t.amax(3, keepdim=True))
        p = (e * numbers["scale_s"]).clamp(max=448).to(torch.float8_e4m3fn).float()
        return (p @ v) * numbers["descale_s"] * numbers["descale_v"] / e.sum(3, keepdim=True), lse, torch.exp(t - lse).max()


def on_a_processor(kernel, **changed):
    """An adapter of a kernel for a GPU, for a fake of its library."""
    import dataclasses

    return dataclasses.replace(kernel.adapter, device="cpu", missing=lambda: "", modules=(), **changed).kernel()


