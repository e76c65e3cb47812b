"""A model with a KV cache in its state, f32: a mask [1, 1, S, 1], one number for each row, must not change anything."""
import numpy as np
import openvino as ov
from openvino import opset13 as op

q, k, v = (op.parameter([-1, 1, -1, 16], np.float32, name=n) for n in "qkv")
mask = op.parameter([-1, 1, -1, -1], np.float32, name="mask")
beam = op.parameter([-1], np.int32, name="beam")
empty = op.broadcast(op.constant(np.float32(0)), op.concat([op.gather(op.shape_of(q, "i64"), op.constant([0]), op.constant(0)), op.constant([1, 0, 16])], 0))


def cache(new, name):
    info = ov.op.util.VariableInfo()
    info.data_shape, info.data_type, info.variable_id = ov.PartialShape([-1, 1, -1, 16]), ov.Type.f32, name
    variable = ov.op.util.Variable(info)
    joined = op.concat([op.gather(op.read_value(empty, variable), beam, op.constant(0)), new], 2)
    return joined, op.assign(joined, variable)


(keys, store_k), (values, store_v) = cache(k, "k"), cache(v, "v")
out = op.result(op.scaled_dot_product_attention(q, keys, values, mask, causal=False))
run = ov.Core().compile_model(ov.Model([out], [store_k, store_v], [q, k, v, mask, beam]), "CPU", {"INFERENCE_PRECISION_HINT": "f32"}).create_infer_request()
x = np.random.default_rng(0).standard_normal((2, 1, 8, 16), np.float32)
m = 30 * np.arange(8, dtype=np.float32).reshape(1, 1, 8, 1)
got = run.infer({"q": x, "k": x, "v": x, "mask": m, "beam": np.arange(2, dtype=np.int32)})[0]
p = np.exp(x.astype(float) @ x.swapaxes(2, 3) / 4)
want = p / p.sum(3, keepdims=True) @ x
m = np.append(m, np.zeros(8))[np.arange(8)[:, None] + np.arange(8)]  # row i with the numbers of rows i, i + 1, ..., and zeros behind the mask
p = np.exp(x.astype(float) @ x.swapaxes(2, 3) / 4 + m - m.max(1, keepdims=True))
print("largest error:", abs(got - want).max(), "off from a mask read beyond its end by", abs(got - p / p.sum(3, keepdims=True) @ x).max())
raise SystemExit(int(not abs(got - want).max() < 0.1))
