"""The named cases first; of what they leave alive, test programs are asked, which look at what no case is judged by."""
import cases_suite
import programs_suite


class Suite:
    def __init__(self, cases, programs):
        self.cases, self.programs = cases, programs

    def reach(self, log=lambda text: None):
        self.cases.reach(log)
        self.programs.reach(log)

    def of(self, mutant):
        return self.cases.of(mutant) + self.programs.of(mutant)

    @staticmethod
    def order(tries):
        """(try, judged) one after another."""
        programs = [t for t in tries if isinstance(t, programs_suite.Try)]
        yield from cases_suite.Suite.order([t for t in tries if not isinstance(t, programs_suite.Try)])
        yield from programs_suite.Suite.order(programs)

    def close(self):
        self.cases.close()
        self.programs.close()
