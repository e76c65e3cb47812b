"""jax.nn.dot_product_attention, causal, with a bias of -inf on all that a row may see: the row attends to later keys."""
import jax
import numpy as np

q, k, v = np.random.default_rng(0).standard_normal((3, 1, 4, 1, 8), np.float32)
bias = np.zeros((1, 1, 4, 4), np.float32)
bias[..., 0] = -np.inf  # the first key is padding, so that the first row sees nothing
got = np.asarray(jax.nn.dot_product_attention(q, k, v, bias=bias, is_causal=True))[0, 0, 0]
want = np.zeros(8)
later = v[0, 1:, 0].mean(0)
print("row 0: got", got[:3], "mean of the keys behind it", later[:3], "want", want[:3])
raise SystemExit(int(abs(got - later).max() < 1e-5))
