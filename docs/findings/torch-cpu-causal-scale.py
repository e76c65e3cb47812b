"""scaled_dot_product_attention on the processor, causal, with a scale of 0 or less: NaN, where the same mask as a tensor is right."""
import torch
from torch.nn.functional import scaled_dot_product_attention as attention

torch.manual_seed(0)
q, k, v = torch.randn(3, 1, 1, 4, 8)
mask = torch.ones(4, 4, dtype=torch.bool).tril()
got = attention(q, k, v, is_causal=True, scale=-0.25).numpy()
s = (q.double() @ k.double().mT * -0.25).masked_fill(~mask, -float("inf"))
want = (s.softmax(-1) @ v.double()).numpy()
other = attention(q, k, v, attn_mask=mask, scale=-0.25).numpy()
print("is_causal:", got[0, 0, 0, :2], "attn_mask:", other[0, 0, 0, :2], "want", want[0, 0, 0, :2])
raise SystemExit(int(not abs(got - want).max() < 1e-3))
