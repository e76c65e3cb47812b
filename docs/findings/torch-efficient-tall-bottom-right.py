"""Memory-efficient attention of PyTorch, causal from the bottom right, 65 rows and 64 keys: rows 0 to 62 see every key."""
import torch

torch.manual_seed(0)
q, k, v = (torch.randn(1, n, 1, 64, dtype=torch.float16, device="cuda") for n in (65, 64, 64))
bottom_right = 2
out = torch.ops.aten._efficient_attention_forward(q, k, v, None, None, None, None, None, 0.0, bottom_right, True)[0]
s = (q[0, :, 0].double() @ k[0, :, 0].double().T / 8).masked_fill(torch.ones(65, 64, device="cuda").triu(0).bool(), float("-inf"))
want = (s.softmax(1).nan_to_num(0.0) @ v[0, :, 0].double()).cpu().numpy()
got = out[0, :, 0].float().cpu().numpy()
wrong = abs(got - want).max(1) > 0.01
print("rows that are wrong:", wrong.sum(), "of 65; row 1 should be V's first row:", got[1, :2], "want", want[1, :2])
raise SystemExit(int(wrong.any()))
