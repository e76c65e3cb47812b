"""Gradients in bf16 on the processor: dO below the smallest normal number counts as 0, though dV is above it."""
import torch

q, k = torch.zeros(1, 1, 300, 8).bfloat16(), torch.zeros(1, 1, 40, 8).bfloat16()
v = k.clone().requires_grad_()
do = torch.full((1, 1, 300, 8), 2.0**-127).bfloat16()  # bf16 holds it; 300 rows, of each a 40th
torch.nn.functional.scaled_dot_product_attention(q, k, v).backward(do)
got, want = v.grad.float().numpy(), (do.double().sum(2, keepdim=True) / 40).expand(1, 1, 40, 8).numpy()
print("dV: got", got[0, 0, 0, 0], "want", want[0, 0, 0, 0], "smallest normal number", torch.finfo(torch.bfloat16).smallest_normal)
raise SystemExit(int((got == 0).any()))
