"""FlashAttention 2 in PyTorch, 130 rows, 65 keys, a window without a right end: row 0 should see every key and sees one."""
import torch

torch.manual_seed(0)
q, k, v = (torch.randn(1, n, 1, 64, dtype=torch.float16, device="cuda") for n in (130, 65, 65))
options = {"window_size_left": 0, "window_size_right": -1}
out = torch.ops.aten._flash_attention_forward(q, k, v, None, None, 130, 65, 0.0, False, False, **options)[0]
i, j = torch.arange(130, device="cuda")[:, None] + 65 - 130, torch.arange(65, device="cuda")
s = (q[0, :, 0].double() @ k[0, :, 0].double().T / 8).masked_fill(j < i, float("-inf"))
got, want = (x.float().cpu().numpy() for x in (out[0, :, 0], s.softmax(1) @ v[0, :, 0].double()))
wrong = abs(got - want).max(1) > 0.01
print("rows that are wrong:", wrong.sum(), "of 130; row 0:", got[0, :2], "want", want[0, :2])
raise SystemExit(int(wrong.any()))
