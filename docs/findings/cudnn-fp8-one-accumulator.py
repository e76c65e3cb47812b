"""cuDNN's sdpa_fp8 in e4m3: the mean of so many ones, as amax_o says it, which is not rounded to e4m3."""
import cudnn
import torch

E4M3, F32 = cudnn.data_type.FP8_E4M3, cudnn.data_type.FLOAT
handle = cudnn.create_handle()
numbers = {"descale_q": 1, "descale_k": 1, "descale_v": 1, "descale_s": 1 / 256, "scale_s": 256, "scale_o": 256}


def mean_of_ones(keys):
    g = cudnn.pygraph(io_data_type=E4M3, intermediate_data_type=F32, compute_data_type=F32, handle=handle)
    given = {name: torch.full((1, 1, n, 128), x, device="cuda").to(torch.float8_e4m3fn) for name, n, x in (("q", 64, 0.0), ("k", keys, 0.0), ("v", keys, 1.0))}
    given |= {name: torch.full((1, 1, 1, 1), float(x), device="cuda") for name, x in numbers.items()}
    nodes = {name: g.tensor(name=name, dim=list(x.shape), stride=list(x.stride()), data_type=E4M3 if name in "qkv" else F32) for name, x in given.items()}
    made = g.sdpa_fp8(name="sdpa_fp8", **nodes, attn_scale=1.0, generate_stats=True)
    outs = (torch.empty_like(given["q"]), *(torch.empty(1, 1, n, 1, device="cuda") for n in (64, 1, 1)))
    for node, x in zip(made, outs):
        node.set_output(True).set_dim(list(x.shape)).set_stride(list(x.stride())).set_data_type(F32 if x.dtype == torch.float32 else E4M3)
    g.build([cudnn.heur_mode.A, cudnn.heur_mode.FALLBACK])
    pointers = {**{nodes[name]: x for name, x in given.items()}, **dict(zip(made, outs))}
    g.execute(pointers, torch.empty(max(g.get_workspace_size(), 1), dtype=torch.uint8, device="cuda"), handle=handle)
    return outs[3].reshape(1).cpu().numpy()


lengths = (16384, 24576, 32768, 65536, 131072)
means = [mean_of_ones(keys) for keys in lengths]
got, want = means[2], means[0]
print(", ".join(f"{keys} keys: {mean[0]:g}" for keys, mean in zip(lengths, means)), "; want 1")
raise SystemExit(int((got != want).any()))
