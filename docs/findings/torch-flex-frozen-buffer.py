"""Compiled flex_attention whose score_mod has a frozen buffer and a learnt number: "must be a StorageBox, but got TensorBox"."""
import torch
from torch.nn.attention.flex_attention import flex_attention

q, k, v = (torch.randn(1, 2, 70, 64, dtype=torch.float16, device="cuda", requires_grad=True) for _ in range(3))
scales, one = torch.rand(2, device="cuda"), torch.tensor(1.0, device="cuda", requires_grad=True)
try:
    torch.compile(flex_attention)(q, k, v, score_mod=lambda s, b, h, i, j: s * scales[h] + one).sum().backward()
    said = ""
except Exception as e:
    said = [x for x in str(e).splitlines() if "Error" in x or "must be" in x][:1]
print("a frozen buffer beside a learnt number:", said or "compiles")
raise SystemExit(int(bool(said)))
