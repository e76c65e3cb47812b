"""cuDNN attention by its frontend, a bias of one row for all queries ([1, 1, 1, K]): O is right, and dQ, dK and dV are not."""
import cudnn
import torch

torch.manual_seed(0)
half, single, handle = cudnn.data_type.HALF, cudnn.data_type.FLOAT, cudnn.create_handle()
q, k, v, do = (torch.randn(1, 1, n, 64, dtype=torch.float16, device="cuda") for n in (64, 64, 64, 64))
bias = 4 * torch.randn(1, 1, 1, 64, dtype=torch.float16, device="cuda")
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



given = {"q": q, "k": k, "v": v, "bias": bias}
run("sdpa", given, (o, lse), generate_stats=True)
dk, dv = torch.empty_like(k), torch.empty_like(v)
run("sdpa_backward", {**given, "o": o, "dO": do, "stats": lse, "dBias": torch.empty_like(bias)}, (dq, dk, dv))
p = (q.double() @ k.double().mT / 8 + bias.double()).softmax(-1)
got, want = dv[0, 0].float().cpu().numpy(), (p.mT @ do.double())[0, 0].cpu().numpy()
print("dV: largest error", abs(got - want).max(), "; of O", (o - p @ v.double()).abs().max().item())
raise SystemExit(int(not abs(got - want).max() < 0.05))
