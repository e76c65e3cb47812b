"""Judge attention kernels against a float64 reference, element by element.

>>> import fa_verify, numpy as np
>>> @fa_verify.kernel(lse="natural")
... def attention(call):
...     s = np.einsum("bqhd,bkhd->bhqk", call.q, call.k, dtype=np.float32) * np.float32(call.scale)
...     top = s.max(-1, keepdims=True)
...     p = np.exp(s - top)
...     total = p.sum(-1, keepdims=True)
...     return np.einsum("bhqk,bkhd->bqhd", p / total, call.v), (top + np.log(total))[..., 0]
>>> case = {"dtype": "f32", "seqlen_q": 5, "heads_q": 2}
"""

from fa_verify._call import Call, Result
from fa_verify._case import Case
from fa_verify._kernel import Kernel, Unsupported, kernel

__all__ = ["Call", "Case", "Kernel", "Result", "Unsupported", "kernel"]
