"""MultiHeadAttention: a row whose bias is -inf throughout is NaN; the operator Attention of opset 23 gives 0 for it."""
import numpy as np
import onnx.helper as h
import onnxruntime as ort

q, k, v = np.random.default_rng(0).standard_normal((3, 1, 2, 8), np.float32)
bias = np.zeros((1, 1, 2, 2), np.float32)
bias[0, 0, 0] = -np.inf
node = h.make_node("MultiHeadAttention", ["q", "k", "v", "", "", "b"], ["o"], domain="com.microsoft", num_heads=1)
info = [h.make_tensor_value_info(n, 1, None) for n in "qkvbo"]
imports = [h.make_opsetid("", 17), h.make_opsetid("com.microsoft", 1)]
model = h.make_model(h.make_graph([node], "g", info[:4], info[4:]), opset_imports=imports, ir_version=8)
got = ort.InferenceSession(model.SerializeToString()).run(None, {"q": q, "k": k, "v": v, "b": bias})[0][0, :1]
want = np.zeros_like(got)
print("row 0:", got[0, :3], "(0 by the ONNX operator Attention)")
raise SystemExit(int(np.isnan(got).any()))
