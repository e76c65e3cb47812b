"""What the adapters of onnxruntime share: a model of one node, kept for every set of attributes, on numpy arrays."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

_TYPES = {"f32": 1, "f16": 10}  # onnx.TensorProto


@functools.lru_cache(maxsize=256)
def session(op: str, domain: str, dtype: str, inputs: tuple[str, ...], outputs: int, attributes: tuple[tuple[str, Any], ...]) -> Any:
    """A session of one node. inputs: names, "" for one that is left out; those that begin with "i32_" are int32."""
    import onnxruntime
    from onnx import helper

    def info(name: str) -> Any:
        kind = 6 if name.startswith("i32_") else 9 if name.startswith("bool_") else _TYPES[dtype]
        return helper.make_tensor_value_info(name, kind, None)

    names = [f"out{i}" for i in range(outputs)]
    node = helper.make_node(op, list(inputs), names, domain=domain, **dict(attributes))
    graph = helper.make_graph([node], op, [info(x) for x in inputs if x], [helper.make_tensor_value_info(n, _TYPES[dtype], None) for n in names])
    imports = [helper.make_opsetid("", 23), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=imports, ir_version=10)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def run(found: Any, inputs: dict[str, Any]) -> list[Any]:
    """The node's outputs; its inputs are made dense first."""
    results: list[Any] = found.run(None, {name: np.ascontiguousarray(x) for name, x in inputs.items()})
    return results


def flat(x: Any) -> Any:
    """[B, S, H, D] as [B, S, H * D]."""
    return x.reshape(*x.shape[:2], -1)
