"""cuDNN attention by its frontend, a bias of bf16's lowest number on every key: O is the mean of V, as it should be, and the LSE -inf."""
import cudnn
import torch

torch.manual_seed(0)
half, single, handle = cudnn.data_type.HALF, cudnn.data_type.FLOAT, cudnn.create_handle()
q, k, v, do = (torch.randn(1, 1, n, 64, dtype=torch.float16, device="cuda") for n in (64, 64, 64, 64))
half = cudnn.data_type.BFLOAT16
q, k, v = (x.bfloat16() for x in (q, k, v))
lowest = torch.finfo(torch.bfloat16).min
bias = torch.full((1, 1, 64, 64), lowest, dtype=torch.bfloat16, device="cuda")
o, lse, dq = torch.empty_like(q), torch.empty(1, 1, 64, 1, device="cuda"), torch.empty_like(q)


def run(which, given, outs, **more):
    g = cudnn.pygraph(io_data_type=half, intermediate_data_type=single, compute_data_type=single, handle=handle)
    nodes = {name: g.tensor_like(x) for name, x in given.items()}
    made = getattr(g, which)(name=which, **nodes, attn_scale=0.125, **more)
    pointers = {nodes[name]: x for name, x in given.items()}
    for node, x in zip(made, outs):
        node.set_output(True).set_dim(list(x.shape)).set_stride(list(x.stride())).set_data_type(single if x.dtype == torch.float32 else half)
        pointers[node] = x
    g.build([cudnn.heur_mode.A, cudnn.heur_mode.FALLBACK])
    g.execute(pointers, torch.empty(max(g.get_workspace_size(), 1), dtype=torch.uint8, device="cuda"), handle=handle)



run("sdpa", {"q": q, "k": k, "v": v, "bias": bias}, (o, lse), generate_stats=True)
got, want = lse[0, 0, :1, 0].cpu().numpy(), torch.full((1, 64), lowest, dtype=torch.float64).logsumexp(1).numpy()
print("LSE: got", got[0], "want", want[0])
raise SystemExit(int(abs(got[0]) == float("inf")))
