"""Judge attention kernels against a float64 reference, element by element.

>>> import fa_verify, numpy as np
>>> @fa_verify.kernel
... def attention(call):
...     s = np.einsum("bqhd,bkhd->bhqk", call.q, call.k) * np.float32(call.scale)
...     p = np.exp(s - s.max(-1, keepdims=True))
...     return np.einsum("bhqk,bkhd->bqhd", p / p.sum(-1, keepdims=True), call.v)
>>> attention.hello()["outputs"]
['o']
"""

from fa_verify._binary import MachineFailed, binary, cases_folder
from fa_verify._call import Call, Result
from fa_verify._case import Case
from fa_verify._check import check
from fa_verify._dtypes import rounded
from fa_verify._judge import judge
from fa_verify._kernel import Kernel, Unsupported, kernel
from fa_verify._report import Failure, Mismatch, NotJudged, Report

__all__ = [
    "Call", "Case", "Failure", "Kernel", "MachineFailed", "Mismatch", "NotJudged", "Report", "Result", "Unsupported",
    "binary", "cases_folder", "check", "judge", "kernel", "rounded",
]  # fmt: skip
