"""sageattn of SageAttention 1.0.6, causal, 192 tokens: rows from 128 on are NaN when NaN lies behind its scales in memory."""
import torch
from sageattention import sageattn

torch.manual_seed(0)
q, k, v = (torch.randn(1, 1, 192, 64, dtype=torch.float16, device="cuda") for _ in range(3))
sageattn(q, k.clone(), v, is_causal=True)
used = [torch.full((128,), float("nan"), device="cuda") for _ in range(4096)]
del used  # the allocator hands these blocks out again: 512 bytes each, as its scales have
got = sageattn(q, k.clone(), v, is_causal=True)[0, 0].float().cpu().numpy()
want = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)[0, 0].float().cpu().numpy()
nan = (got != got).any(1)
print("rows that are NaN:", nan.sum(), "of 192, the first:", nan.argmax())
raise SystemExit(int(nan.any()))
