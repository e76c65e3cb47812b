"""scaled_dot_product_attention of PyTorch by its cuDNN backend: 192 keys, every logit -120: dQ is NaN (0 is right, since all keys are equal)."""
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

q = torch.ones(1, 1, 64, 64, dtype=torch.float16, device="cuda", requires_grad=True)
k = torch.full((1, 1, 192, 64), -15.0, dtype=torch.float16, device="cuda", requires_grad=True)
v = torch.randn(1, 1, 192, 64, dtype=torch.float16, device="cuda", requires_grad=True)
mask = torch.zeros(1, 1, 64, 192, dtype=torch.float16, device="cuda")
want, nan = torch.zeros_like(q).float().detach().cpu().numpy(), {}
for name, more in (("without a mask", {}), ("with a mask of zeros", {"attn_mask": mask})):
    with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
        o = torch.nn.functional.scaled_dot_product_attention(q, k, v, **more)
    got = torch.autograd.grad(o.sum(), q)[0].float().cpu().numpy()
    nan[name] = int((got != got).sum())
print("NaN in dQ:", nan, "of", q.numel())
raise SystemExit(int(max(nan.values()) > 0))
