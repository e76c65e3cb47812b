"""Memory-efficient attention of PyTorch, causal with a bias: the bias's gradient is not written where whole tiles are hidden."""
import torch

torch.manual_seed(0)
ops = torch.ops.aten
q, k, v, do = (torch.randn(1, 128, 1, 64, device="cuda") for _ in range(4))
bias = torch.zeros(1, 1, 128, 128, device="cuda")
top_left = 1
o, lse, seed, offset, most_q, most_k = ops._efficient_attention_forward(q, k, v, bias, None, None, None, None, 0.0, top_left, True)
used = [torch.full_like(bias, float("nan")) for _ in range(64)]
del used  # the allocator hands these blocks out again
dbias = ops._efficient_attention_backward(do, q, k, v, bias, o, None, None, most_q, most_k, lse, 0.0, seed, offset, top_left, True)[3]
got = dbias[0, 0, :64, 64:].cpu().numpy()
want = got * 0.0
want[:] = 0.0
print("dBias of hidden pairs:", got[0, :3], "want 0; not zero:", int((got != 0).sum()), "of", got.size)
raise SystemExit(int((got != 0).any()))
