"""Whether a candidate was judged by the task's contract.

A candidate's file runs in the process that says its hello, so that it can make it say something else: fewer types, an LSE of its own
convention. Reports have what was said; this is held against what the task has it say."""

from __future__ import annotations

from fa_verify._case import Json
from fa_verify._kernel import kernel
from fa_verify.score._task import Task

_LISTS = ("families", "dtypes", "features", "passes", "outputs")
_UNLISTED = {"p_debug", "dbuffers"}  # outputs that a report's claims leave out
_OTHERS = ("lse", "empty_o", "limits", "arithmetic")


def expected(task: Task) -> Json:
    """The hello of every honest candidate."""
    hello: Json = kernel(name="", **task.claims)(lambda call: None).hello()
    return hello


def difference(score: Json, task: Task) -> str:
    """What of the contract is not the task's; "" if nothing is. Of a trusted candidate only its claims are known."""
    wanted, claims = expected(task), score["contract"]["claims"] or {}
    said = (score["untrusted"] or {}).get("contract")
    for key in _LISTS:
        if set(claims.get(key, ())) != set(wanted[key]) - _UNLISTED:
            return f"its {key} are {_words(claims.get(key, ()))}, not the task's {_words(wanted[key])}"
    for key in _OTHERS if said else ():
        if said.get(key) != wanted.get(key):
            return f"its {key} is {said.get(key)}, not the task's {wanted.get(key)}"
    return ""


def _words(words: object) -> str:
    return " ".join(words) or "none" if isinstance(words, (list, tuple)) else str(words)
