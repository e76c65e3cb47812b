"""The named cases first; of what they leave alive, test programs are asked, which look at what no case is judged by."""


class Suite:
    def __init__(self, cases, programs):
        self.cases, self.programs = cases, programs

    def reach(self, log=lambda text: None):
        self.cases.reach(log)
        self.programs.reach(log)

    def of(self, mutant):
        return self.cases.of(mutant) + self.programs.of(mutant)

    def order(self, tries):
        """(try, judged) one after another."""
        programs = [t for t in tries if t in self.programs.tries]
        yield from self.cases.order([t for t in tries if t not in programs])
        yield from self.programs.order(programs)

    def close(self):
        self.cases.close()
        self.programs.close()
