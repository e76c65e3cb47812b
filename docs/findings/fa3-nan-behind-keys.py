"""FlashAttention 3 over a cache of 16 slots of which 10 are used, NaN in V of the others: O is NaN."""
import fa3_fwd_interface as fa3
import torch

torch.manual_seed(0)
q, k, v = (torch.randn(1, n, 1, 64, dtype=torch.bfloat16, device="cuda") for n in (1, 16, 16))
used = torch.tensor([10], dtype=torch.int32, device="cuda")
want = fa3.flash_attn_with_kvcache(q, k, v, cache_seqlens=used)[0, 0, 0].float().cpu().numpy()
v[:, 10:] = float("nan")
got = fa3.flash_attn_with_kvcache(q, k, v, cache_seqlens=used)[0, 0, 0].float().cpu().numpy()
print("O with NaN behind the used slots:", got[:2], "and with numbers there:", want[:2])
raise SystemExit(int((got != got).any()))
