"""Attention of opset 23, is_causal=1, one query, a past of three keys and four new ones: all seven are seen instead of four."""
import numpy as np
import onnx.helper as h
import onnxruntime as ort

r = np.random.default_rng(0)
q, k, v, pk, pv = (r.standard_normal((1, 1, n, 8), np.float32) for n in (1, 4, 4, 3, 3))
node = h.make_node("Attention", ["q", "k", "v", "", "pk", "pv"], ["o", "ok", "ov"], is_causal=1)
info = [h.make_tensor_value_info(n, 1, None) for n in ("q", "k", "v", "pk", "pv", "o", "ok", "ov")]
model = h.make_model(h.make_graph([node], "g", info[:5], info[5:]), opset_imports=[h.make_opsetid("", 23)], ir_version=10)
got = ort.InferenceSession(model.SerializeToString()).run(None, {"q": q, "k": k, "v": v, "pk": pk, "pv": pv})[0][0, 0]
keys, values = np.concatenate([pk, k], 2)[0, 0, :4].astype(float), np.concatenate([pv, v], 2)[0, 0, :4]  # key j <= query 0 + 3
p = np.exp(q[0, 0] @ keys.T / 8**0.5)
want = p / p.sum() @ values
print("largest error:", abs(got - want).max(), "(want 1e-7)")
raise SystemExit(int(abs(got - want).max() > 1e-3))
