#!/usr/bin/env python3
"""A child of version 2 for `fa-verify --backend exec:'python3 tests/exec/child2.py'`: plain attention through shared memory,
forward and backward, in nothing but the standard library. What it must understand and answer: docs/reference/protocol.md.

usage: child2.py [--lse KEY=VALUE,...] [--outputs WORD,...] [--hello JSON] [--say JSON] [--fault KIND] [--listen PATH]
    --lse       conventions that it has and declares, of the keys of "lse"; KEY=VALUE! has it and declares the usual one
    --outputs   all that it writes, and declares
    --hello     keys that replace those of its hello
    --say       keys that are added to every answer to "run"
    --names     any: it refuses every case, and says which tensors have come
    --fault     what the tests want it to do wrong, with cases of 5 rows
    --listen    serves a Unix socket instead of stdin and stdout"""
import json
import math
import mmap
import os
import signal
import socket
import struct
import sys
import time

LETTER = {"f16": "e", "f32": "f", "f64": "d", "i32": "i"}


class Region:
    """The shared memory, mapped again when it has moved or grown."""

    def __init__(self):
        self.key, self.map = None, None

    def at(self, path, n_bytes):
        if self.key != (path, n_bytes):
            with open(path, "r+b") as f:
                self.map, self.key = mmap.mmap(f.fileno(), n_bytes), (path, n_bytes)
        return self.map


class Tensor:
    """Elements of any strides; bf16 is left to others."""

    def __init__(self, memory, entry):
        self.memory, self.shape, self.strides, self.offset = memory, entry["shape"], entry["strides"], entry["offset"]
        self.form = "<" + LETTER[entry["dtype"]]
        self.size = struct.calcsize(self.form)

    def place(self, index):
        return self.offset + self.size * sum(i * s for i, s in zip(index, self.strides))

    def __getitem__(self, index):
        return struct.unpack_from(self.form, self.memory, self.place(index))[0]

    def __setitem__(self, index, value):
        struct.pack_into(self.form, self.memory, self.place(index), value)

    def row(self, *index):
        return [self[(*index, c)] for c in range(self.shape[-1])]

    def set_row(self, index, values):
        for c, value in enumerate(values):
            self[(*index, c)] = value

    def stored(self, values):
        """The values after storing them in a tensor of this type."""
        return [struct.unpack(self.form, struct.pack(self.form, x))[0] for x in values]


def dot(x, y):
    return sum(a * b for a, b in zip(x, y))


class Conventions:
    """An LSE as `--lse` says. What is usual is declared too: who keeps silent is asked by a probe, which takes seconds."""

    def __init__(self, text):
        self.has = dict(pair.rstrip("!").split("=") for pair in text.split(",") if pair)
        self.declared = {"base": "e", "scaled": "true", "empty": "as_case", "alibi": "distance"}
        self.declared.update(pair.split("=") for pair in text.split(",") if pair and not pair.endswith("!"))
        self.declared["scaled"] = self.declared["scaled"] == "true"

    def value(self, lse, scale, slope, diagonal):
        if self.has.get("alibi") == "column":
            lse += slope * diagonal
        if self.has.get("scaled") == "false":
            lse /= scale
        return lse * (1 / math.log(2) if self.has.get("base") == "2" else 1)

    def index(self, packed, b, h, i, start):
        layout = self.has.get("layout", "as_call")
        if layout == "tokens_heads":
            return (start + i, h) if packed else (b, i, h)
        return (h, start + i) if packed and layout == "as_call" else (b, h, i)


