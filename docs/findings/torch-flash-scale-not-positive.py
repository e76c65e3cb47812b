"""scaled_dot_product_attention of PyTorch by its FlashAttention backend with a negative scale, and with 0: NaN; the math backend is right."""
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

torch.manual_seed(0)
q, k, v = (torch.randn(1, 1, 16, 64, dtype=torch.float16, device="cuda") for _ in range(3))


def attention(backend, scale):
    with sdpa_kernel(backend):
        return torch.nn.functional.scaled_dot_product_attention(q, k, v, scale=scale).float().cpu().numpy()


got, want = attention(SDPBackend.FLASH_ATTENTION, -0.125), attention(SDPBackend.MATH, -0.125)
zero = attention(SDPBackend.FLASH_ATTENTION, 0.0)
print("scale -0.125: got", got[0, 0, 0, :2], "want", want[0, 0, 0, :2], "; scale 0: got", zero[0, 0, 0, :2])
raise SystemExit(int((got != got).any() or (zero != zero).any()))
