"""Right, as a class of the kind that benchmarks have."""
import numpy as np


class ModelNew:
    def __init__(self, smallest):
        self.smallest = smallest

    def forward(self, q, k, v, is_causal=False, sm_scale=None):
        q, k, v = (x.astype(np.float64) for x in (q, k, v))
        s = q @ k.swapaxes(-1, -2) * sm_scale
        if is_causal:
            s += np.triu(np.full(s.shape[-2:], -np.inf), 1 + s.shape[-1] - s.shape[-2])
        m = s.max(-1, keepdims=True, initial=self.smallest)
        p = np.exp(s - m)
        total = np.maximum(p.sum(-1, keepdims=True), 1e-300)
        return p / total @ v, np.where(m > self.smallest, m + np.log(total), np.inf)[..., 0]


def get_init_inputs():
    return [-1e30]
