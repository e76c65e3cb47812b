"""cuDNN's sdpa_fp8 in e4m3 with queries of 128 columns and values of 144: the graph is built, then CUDA error: an illegal memory access."""
import cudnn
import torch

E4M3, F32 = cudnn.data_type.FP8_E4M3, cudnn.data_type.FLOAT
handle = cudnn.create_handle()


def attend(head_dim, head_dim_v):
    g = cudnn.pygraph(io_data_type=E4M3, intermediate_data_type=F32, compute_data_type=F32, handle=handle)
    given = {name: torch.ones((1, 2, 128, d), device="cuda").to(torch.float8_e4m3fn) for name, d in (("q", head_dim), ("k", head_dim), ("v", head_dim_v))}
    given |= {name: torch.ones((1, 1, 1, 1), device="cuda") for name in ("descale_q", "descale_k", "descale_v", "descale_s", "scale_s", "scale_o")}
    nodes = {name: g.tensor(name=name, dim=list(x.shape), stride=list(x.stride()), data_type=E4M3 if name in "qkv" else F32) for name, x in given.items()}
    made = g.sdpa_fp8(name="sdpa_fp8", **nodes, attn_scale=0.1, generate_stats=True)
    outs = (torch.empty_like(given["v"]), *(torch.empty(1, h, s, 1, device="cuda") for h, s in ((2, 128), (1, 1), (1, 1))))
    for node, x in zip(made, outs):
        node.set_output(True).set_dim(list(x.shape)).set_stride(list(x.stride())).set_data_type(F32 if x.dtype == torch.float32 else E4M3)
    g.build([cudnn.heur_mode.A, cudnn.heur_mode.FALLBACK])
    pointers = {**{nodes[name]: x for name, x in given.items()}, **dict(zip(made, outs))}
    g.execute(pointers, torch.empty(max(g.get_workspace_size(), 1), dtype=torch.uint8, device="cuda"), handle=handle)
    return f"O is {float(outs[0].float().mean()):g}"


for head_dim, head_dim_v in ((128, 128), (192, 256), (128, 144)):
    try:
        said, lost = attend(head_dim, head_dim_v), False
    except Exception as e:
        said, lost = str(e).splitlines()[0], "illegal memory access" in str(e)
    print(f"{head_dim}/{head_dim_v}: {said}", end="; " if head_dim_v != 144 else "\n")
raise SystemExit(int(lost))
