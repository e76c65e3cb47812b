"""ScaledDotProductAttention compiled with default settings on a processor with bf16 (AMD Zen 4): a padding mask [1, 1, 1, L] gives wrong numbers, up to 1e38, and NaN."""
import numpy as np
import openvino as ov
from openvino import opset13

r = np.random.default_rng(0)
q, k, v = (r.standard_normal((1, 12, n, 64), np.float32) for n in (8, 16, 16))
mask = np.where(np.arange(16) < 12, 0, -1e4).astype(np.float32).reshape(1, 1, 1, 16)  # the last four keys are padding
inputs = [opset13.parameter(x.shape, np.float32) for x in (q, k, v, mask)]
model = ov.Model([opset13.scaled_dot_product_attention(*inputs, causal=False)], inputs)
got = ov.Core().compile_model(model, "CPU")([q, k, v, mask])[0]
s = q.astype(float) @ k.swapaxes(2, 3) / 8 + mask
p = np.exp(s - s.max(3, keepdims=True))
want = p / p.sum(3, keepdims=True) @ v
wrong = ~(abs(got - want) < 0.1)
print(wrong.sum(), "of", got.size, "elements are wrong, the largest is", np.nanmax(abs(got)), "(want", abs(want).max(), "); NaN:", np.isnan(got).sum())
raise SystemExit(int(wrong.any()))
