"""jax.nn.dot_product_attention with a bias of -inf on all keys of a row: NaN, where a boolean mask of the same gives a mean."""
import jax
import numpy as np

q, k, v = np.random.default_rng(0).standard_normal((3, 1, 2, 1, 8), np.float32)
bias = np.zeros((1, 1, 2, 2), np.float32)
bias[0, 0, 0] = -np.inf
got = np.asarray(jax.nn.dot_product_attention(q, k, v, bias=bias))[0, 0, 0]
masked = np.asarray(jax.nn.dot_product_attention(q, k, v, mask=bias == 0))[0, 0, 0]
want = np.zeros(8)
print("bias:", got[:2], "mask:", masked[:2], "want", want[:2])
raise SystemExit(int(np.isnan(got).all()))
