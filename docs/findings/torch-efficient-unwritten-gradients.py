"""Memory-efficient attention of PyTorch, packed: dQ of a sequence without keys is what was in memory before, here NaN."""
import torch

torch.manual_seed(0)
ops = torch.ops.aten
q, k, v, do = (torch.randn(1, n, 1, 64, dtype=torch.float16, device="cuda") for n in (40, 20, 20, 40))
ends_q, ends_k = (torch.tensor(x, dtype=torch.int32, device="cuda") for x in ([0, 20, 40], [0, 20, 20]))
o, lse, seed, offset, most_q, most_k = ops._efficient_attention_forward(q, k, v, None, ends_q, ends_k, 20, 20, 0.0, 0, True)
used = [torch.full_like(q, float("nan")) for _ in range(64)]
del used  # the allocator hands these blocks out again
dq = ops._efficient_attention_backward(do, q, k, v, None, o, ends_q, ends_k, most_q, most_k, lse, 0.0, seed, offset, 0, False)[0]
got = dq[0, 20:, 0].float().cpu().numpy()
want = got * 0.0
want[:] = 0.0
print("dQ of the sequence without keys:", got[0, :3], "want 0; not zero:", int((got != 0).sum()), "of", got.size)
raise SystemExit(int((got != 0).any()))
