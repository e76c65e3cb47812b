#!/usr/bin/env python3
"""Copies chosen groups of recorded-run files (safetensors) into one small file.

usage: subset.py OUT.safetensors IN.safetensors... -- GROUP[:HEADS]...

GROUP:HEADS keeps only the first HEADS query heads and their KV heads (never with dropout, whose random
numbers depend on the head count). Needs nothing but Python's standard library.
"""
import json
import struct
import sys

HEAD_AXIS = {"lse": -2, "p_debug": 1}  # q, k, v, o and gradients: the last but one
KV = ("k", "v", "dk", "dv")
NO_HEADS = ("cu_seqlens_q", "cu_seqlens_k", "seqused_k", "leftpad_k")
BYTES = {"F16": 2, "BF16": 2, "F32": 4, "I32": 4, "U8": 1}


def read(path):
    """-> ({tensor name: (dtype, shape, bytes)}, {group: case JSON})"""
    data = open(path, "rb").read()
    (n,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + n])
    meta = header.pop("__metadata__", {})
    body = data[8 + n :]
    tensors = {k: (v["dtype"], v["shape"], body[v["data_offsets"][0] : v["data_offsets"][1]]) for k, v in header.items()}
    return tensors, meta


def first_heads(tensor, axis, n):
    dtype, shape, data = tensor
    axis %= len(shape)
    inner = BYTES[dtype]
    for s in shape[axis + 1 :]:
        inner *= s
    block = inner * shape[axis]
    kept = b"".join(data[i : i + inner * n] for i in range(0, len(data), block))
    return dtype, shape[:axis] + [n] + shape[axis + 1 :], kept


def take(tensors, case, group, heads):
    mine = {k: v for k, v in tensors.items() if k.startswith(group + "/")}
    if heads is None:
        return mine, case
    assert "dropout" not in case and "bias" not in case, group
    ratio = case["heads_q"] // case["heads_kv"]
    assert heads % ratio == 0, (group, heads, ratio)
    for key, tensor in mine.items():
        name = key.split("/")[1]
        if name not in NO_HEADS:
            mine[key] = first_heads(tensor, HEAD_AXIS.get(name, -2), heads // ratio if name in KV else heads)
    return mine, dict(case, heads_q=heads, heads_kv=heads // ratio)


def write(path, tensors, meta):
    header, at = {"__metadata__": meta}, 0
    order = sorted(tensors, key=lambda k: (-BYTES[tensors[k][0]], k))  # wide types first: every tensor stays aligned
    for k in order:
        dtype, shape, data = tensors[k]
        header[k] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + len(data)]}
        at += len(data)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + b"".join(tensors[k][2] for k in order))


def main(arguments):
    cut = arguments.index("--")
    out, sources, groups = arguments[0], arguments[1:cut], arguments[cut + 1 :]
    tensors, meta, kept, kept_meta = {}, {}, {}, {}
    for path in sources:
        t, m = read(path)
        tensors.update(t)
        meta.update(m)
    for spec in groups:
        group, _, heads = spec.partition(":")
        mine, case = take(tensors, json.loads(meta[group]), group, int(heads) if heads else None)
        kept.update(mine)
        kept_meta[group] = json.dumps(case)
    write(out, kept, kept_meta)


if __name__ == "__main__":
    if "--" not in sys.argv or len(sys.argv) < 5:
        sys.exit(__doc__)
    main(sys.argv[1:])
