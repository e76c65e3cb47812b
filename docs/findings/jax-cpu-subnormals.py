"""jax.nn.dot_product_attention on the processor: outputs below the smallest normal number become 0."""
import jax
import numpy as np

q = k = np.zeros((1, 4, 1, 8), np.float32)
v = np.full((1, 4, 1, 8), 2.0**-130, np.float32)
got = np.asarray(jax.jit(jax.nn.dot_product_attention)(q, k, v))
want = v.astype(float)
print("got", got[0, 0, 0, 0], "want", want[0, 0, 0, 0])
raise SystemExit(int((got == 0).any()))
