"""MultiHeadAttention, unidirectional=1, a bias of -inf on the first key (left padding): row 0 is the mean of what comes after it."""
import numpy as np
import onnx.helper as h
import onnxruntime as ort

q, k, v = np.random.default_rng(0).standard_normal((3, 1, 4, 8), np.float32)
bias = np.zeros((1, 1, 4, 4), np.float32)
bias[..., 0] = -np.inf
node = h.make_node("MultiHeadAttention", ["q", "k", "v", "", "", "b"], ["o"], domain="com.microsoft", num_heads=1, unidirectional=1)
info = [h.make_tensor_value_info(n, 1, None) for n in "qkvbo"]
imports = [h.make_opsetid("", 17), h.make_opsetid("com.microsoft", 1)]
model = h.make_model(h.make_graph([node], "g", info[:4], info[4:]), opset_imports=imports, ir_version=8)
run = ort.InferenceSession(model.SerializeToString()).run
got = run(None, {"q": q, "k": k, "v": v, "b": bias})[0][0]
after = np.concatenate([v[:, :1], v[:, 1:] + 100], 1)  # only keys that row 0 must not see have changed
want = run(None, {"q": q, "k": k, "v": after, "b": bias})[0][0][:1]
got = got[:1]
print("row 0 moved by", abs(got - want).max(), "when V of later keys did (want 0)")
raise SystemExit(int(abs(got - want).max() > 1e-3))
