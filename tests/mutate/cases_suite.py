"""The named cases as what kills mutants: all of them once on the program as it is, to see which mutants each reaches;
then for a mutant the cheapest of those that reach it, until one does not pass."""
import server

FILES = [f"cases/{name}.json" for name in ("causal", "window", "edge", "gqa", "varlen", "dropout", "alibi", "softcap", "headdim",
                                           "offset", "memeff", "kvcache", "hopper", "flex", "mixed", "crossattn")]
BACKENDS = ["host", "host:hopper", "host:shared=99", "host:processors=132"]
LONGEST = 60.0
JUDGED = 25


class Try:
    """One case on one backend."""

    def __init__(self, server_, number, answer):
        self.server, self.number, self.seconds, self.reached = server_, number, answer.seconds, answer.reached
        self.name, self.kernels = server_.names[number], answer.kernels

    def kills(self, mutant, judged=False):
        """None, or (state, reason). judged: even if one run leaves the same in memory as the program does."""
        said = self.server.ask(-mutant.number if judged else mutant.number, self.number, 10.0 + 40 * self.seconds)
        return None if said.state in ("PASS", "SAME") else (said.state, said.reason)

    def label(self):
        return f"{self.name} ({self.server.backend})"


class Suite:
    """files, backends: which cases, and where. dearest: cases that take longer, in seconds, are left out."""

    def __init__(self, program, files=None, backends=None, dearest=LONGEST, nice=0):
        self.servers = [server.Server(program, b, files or FILES, nice) for b in backends or BACKENDS]
        self.dearest, self.tries = dearest, []

    def reach(self, log=lambda text: None):
        seen = set()
        for s in self.servers:
            count = 0
            for number, name in enumerate(s.names):
                said = s.ask(0, number, LONGEST)
                if said.state not in ("PASS", "SKIP"):
                    raise RuntimeError(f"the program as it is: {name} on {s.backend}: {said.state} {said.reason}")
                if said.state == "PASS" and said.seconds > self.dearest:
                    continue
                same = (name, number, said.kernels, frozenset(said.reached)) in seen
                seen.add((name, number, said.kernels, frozenset(said.reached)))
                if said.state == "PASS" and said.reached and not same:
                    self.tries.append(Try(s, number, said))
                    count += 1
            log(f"{s.backend}: {count} cases reach a mutant")
        self.tries.sort(key=lambda t: t.seconds)

    def of(self, mutant):
        return [t for t in self.tries if mutant.number in t.reached]

    @staticmethod
    def kills_judged(mutant, tries):
        """Of what no single run showed: the cheapest cases, judged whole, which runs each twice, on other schedules."""
        for t in tries[:JUDGED]:
            said = t.kills(mutant, True)
            if said:
                return t, said
        return None

    def close(self):
        for s in self.servers:
            s.close()
