"""A model with dynamic shapes, compiled with default settings on a processor with bf16: after a first call of head dim 1 every other one is wrong."""
import numpy as np
import openvino as ov
from openvino import opset13

inputs = [opset13.parameter([-1, -1, -1, -1], np.float32) for _ in range(3)]
model = ov.Model([opset13.scaled_dot_product_attention(*inputs, causal=False)], inputs)
run = ov.Core().compile_model(model, "CPU")
run([np.ones((1, 1, 16, 1), np.float32)] * 3)
q, k, v = np.random.default_rng(0).standard_normal((3, 1, 1, 16, 64), np.float32)
got = run([q, k, v])[0]
s = q.astype(float) @ k.swapaxes(2, 3) / 8
p = np.exp(s - s.max(3, keepdims=True))
want = p / p.sum(3, keepdims=True) @ v
wrong = ~(abs(got - want) < 0.1)
print(wrong.sum(), "of", got.size, "elements are wrong after a call of head dim 1; NaN:", np.isnan(got).sum())
raise SystemExit(int(wrong.any()))
