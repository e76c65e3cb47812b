"""What the adapters of cuDNN's Python frontend share: graphs, which are built and run for one call."""

from __future__ import annotations

import functools
from typing import Any


@functools.lru_cache(maxsize=1)
def handle() -> Any:
    import cudnn

    return cudnn.create_handle()


def stream() -> int:
    import torch

    return int(torch.cuda.current_stream().cuda_stream)


def graph(kind: Any) -> Any:
    """A graph whose inputs and outputs are of that type, and everything between them of float32."""
    import cudnn

    return cudnn.pygraph(io_data_type=kind, intermediate_data_type=cudnn.data_type.FLOAT, compute_data_type=cudnn.data_type.FLOAT, handle=handle())


def written(graph_tensor: Any, like: Any, kind: Any = None) -> Any:
    """A graph's tensor as one of its outputs, which lies in memory as `like` does."""
    graph_tensor.set_output(True).set_dim(list(like.shape)).set_stride(list(like.stride()))
    return graph_tensor.set_data_type(kind) if kind is not None else graph_tensor


def execute(g: Any, tensors: dict[Any, Any]) -> None:
    import cudnn
    import torch

    g.build([cudnn.heur_mode.A, cudnn.heur_mode.FALLBACK])
    device = next(iter(tensors.values())).device
    workspace = torch.empty(max(g.get_workspace_size(), 1), dtype=torch.uint8, device=device)
    cudnn.set_stream(handle=handle(), stream=stream())
    g.execute(tensors, workspace, handle=handle())
