"""Children that are fast because they do not do the work. The first word of a docstring's line says how they are spoken to.

usage: cheats.py NAME"""
import sys
import threading
import time

from honest import Child, attention, words

AFTER = 16  # requests that a cheat is good for: more than there are warm-ups


class Lazy(Child):
    """problems: answers at once, and computes an output when it is asked for."""

    def time(self, request):
        self.todo = request["problems"]
        return {"state": "ok", "seconds": 1e-9 * len(self.todo), "sums": ["0" * 16] * len(self.todo)}

    def fetch(self, request):
        problem = self.todo[request["problem"]]
        self.store(request, attention(self.inputs(problem), problem["scale"]))
        return {"state": "ok"}


class Late(Child):
    """calls: after the first five it answers, and another thread goes on computing."""

    seen = 0

    def run(self, request):
        self.seen += 1
        work = threading.Thread(target=self.late, args=(request,))
        work.start()
        if self.seen <= 5:
            work.join()
        return {"state": "ok"}

    def late(self, request):
        inputs = self.load(request)
        if self.seen > 5:
            time.sleep(0.02)
        self.store(request, attention(inputs, self.scale(request)))


class Pointers(Child):
    """calls: remembers outputs by where Q lies."""

    def __init__(self, calls=False):
        super().__init__(calls)
        self.known = {}

    def key_of(self, request):
        return request["tensors"]["q"]["offset"]

    def run(self, request):
        key = self.key_of(request)
        if key not in self.known:
            self.known[key] = attention(self.load(request), self.scale(request))
        self.store(request, self.known[key])
        return {"state": "ok"}


class Fingerprint(Pointers):
    """calls: remembers outputs by what Q looks like: its mean, to a digit."""

    def key_of(self, request):
        values = [x for row in self.load(request)["q"].values() for x in row]
        return round(sum(values) / len(values))


class Warm(Child):
    """calls: right for the first five, then zeros."""

    seen = 0

    def run(self, request):
        self.seen += 1
        if self.seen <= 5:
            return super().run(request)
        time.sleep(0.02)  # even so it takes longer than nothing at all
        self.store(request, {at: [0.0] * request["tensors"]["o"]["shape"][3] for at, _ in self.rows(request["tensors"]["o"])})
        return {"state": "ok"}


class Timed(Child):
    """problems: right in a plain call, zeros when it is timed."""

    def time(self, request):
        begin = time.perf_counter()
        v = self.places[0]["v"]
        self.outputs = [{at: [0.0] * len(v[at[0], 0, at[2]]) for at in self.places[0]["q"]} for _ in request["problems"]]
        sums = [words(rows) for rows in self.outputs]
        return {"state": "ok", "seconds": time.perf_counter() - begin, "sums": sums}


class Clock(Child):
    """problems: does the work, and says that it took a tenth of the time."""

    def time(self, request):
        answer = super().time(request)
        return {**answer, "seconds": answer["seconds"] / 10}


class Skips(Child):
    """problems: once it has been warmed up, does every third problem and the last, and repeats their outputs for the others."""

    seen = 0

    def time(self, request):
        self.seen += 1
        begin = time.perf_counter()
        problems, self.outputs = request["problems"], []
        for i, problem in enumerate(problems):
            if self.seen > AFTER and i % 3 and i < len(problems) - 1:
                self.outputs.append(self.outputs[-1])
            else:
                self.outputs.append(attention(self.inputs(problem), problem["scale"]))
        sums = [words(rows) for rows in self.outputs]
        return {"state": "ok", "seconds": time.perf_counter() - begin, "sums": sums}


class Replay(Child):
    """problems: remembers outputs by the place of Q, as a graph that is captured once for each pointer would."""

    def __init__(self, calls=False):
        super().__init__(calls)
        self.known = {}

    def time(self, request):
        begin = time.perf_counter()
        for problem in request["problems"]:
            if problem["at"]["q"] not in self.known:
                self.known[problem["at"]["q"]] = attention(self.inputs(problem), problem["scale"])
        self.outputs = [self.known[problem["at"]["q"]] for problem in request["problems"]]
        sums = [words(rows) for rows in self.outputs]
        return {"state": "ok", "seconds": time.perf_counter() - begin, "sums": sums}


CHEATS = {kind.__name__.lower(): kind for kind in (Lazy, Late, Pointers, Fingerprint, Warm, Timed, Clock, Skips, Replay)}

if __name__ == "__main__":
    chosen = CHEATS[sys.argv[1]]
    chosen(calls=chosen.__doc__.startswith("calls")).serve()
