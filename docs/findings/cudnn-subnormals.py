"""scaled_dot_product_attention of PyTorch by its cuDNN backend, bf16, V of 7e-40: O is 0."""
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

q, k = (torch.zeros(1, 1, 64, 64, dtype=torch.bfloat16, device="cuda") for _ in range(2))
v = torch.full((1, 1, 64, 64), 2.0**-130, dtype=torch.bfloat16, device="cuda")
with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
    got = torch.nn.functional.scaled_dot_product_attention(q, k, v)[0, 0, 0, :1].float().cpu().numpy()
want = v[0, 0, 0, :1].float().cpu().numpy()
print("O of equal values: got", got[0], "want", want[0])
raise SystemExit(int(got[0] != want[0]))
