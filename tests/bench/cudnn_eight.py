"""cuDNN's attention in e4m3 by its Python frontend (the package nvidia-cudnn-frontend), for eight.py."""
import importlib
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
SCALE_P = 256.0  # what P is multiplied by before it is rounded, so that 1 is within e4m3


def frontend():
    """The package cudnn, whose name a script of this folder has too."""
    sys.modules.pop("cudnn", None)
    path, sys.path = sys.path, [p for p in sys.path if os.path.abspath(p or ".") != HERE]
    try:
        return importlib.import_module("cudnn")
    finally:
        sys.path = path


class CudnnEight:
    """Graphs of one process. Raises ImportError where the package is not there."""

    def __init__(self, torch):
        self.torch, self.cudnn = torch, frontend()
        self.handle = self.cudnn.create_handle()
        self.cudnn.set_stream(handle=self.handle, stream=torch.cuda.current_stream().cuda_stream)

    def attention(self, q, k, v, causal, scale):
        """Calls of [batch, seqlen, heads, head_dim] in e4m3, with descales of 1, to an O of e4m3."""
        cudnn, torch = self.cudnn, self.torch
        eight, f32 = cudnn.data_type.FP8_E4M3, cudnn.data_type.FLOAT
        graph = cudnn.pygraph(io_data_type=eight, intermediate_data_type=f32, compute_data_type=f32, handle=self.handle)
        factors = {"descale_q": 1.0, "descale_k": 1.0, "descale_v": 1.0, "descale_s": 1 / SCALE_P, "scale_s": SCALE_P, "scale_o": 1.0}
        inputs = {"q": q.transpose(1, 2), "k": k.transpose(1, 2), "v": v.transpose(1, 2),
                  **{name: torch.full((1, 1, 1, 1), x, device="cuda") for name, x in factors.items()}}
        given = {name: graph.tensor(name=name, dim=list(x.shape), stride=list(x.stride()), data_type=f32 if name in factors else eight)
                 for name, x in inputs.items()}
        edge = {"diagonal_alignment": cudnn.diagonal_alignment.TOP_LEFT, "right_bound": 0} if causal else {}
        nodes = graph.sdpa_fp8(name="sdpa_fp8", **given, attn_scale=scale, generate_stats=True, **edge)
        results = [torch.empty_like(inputs["q"]), torch.empty(*inputs["q"].shape[:3], 1, device="cuda"),
                   *(torch.empty(1, 1, 1, 1, device="cuda") for _ in range(2))]  # O, LSE, the largest P and O
        tensors = {given[name]: x for name, x in inputs.items()}
        for node, x in zip(nodes, results):
            node.set_output(True).set_dim(list(x.shape)).set_stride(list(x.stride())).set_data_type(eight if x is results[0] else f32)
            tensors[node] = x
        graph.build([cudnn.heur_mode.A, cudnn.heur_mode.FALLBACK])
        workspace = torch.empty(max(graph.get_workspace_size(), 1), dtype=torch.uint8, device="cuda")
        return lambda: graph.execute(tensors, workspace, handle=self.handle)
