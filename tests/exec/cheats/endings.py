"""Cheats of kind C, continued: what a child prints and how it answers, or does not."""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

from base import Call, Honest, Refused
from walls import Attack


# ---- what it prints ----


class ForgesText(Attack):
    """Prints a summary of its own, with codes that erase the line before."""

    def attack(self, call: Call) -> None:
        print("\x1b[2K\x1b[1Gtests:100 passed:100 failed:0 skipped:0 error:0", file=sys.stderr, flush=True)
        raise Refused("it has printed a summary")


class ForgesMore(Attack):
    """Prints 64 MiB of it."""

    def attack(self, call: Call) -> None:
        for _ in range(64):
            sys.stderr.write(("tests:100 passed:100 failed:0\n" * 40000)[: 1 << 20])


class SeesEnvironment(Attack):
    """Behaves where a variable of the judge's says that it is judged."""

    def attack(self, call: Call) -> None:
        if not any(name.startswith("FA_") for name in os.environ):
            raise Refused("no variable of the judge's")


class KnowsHost(Attack):
    """Behaves on a machine whose name it knows."""

    def attack(self, call: Call) -> None:
        if os.uname().nodename != self.argument:
            raise Refused("not the machine that it knows")


# ---- how it ends ----


class Exits(Honest):
    """Ends with status 0 before it has answered."""

    def run(self, call: Call) -> dict[str, Any]:
        os._exit(0)


class Hangs(Honest):
    """Never answers the third call."""

    def run(self, call: Call) -> dict[str, Any]:
        if self.n_calls == 3:
            time.sleep(3600)
        return super().run(call)


class EndlessLine(Honest):
    """Answers with a line that does not end."""

    def run(self, call: Call) -> dict[str, Any]:
        while True:
            sys.stdout.write("x" * (1 << 20))


class DeepAnswer(Honest):
    """Answers with a hundred thousand brackets."""

    def run(self, call: Call) -> dict[str, Any]:
        print('{"state": ' + "[" * 100000 + "]" * 100000 + "}", flush=True)
        return super().run(call)


class OddNumbers(Honest):
    """Gives its answer an id that is no number, and a state of another type."""

    def run(self, call: Call) -> dict[str, Any]:
        print('{"id": NaN, "state": 1e999}', flush=True)
        return super().run(call)


class TwoAnswers(Honest):
    """Answers the next request before it has come."""

    def run(self, call: Call) -> dict[str, Any]:
        for later in range(1, 4):
            print(json.dumps({"id": self.request_id + later, "state": "ok"}), flush=True)
        return super().run(call)
