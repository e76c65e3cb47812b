"""Memory-efficient attention of PyTorch, a bias of the lowest number on every key of a row: O is the mean of V, as it should be, and the LSE 0."""
import torch

q, k, v = (torch.ones(1, n, 1, 64, dtype=torch.bfloat16, device="cuda") for n in (1, 8, 8))
lowest = torch.finfo(torch.bfloat16).min
bias = torch.full((1, 1, 1, 8), lowest, dtype=torch.bfloat16, device="cuda")
lse = torch.ops.aten._efficient_attention_forward(q, k, v, bias, None, None, None, None, 0.0, 0, True)[1]
got = lse[0, 0, :1].cpu().numpy()
want = torch.full((1, 8), lowest, dtype=torch.float64).logsumexp(1).numpy()
print("LSE: got", got[0], "want", want[0])
raise SystemExit(int(abs(got[0] - want[0]) > 1e36))
