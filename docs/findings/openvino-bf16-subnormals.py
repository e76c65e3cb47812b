"""ScaledDotProductAttention in bf16: outputs below the smallest normal number become 0."""
import numpy as np
import openvino as ov
from openvino import opset13

q = k = np.zeros((1, 1, 4, 8), np.float32)
v = np.full((1, 1, 4, 8), 2.0**-130, np.float32)  # exact in bf16, whose smallest normal number is 2^-126
inputs = [opset13.parameter([1, 1, 4, 8], np.float32) for _ in range(3)]
model = ov.Model([opset13.scaled_dot_product_attention(*inputs, causal=False)], inputs)
got = ov.Core().compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "bf16"})([q, k, v])[0]
want = v.astype(float)
print("got", got[0, 0, 0, 0], "want", want[0, 0, 0, 0])
raise SystemExit(int((got == 0).any()))