def attention(case, t, conventions, backward):
    """Writes what the call has; the backward goes by O as it is stored. Packed calls have no batch axis."""
    q, k, v, slopes = t["q"], t["k"], t["v"], t.get("alibi_slopes")
    packed = "cu_seqlens_q" in t
    hq, d = q.shape[-2:]
    group, scale = hq // k.shape[-2], case.get("scale", 1 / math.sqrt(d))
    sums = {n: {} for n in ("dq", "dk", "dv") if n in t}
    for b in range(t["cu_seqlens_q"].shape[0] - 1 if packed else q.shape[0]):
        q0, k0, sq, sk = lengths(t, packed, b)
        for h in range(hq):
            slope = (slopes[(h,)] if len(slopes.shape) == 1 else slopes[(b, h)]) if slopes else 0
            for i in range(sq):
                at = lambda row, head: (row, head) if packed else (b, row, head)
                where, last = at(q0 + i, h), i + sk - sq
                keys = [at(k0 + j, h // group) for j in range(min(sk, max(0, last + 1)) if case.get("mask", {}).get("type") == "causal" else sk)]
                x = q.row(*where)
                s = [scale * dot(x, k.row(*key)) - slope * abs(last - j) for j, key in enumerate(keys)]
                top = max(s, default=0)
                lse = top + math.log(sum(math.exp(x - top) for x in s)) if s else math.inf
                p = [math.exp(x - lse) for x in s]
                o = t["o"].stored([dot(p, [v[(*key, c)] for key in keys]) for c in range(v.shape[-1])])
                t["o"].set_row(where, o)
                if "lse" in t:
                    t["lse"][conventions.index(packed, b, h, i, q0)] = conventions.value(lse, scale, slope, last) if s else lse
                if backward:
                    gradients(t, sums, where, keys, p, x, o, scale)
    for name, rows in sums.items():
        for flat in range(math.prod(t[name].shape[:-1])):
            where, rest = [], flat
            for n in reversed(t[name].shape[:-1]):
                where.insert(0, rest % n)
                rest //= n
            t[name].set_row(where, rows.get(tuple(where), [0.0] * t[name].shape[-1]))


def lengths(t, packed, b):
    """The first row and key of a sequence, and their numbers."""
    if not packed:
        return 0, 0, t["q"].shape[1], t["k"].shape[1]
    q0, k0 = t["cu_seqlens_q"][(b,)], t["cu_seqlens_k"][(b,)]
    return q0, k0, t["cu_seqlens_q"][(b + 1,)] - q0, t["cu_seqlens_k"][(b + 1,)] - k0


def gradients(t, sums, where, keys, p, x, o, scale):
    def add(name, at, values):
        if name in sums:
            sums[name][at] = [a + b for a, b in zip(sums[name].get(at, [0.0] * len(values)), values)]

    do = t["do"].row(*where)
    delta = dot(do, o)
    for w, key in zip(p, keys):
        ds = w * (dot(do, t["v"].row(*key)) - delta) * scale
        add("dq", where, [ds * y for y in t["k"].row(*key)])
        add("dk", key, [ds * y for y in x])
        add("dv", key, [w * y for y in do])


class Child:
    def __init__(self, options):
        self.options = options
        self.fault = options.get("fault", "")
        self.conventions = Conventions(options.get("lse", ""))
        self.region = Region()

    def hello(self):
        said = {"fa_exec": 2, "name": "plain python 2", "device": f"Python {sys.version.split()[0]}", "families": ["flash"],
                "dtypes": ["f16", "f32"], "features": ["causal", "bottom_right", "gqa", "varlen", "alibi"],
                "limits": {"head_dim": {"max": 64}}, "arithmetic": {"name": "simt-f32"}, "lse": self.conventions.declared,
                "empty_o": "0"}
        if "outputs" in self.options:
            said["outputs"] = self.options["outputs"].split(",")
        said.update(json.loads(self.options.get("hello", "{}")))
        return said

    def run(self, request):
        memory = self.region.at(request["memory"], request["bytes"])
        if "names" in self.options:
            return {"state": "rejected", "text": " ".join(f"{g}: {' '.join(sorted(request[g]))}" for g in ("tensors", "buffers", "dbuffers") if g in request)}
        t = {name: Tensor(memory, entry) for name, entry in request["tensors"].items()}
        fault = self.fault if request["case"].get("seqlen_q") == 5 else ""  # the others show that it continues
        if fault == "refuse":
            return {"state": "rejected", "text": "not today"}
        if fault == "late":
            return {"state": "unsupported", "text": "no rows of 5"}
        if fault.startswith("late_"):  # it has done harm before
            spoil(fault[len("late_") :], t, memory)
            return {"state": "unsupported", "text": "no rows of 5"}
        if fault == "device":
            return {"state": "oob", "text": "o: 8 bytes past its end"}
        if fault != "lazy":
            attention(request["case"], t, self.conventions, "backward" in request["passes"])
        if fault in ("crash", "hang", "garbage"):
            misbehave(fault)
        elif fault:
            spoil(fault, t, memory)
        return {"state": "stateless" if fault == "stateless" else "ok", "kernel": "plain_python", **json.loads(self.options.get("say", "{}"))}

    def answer(self, request):
        said = self.hello() if request["type"] == "hello" else self.run(request)
        return {**said, "id": request["id"]}


def misbehave(fault):
    if fault == "crash":
        os.kill(os.getpid(), signal.SIGSEGV)
    elif fault == "hang":
        time.sleep(3600)
    print("computing row 1")


def spoil(fault, t, memory):
    """Writes where it must not, or wrong things."""
    o, q = t["o"], t["q"]
    last = [n - 1 for n in o.shape]
    if fault == "wrong":
        o[last] += 1
    elif fault == "unwritten":
        struct.pack_into("<H" if o.size == 2 else "<I", memory, o.place([0] * len(last)), 0x7FFA if o.size == 2 else 0x7FFA7FFA)
    elif fault == "input":
        q[[0] * len(last)] = 7
    elif fault == "guard":
        memory[o.place(last) + o.size] ^= 1
    elif fault == "far":
        memory[o.place([0] * len(last)) - 65536] ^= 1
    elif fault == "gap":
        o[[0, 0, 0, o.shape[-1]]] = 0  # the case has a gap there
    elif fault == "lse_guard":
        lse = t["lse"]
        memory[lse.place([n - 1 for n in lse.shape]) + lse.size] ^= 1


def serve(child, lines, send):
    for line in lines:
        send(json.dumps(child.answer(json.loads(line))) + "\n")


def listen(options):
    """One thread for each connection would do for several workers; the tests have one at a time."""
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(options["listen"])
        server.listen()
        while True:
            connection, _ = server.accept()
            with connection, connection.makefile("r") as lines:
                serve(Child(options), lines, lambda text: connection.sendall(text.encode()))


def main(arguments):
    options = dict(zip((a.removeprefix("--") for a in arguments[::2]), arguments[1::2]))
    if "listen" in options:
        listen(options)
    serve(Child(options), sys.stdin, lambda text: print(text, end="", flush=True))


if __name__ == "__main__":
    main(sys.argv[1:])
