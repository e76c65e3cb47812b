#!/usr/bin/env python3
"""PyTorch's FlashAttention, the kernel under scaled_dot_product_attention, as a child for `fa-verify --backend exec:...`:

    fa-verify run --jobs 2 --backend 'exec:python3 tests/exec/torch_sdpa.py' --cases cases/causal.json cases/gqa.json

Needs a CUDA PyTorch. The protocol: docs/reference/protocol.md."""
import ctypes
import json
import math
import os
import struct
import sys

ANSWERS = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)  # output of a library must not mix with the answers

try:
    import torch
    WHY_NOT = None if torch.cuda.is_available() else "PyTorch sees no CUDA device"
    TYPES = {"F16": torch.float16, "BF16": torch.bfloat16, "F32": torch.float32, "I32": torch.int32, "U8": torch.uint8}
except ImportError as e:
    WHY_NOT = str(e)

FEATURES = ["causal", "window", "varlen", "seqused_k", "gqa", "deterministic"]  # its kernels are built without ALiBi


def load(path):
    with open(path, "rb") as f:
        data = bytearray(f.read())
    (length,) = struct.unpack_from("<Q", data)
    header = json.loads(data[8:8 + length])
    header.pop("__metadata__", None)
    found = {}
    for name, x in header.items():
        begin, end = (8 + length + o for o in x["data_offsets"])
        kind = TYPES[x["dtype"]]
        flat = torch.frombuffer(data, dtype=kind, count=(end - begin) // kind.itemsize, offset=begin) if end > begin else torch.empty(0, dtype=kind)
        found[name] = flat.reshape(x["shape"])
    return found


def save(path, tensors):
    names = {kind: name for name, kind in TYPES.items()}
    header, parts, at = {}, [], 0
    for name, x in sorted(tensors.items(), key=lambda item: -item[1].element_size()):
        host = x.detach().cpu().contiguous()
        raw = ctypes.string_at(host.data_ptr(), host.numel() * host.element_size()) if host.numel() else b""
        header[name] = {"dtype": names[x.dtype], "shape": list(x.shape), "data_offsets": [at, at + len(raw)]}
        parts.append(raw)
        at += len(raw)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + b"".join(parts))


def padded(x, to):
    return torch.nn.functional.pad(x, (0, to - x.shape[-1])) if x.shape[-1] < to else x


def why_not(case, backward):
    """Why it cannot do the pass; an empty string if it can."""
    if case.get("head_dim", 64) > 256:
        return "no head dims above 256"
    if not backward and 0 in (case.get("seqlen_q", 1), case.get("seqlen_k", case.get("seqlen_q", 1))) and "cu_seqlens_q" not in case:
        return "PyTorch returns before the kernel when there are no rows or keys"
    if "seqused_k" in case and "cu_seqlens_q" not in case:
        return "seqused_k goes with variable length only"
    if backward and "seqused_k" in case:
        return "its backward has no seqused_k"
    if backward and case.get("deterministic"):
        return "deterministic is a global setting there"
    return ""


def supports(case):
    if why_not(case, False):
        return {"passes": [], "reason": why_not(case, False)}
    if why_not(case, True):
        return {"passes": ["forward"], "reason": why_not(case, True)}
    return {"passes": ["forward", "backward"]}


def window_of(case):
    mask = case.get("mask", {"type": "none"})
    return (mask.get("left", -1), mask.get("right", -1)) if mask["type"] == "window" else (None, None)


def run(request):
    case, out = request["case"], {}
    t = {name: x.cuda() for name, x in load(request["inputs"]).items()}
    d = t["q"].shape[-1]
    wide = (d + 7) // 8 * 8
    q, k, v = (padded(t[name], wide) for name in "qkv")
    packed = "cu_seqlens_q" in t
    cu_q, cu_k = t.get("cu_seqlens_q"), t.get("cu_seqlens_k")
    longest_q = int(cu_q.diff().max()) if packed else q.shape[1]
    longest_k = int(cu_k.diff().max()) if packed else k.shape[1]
    left, right = window_of(case)
    causal = case.get("mask", {}).get("type") == "causal"
    common = {"scale": case.get("scale", 1 / math.sqrt(d)), "window_size_left": left, "window_size_right": right}
    o, lse, rng, unused, _ = torch.ops.aten._flash_attention_forward(
        q, k, v, cu_q, cu_k, longest_q, longest_k, 0.0, causal, False, seqused_k=t.get("seqused_k"), **common)
    out["o"] = o[..., :d]
    out["lse"] = lse
    if "backward" in request["passes"]:
        grads = torch.ops.aten._flash_attention_backward(
            padded(t["do"], wide), q, k, v, o, lse, cu_q, cu_k, longest_q, longest_k, 0.0, causal, rng, unused, **common)
        out.update({name: x[..., :d] for name, x in zip(("dq", "dk", "dv"), grads)})
    torch.cuda.synchronize()
    save(request["outputs"], out)
    return {"state": "ok", "kernel": "aten::_flash_attention_forward"}


def answer(request):
    if request["type"] == "hello":
        if WHY_NOT:
            return {"fa_exec": 1, "why_not": WHY_NOT}
        return {"fa_exec": 1, "name": f"PyTorch {torch.__version__} flash attention", "device": torch.cuda.get_device_name(), "supports": True,
                "driver": f"CUDA {torch.version.cuda}", "families": ["flash"], "dtypes": ["f16", "bf16"], "features": FEATURES,
                "arithmetic": {"dq_atomic": True, "gqa_partials_rounded": True}}
    if request["type"] == "supports":
        return supports(request["case"])
    try:
        return run(request)
    except torch.cuda.OutOfMemoryError as e:
        return {"state": "error", "text": str(e)[:300]}
    except (RuntimeError, NotImplementedError) as e:
        text = str(e).split("\n")[0][:300]
        if "CUDA error" in text:  # the context is gone: only another process can continue
            print(text, file=sys.stderr)
            os._exit(9)
        return {"state": "rejected", "text": text}


for line in sys.stdin:
    asked = json.loads(line)
    print(json.dumps({**answer(asked), "id": asked["id"]}), file=ANSWERS, flush=True)
