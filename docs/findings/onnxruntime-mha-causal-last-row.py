"""MultiHeadAttention with unidirectional=1: the last of three rows sees every key, the others only what is before them."""
import numpy as np
import onnx.helper as h
import onnxruntime as ort

q, k, v = np.random.default_rng(0).standard_normal((3, 1, 8, 8), np.float32)
node = h.make_node("MultiHeadAttention", ["q", "k", "v"], ["o"], domain="com.microsoft", num_heads=1, unidirectional=1)
graph = h.make_graph([node], "g", [h.make_tensor_value_info(n, 1, None) for n in "qkv"], [h.make_tensor_value_info("o", 1, None)])
model = h.make_model(graph, opset_imports=[h.make_opsetid("", 17), h.make_opsetid("com.microsoft", 1)], ir_version=8)
got = ort.InferenceSession(model.SerializeToString()).run(None, {"q": q[:, :3], "k": k, "v": v})[0][0]
s = np.where(np.tril(np.ones((3, 8))), q[0, :3].astype(float) @ k[0].T / 8**0.5, -np.inf)
p = np.exp(s - s.max(1, keepdims=True))
want = p / p.sum(1, keepdims=True) @ v[0]
print("rows' largest errors:", abs(got - want).max(1), "(want 1e-7)")
raise SystemExit(int(abs(got - want).max() > 1e-3))
