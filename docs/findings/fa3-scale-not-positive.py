"""FlashAttention 3 with a negative scale, and with 0: NaN."""
import fa3_fwd_interface as fa3
import torch

torch.manual_seed(0)
q, k, v = (torch.randn(1, 16, 1, 64, dtype=torch.bfloat16, device="cuda") for _ in range(3))
s = -q[0, :, 0].double() @ k[0, :, 0].double().T / 8
want = (s.softmax(1) @ v[0, :, 0].double()).cpu().numpy()
got, zero = (fa3.flash_attn_func(q, k, v, softmax_scale=x)[0, :, 0].float().cpu().numpy() for x in (-0.125, 0.0))
print("scale -0.125: got", got[0, :2], "want", want[0, :2], "; scale 0: got", zero[0, :2])
raise SystemExit(int((got != got).any() or (zero != zero).any()))
