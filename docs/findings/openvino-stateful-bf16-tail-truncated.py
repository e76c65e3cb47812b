"""A model with a KV cache in its state, in bf16: of 4 x 17 outputs the last 4 are cut off to bf16, the others are rounded."""
import numpy as np
import openvino as ov
from openvino import opset13 as op

q, k, v = (op.parameter([-1, 1, -1, 17], np.float32, name=n) for n in "qkv")
beam = op.parameter([-1], np.int32, name="beam")
empty = op.broadcast(op.constant(np.float32(0)), op.concat([op.gather(op.shape_of(q, "i64"), op.constant([0]), op.constant(0)), op.constant([1, 0, 17])], 0))


def cache(new, name):
    info = ov.op.util.VariableInfo()
    info.data_shape, info.data_type, info.variable_id = ov.PartialShape([-1, 1, -1, 17]), ov.Type.f32, name
    variable = ov.op.util.Variable(info)
    joined = op.concat([op.gather(op.read_value(empty, variable), beam, op.constant(0)), new], 2)
    return joined, op.assign(joined, variable)


(keys, store_k), (values, store_v) = cache(k, "k"), cache(v, "v")
out = op.result(op.scaled_dot_product_attention(q, keys, values, causal=False))
run = ov.Core().compile_model(ov.Model([out], [store_k, store_v], [q, k, v, beam]), "CPU").create_infer_request()
x, value = np.zeros((1, 1, 4, 17), np.float32), np.ones((1, 1, 4, 17), np.float32)
value[:, :, 3] += 3 * 2**-7  # a quarter of it is 0.75 * 2^-7: 1 + 2^-7 is nearer than 1
got = run.infer({"q": x, "k": x, "v": value, "beam": np.zeros(1, np.int32)})[0].ravel()
want = np.full(68, 1 + 2**-7)
print(np.sum(got != want), "of 68 outputs are not the nearest number of bf16: the last of them,", np.flatnonzero(got != want))
raise SystemExit(int((got != want).any()))
