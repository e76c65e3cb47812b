"""FlashAttention 3 with a view of K that begins two bytes late: no check, then CUDA error: an illegal instruction was encountered."""
import fa3_fwd_interface as fa3
import torch

q, k, v = (torch.randn(1, 64, 1, 64, dtype=torch.bfloat16, device="cuda") for _ in range(3))
odd = torch.empty(k.numel() + 1, dtype=k.dtype, device="cuda")[1:].view(k.shape).copy_(k)
want = fa3.flash_attn_func(q, k, v)
try:
    got = fa3.flash_attn_func(q, odd, v)
    wrong = not torch.allclose(got, want, atol=0.05)
    said = "O is wrong" if wrong else "right"
except Exception as e:
    wrong, said = "align" not in str(e).lower(), str(e).splitlines()[0]
print("K two bytes on:", said)
raise SystemExit(int(wrong))
