"""ggml_flash_attn_ext on the processor, values in f16, one query, asked for float32: the mean of 4096 ones is 0.5."""
import ctypes as c
import glob
import os

import numpy as np
import xllamacpp

lib = c.CDLL(glob.glob(os.path.dirname(xllamacpp.__file__) + "/*.so")[0])
Init = type("Init", (c.Structure,), {"_fields_": [("size", c.c_size_t), ("memory", c.c_void_p), ("no_alloc", c.c_bool)]})


def ggml(name, *given):
    function = getattr(lib, "ggml_" + name)
    function.restype = c.c_void_p
    return c.c_void_p(function(*given))


def tensor(kind, x):
    t = ggml("new_tensor_4d", context, kind, *map(c.c_int64, (*x.T.shape, 1, 1)))
    c.memmove(ggml("get_data", t), x.ctypes.data, x.nbytes)
    return t


context = ggml("init", Init(1 << 24, None, False))
inputs = tensor(0, np.zeros((1, 16), np.float32)), tensor(1, np.zeros((4096, 16), np.float16)), tensor(1, np.ones((4096, 16), np.float16))
node, graph = ggml("flash_attn_ext", context, *inputs, None, *map(c.c_float, (1, 0, 0))), ggml("new_graph", context)
ggml("flash_attn_ext_set_prec", node, 10)  # GGML_PREC_F32; without it the same
ggml("build_forward_expand", graph, node), ggml("graph_compute_with_ctx", context, graph, 1)
got, want = np.array((c.c_float * 16).from_address(ggml("get_data", node).value), np.float32), np.ones(16)
print("got", got[0], "want", want[0])
raise SystemExit(int(abs(got - want).max() > 1e-2))
