#!/usr/bin/env python3
"""A child for `fa-verify --backend exec:'python3 tests/exec/child.py'`: plain attention, forward and backward, f16 and f32,
in nothing but the standard library. What it must understand and answer: docs/reference/protocol.md.

usage: child.py [--fault KIND] [--ask]      KIND: what the tests want it to do wrong, mostly with cases of 5
rows; --ask: it wants to be asked about every case"""
import json
import math
import os
import signal
import struct
import sys
import time

LETTER = {"F16": "e", "F32": "f", "I32": "i"}


def load(path):
    """{name: (dtype, shape, flat list)} of a safetensors file."""
    with open(path, "rb") as f:
        data = f.read()
    (length,) = struct.unpack_from("<Q", data)
    header = json.loads(data[8:8 + length])
    header.pop("__metadata__", None)
    found = {}
    for name, x in header.items():
        begin, end = (8 + length + o for o in x["data_offsets"])
        letter = LETTER[x["dtype"]]
        found[name] = (x["dtype"], x["shape"], list(struct.unpack(f"<{(end - begin) // struct.calcsize(letter)}{letter}", data[begin:end])))
    return found


def save(path, tensors):
    """4-byte types first, because each tensor must be aligned to its element size."""
    header, body = {}, b""
    for name, (dtype, shape, values) in sorted(tensors.items(), key=lambda item: item[1][0] == "F16"):
        raw = struct.pack(f"<{len(values)}{LETTER[dtype]}", *values)
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(body), len(body) + len(raw)]}
        body += raw
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + body)


def dot(x, at, y, to, n):
    return sum(a * b for a, b in zip(x[at:at + n], y[to:to + n]))


def stored(dtype, values):
    """The values after storing them in a tensor of that type."""
    form = f"<{len(values)}{LETTER[dtype]}"
    return list(struct.unpack(form, struct.pack(form, *values)))


def append(case, t):
    """The caches after the call: new keys and values go to the slots after the valid ones. Returns the number of keys
    of each sequence."""
    lengths = t["cache_seqlens"][2]
    if "k_new" not in t:
        return lengths
    (_, n_new, heads, d), capacity = t["k_new"][1], t["k"][1][1]
    for cache, new in (("k", "k_new"), ("v", "v_new")):
        for b, length in enumerate(lengths):
            to, size = (b * capacity + length) * heads * d, n_new * heads * d
            t[cache][2][to:to + size] = t[new][2][b * size:(b + 1) * size]
    return [length + n_new for length in lengths]


def attention(case, t, backward):
    """{name: flat list} of all outputs. The backward goes by O and LSE as they are stored."""
    (b_n, sq, hq, d), (_, capacity, hk, _) = t["q"][1], t["k"][1]
    lengths = append(case, t) if case["family"] == "kvcache" else [capacity] * b_n
    q, k, v = t["q"][2], t["k"][2], t["v"][2]
    scale = case.get("scale", 1 / math.sqrt(d))
    causal = case.get("mask", {}).get("type") == "causal"
    out = {"o": [0.0] * len(q), "lse": [0.0] * (b_n * hq * sq), "k_after": k, "v_after": v}
    if backward:
        out.update(dq=[0.0] * len(q), dk=[0.0] * len(k), dv=[0.0] * len(k))
    for b, sk in enumerate(lengths):
        for h in range(hq):
            for i in range(sq):
                row = ((b * sq + i) * hq + h) * d
                keys = [((b * capacity + j) * hk + h // (hq // hk)) * d for j in range(min(sk, max(0, i + sk - sq + 1)) if causal else sk)]
                s = [scale * dot(q, row, k, key, d) for key in keys]
                at = (b * hq + h) * sq + i
                if not s:
                    out["lse"][at] = math.inf
                    continue
                top = max(s)
                (lse,) = stored("F32", [top + math.log(sum(math.exp(x - top) for x in s))])
                p = [math.exp(x - lse) for x in s]
                o = stored(t["q"][0], [sum(w * v[key + c] for w, key in zip(p, keys)) for c in range(d)])
                out["lse"][at], out["o"][row:row + d] = lse, o
                if not backward:
                    continue
                do = t["do"][2][row:row + d]
                delta = dot(do, 0, o, 0, d)
                for w, key in zip(p, keys):
                    ds = w * (dot(do, 0, v, key, d) - delta) * scale
                    for c in range(d):
                        out["dq"][row + c] += ds * k[key + c]
                        out["dk"][key + c] += ds * q[row + c]
                        out["dv"][key + c] += w * do[c]
    return out


def run(request, fault):
    case, tensors, blank = request["case"], load(request["inputs"]), load(request["outputs"])
    out = attention(case, tensors, "backward" in request["passes"])
    answer = {name: (dtype, shape, out[name]) for name, (dtype, shape, _) in blank.items()}
    spoil(fault, answer, blank)
    save(request["outputs"], answer)
    return {"state": "ok", "kernel": "plain_python"}


def spoil(fault, answer, blank):
    """Faults that happen during a case."""
    dtype, shape, values = answer["o"]
    if fault == "wrong":
        values[-1] += 1
    elif fault == "cache":
        answer["k_after"][2][-1] = 1.0
    elif fault == "unwritten":
        values[3] = blank["o"][2][3]
    elif fault == "missing":
        del answer["lse"]
    elif fault == "shape":
        answer["o"] = (dtype, [shape[0], shape[2], shape[1], shape[3]], values)
    elif fault == "dtype":
        answer["lse"] = ("F16", answer["lse"][1], answer["lse"][2])
    elif fault == "crash":
        os.kill(os.getpid(), signal.SIGSEGV)
    elif fault == "exit":
        sys.exit(3)
    elif fault == "hang":
        with open(os.environ["CHILD_PID_FILE"], "w") as f:
            f.write(f"{os.getpid()}\n")
        time.sleep(3600)
    elif fault == "garbage":
        print("computing row 1")
    elif fault == "endless":
        print("x" * 2000000, end="")
        time.sleep(3600)


def answer(request, fault, ask):
    kind = request["type"]
    if kind == "hello":
        if fault == "unusable":
            return {"fa_exec": 1, "why_not": "there is no device"}
        return {"fa_exec": 7 if fault == "version" else 1, "name": "plain python", "device": f"Python {sys.version.split()[0]}", "supports": ask,
                "families": ["flash", "kvcache"], "dtypes": ["f16", "f32"],
                "features": ["causal", "append", "colour" if fault == "feature" else "gqa"],
                "arithmetic": {"name": "simt-f32", "block_n": 32}}
    fault = fault if request["case"].get("seqlen_q", 1) == 5 else ""  # the others show that it continues
    if kind == "supports":
        if fault == "supports":
            sys.exit(4)
        small = request["case"].get("seqlen_q", 1) <= 32
        return {"passes": ["forward", "backward"] if small else [], "reason": "" if small else "more than 32 rows take too long"}
    if fault == "refuse":
        return {"state": "rejected", "text": "not today"}
    if fault == "error":
        return {"state": "error", "text": "the device is gone"}
    if fault == "stateless":
        return {}
    if fault == "file":
        with open(request["outputs"], "wb") as f:
            f.write(b"nothing")
        return {"state": "ok"}
    return run(request, fault)


def main(arguments):
    fault = arguments[arguments.index("--fault") + 1] if "--fault" in arguments else ""
    if fault == "early":
        sys.exit("it does not even start")
    for line in sys.stdin:
        request = json.loads(line)
        print(json.dumps({**answer(request, fault, "--ask" in arguments), "id": 0 if fault == "id" else request["id"]}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
