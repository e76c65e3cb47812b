"""Memory-efficient attention of PyTorch, packed, with dropout: O is linear in V, so that sum(dO O) is sum(dV V); of the first head alone it is."""
import torch

torch.manual_seed(0)
ops = torch.ops.aten
q, k, v, do = (torch.randn(1, 64, 2, 64, device="cuda") for _ in range(4))
ends = torch.tensor([0, 64], dtype=torch.int32, device="cuda")
o, lse, seed, offset, most_q, most_k = ops._efficient_attention_forward(q, k, v, None, ends, ends, 64, 64, 0.5, 0, True)
dv = ops._efficient_attention_backward(do, q, k, v, None, o, ends, ends, most_q, most_k, lse, 0.5, seed, offset, 0, False)[2]
got, want = ((x * y).sum((0, 1, 3)).double().cpu().numpy() for x, y in ((dv, v), (do, o)))
print("sum(dV V) by head:", got, "want sum(dO O):", want)
raise SystemExit(int(abs(got - want).max() > 0.05))
