"""varlen_attn of PyTorch with a gradient of O that begins two bytes late: CUDA error: misaligned address."""
import torch
from torch.nn.attention.varlen import varlen_attn

q, k, v = (torch.randn(40, 1, 64, dtype=torch.bfloat16, device="cuda", requires_grad=True) for _ in range(3))
ends = torch.tensor([0, 40], dtype=torch.int32, device="cuda")
o = varlen_attn(q, k, v, ends, ends, 40, 40)
do = torch.randn_like(o)
odd = torch.empty(o.numel() + 1, dtype=o.dtype, device="cuda")[1:].view(o.shape).copy_(do)
want = torch.autograd.grad(o, v, do, retain_graph=True)[0]
try:
    wrong = not torch.allclose(torch.autograd.grad(o, v, odd)[0], want, atol=0.05)
    said = "dV is wrong" if wrong else "right"
except RuntimeError as e:
    wrong, said = "misaligned" in str(e), str(e).splitlines()[0]
print("dO two bytes on:", said)
raise SystemExit(int(wrong))
