"""An honest child that can be timed, in nothing but the standard library: forward attention of f32 without a mask, one call a
request or many problems in one (docs/reference/protocol.md). What it must answer to "stage", "time" and "fetch" is all here.

usage: honest.py [--calls]     --calls: it does not say that it knows these three"""
import json
import math
import mmap
import struct
import sys
import time

MASK = (1 << 64) - 1


def dot(x, y):
    return sum(a * b for a, b in zip(x, y))


def attention(inputs, scale):
    """Rows of O by (b, s, h); inputs: rows of q, k and v likewise."""
    q, k, v = inputs["q"], inputs["k"], inputs["v"]
    keys = 1 + max(s for _, s, _ in k)
    out = {}
    for (b, s, h), row in q.items():
        scores = [scale * dot(row, k[b, j, h]) for j in range(keys)]
        top = max(scores)
        p = [math.exp(x - top) for x in scores]
        total = sum(p)
        out[b, s, h] = [dot(p, [v[b, j, h][c] for j in range(keys)]) / total for c in range(len(v[b, 0, h]))]
    return out


def words(rows):
    """The sum of the 32-bit words that the rows are stored in, as 16 hexadecimal digits."""
    total = 0
    for row in rows.values():
        total += sum(struct.unpack(f"<{len(row)}i", struct.pack(f"<{len(row)}f", *row)))
    return f"{total & MASK:016x}"


class Child:
    """Answers requests. What a cheat does otherwise it overrides."""

    def __init__(self, calls=False):
        self.calls = calls
        self.key, self.map = None, None
        self.places, self.outputs = {}, []

    # ---- tensors ----

    def region(self, request):
        key = (request["memory"], request["bytes"])
        if self.key != key:
            with open(key[0], "r+b") as f:
                self.map, self.key = mmap.mmap(f.fileno(), key[1]), key
        return self.map

    def rows(self, entry):
        """(index without the last axis, byte where its row begins)"""
        batch, seqlen, heads, _ = entry["shape"]
        strides = entry["strides"]
        for b in range(batch):
            for s in range(seqlen):
                for h in range(heads):
                    yield (b, s, h), entry["offset"] + 4 * (b * strides[0] + s * strides[1] + h * strides[2])

    def load(self, request):
        memory = self.region(request)
        return {name: {at: list(struct.unpack_from(f"<{entry['shape'][3]}f", memory, byte)) for at, byte in self.rows(entry)}
                for name, entry in request["tensors"].items() if name in ("q", "k", "v")}

    def store(self, request, rows):
        memory, entry = self.region(request), request["tensors"]["o"]
        for at, byte in self.rows(entry):
            struct.pack_into(f"<{entry['shape'][3]}f", memory, byte, *rows[at])

    # ---- requests ----

    def hello(self, request):
        said = {"fa_exec": 2, "name": type(self).__name__.lower(), "families": ["flash"], "dtypes": ["f32"], "features": [],
                "passes": ["forward"], "outputs": ["o"], "arithmetic": {"name": "simt-f32"}, "empty_o": "0"}
        if not self.calls and "time" in request.get("takes", ()):
            said["time"] = True
        return said

    def scale(self, request):
        return request["case"].get("scale", 1 / math.sqrt(request["tensors"]["q"]["shape"][3]))

    def run(self, request):
        self.store(request, attention(self.load(request), self.scale(request)))
        return {"state": "ok"}

    def stage(self, request):
        self.places[request["place"]] = self.load(request)
        return {"state": "ok"}

    def inputs(self, problem):
        return {name: self.places[place][name] for name, place in problem["at"].items()}

    def time(self, request):
        begin = time.perf_counter()
        self.outputs = [attention(self.inputs(problem), problem["scale"]) for problem in request["problems"]]
        seconds = time.perf_counter() - begin
        return {"state": "ok", "seconds": seconds, "sums": [words(rows) for rows in self.outputs]}

    def fetch(self, request):
        self.store(request, self.outputs[request["problem"]])
        return {"state": "ok"}

    def answer(self, request):
        kinds = {"hello": self.hello, "run": self.run, "stage": self.stage, "time": self.time, "fetch": self.fetch}
        return {**kinds[request["type"]](request), "id": request["id"]}

    def serve(self):
        for line in sys.stdin:
            print(json.dumps(self.answer(json.loads(line))), flush=True)


if __name__ == "__main__":
    Child(calls="--calls" in sys.argv).serve()
