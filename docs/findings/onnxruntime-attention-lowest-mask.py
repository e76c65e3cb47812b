"""Attention of opset 23: a row whose mask is float32's lowest number throughout, as many models write it, comes out as 0."""
import numpy as np
import onnx.helper as h
import onnxruntime as ort

q, k, v = np.random.default_rng(0).standard_normal((3, 1, 1, 4, 8), np.float32)
mask = np.full((4, 4), np.finfo(np.float32).min, np.float32)
mask[1:, 0] = 0  # only row 0 has nothing else
names = ("q", "k", "v", "m", "o")
info = [h.make_tensor_value_info(n, 1, None) for n in names]
graph = h.make_graph([h.make_node("Attention", names[:4], ["o"])], "g", info[:4], info[4:])
model = h.make_model(graph, opset_imports=[h.make_opsetid("", 23)], ir_version=10)
got = ort.InferenceSession(model.SerializeToString()).run(None, {"q": q, "k": k, "v": v, "m": mask})[0][0, 0]
s = q[0, 0].astype(float) @ k[0, 0].T / 8**0.5 + mask
p = np.exp(s - s.max(1, keepdims=True))
want = p / p.sum(1, keepdims=True) @ v[0, 0]
print("row 0:", got[0, :3], "want", want[0, :3], "the largest error of the others:", abs(got - want)[1:].max())
raise SystemExit(int(abs(got - want).max() > 1e-3))
