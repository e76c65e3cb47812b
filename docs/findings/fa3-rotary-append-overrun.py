"""FlashAttention 3, head_dim 32, one new key with rotary embedding (not interleaved): 16 elements behind its slot of the cache become 0."""
import fa3_fwd_interface as fa3
import torch

q, k, v = (torch.ones(1, 1, 1, 32, dtype=torch.bfloat16, device="cuda") for _ in range(3))
k_cache, v_cache = (torch.full((2, 16, 1, 32), 7.0, dtype=torch.bfloat16, device="cuda") for _ in range(2))
cos, sin = torch.ones(16, 16, dtype=q.dtype, device="cuda"), torch.zeros(16, 16, dtype=q.dtype, device="cuda")
used = torch.tensor([5], dtype=torch.int32, device="cuda")
row = torch.tensor([0], dtype=torch.int32, device="cuda")
fa3.flash_attn_with_kvcache(
    q, k_cache, v_cache, k, v, rotary_cos=cos, rotary_sin=sin, cache_seqlens=used, cache_batch_idx=row, causal=True, rotary_interleaved=False
)
got, want = k_cache[:, :, 0].float().cpu().numpy(), torch.full((2, 16, 32), 7.0).numpy()
want[0, 5] = 1
wrong = got != want
rows, slots, columns = wrong.nonzero()
print("the new key is in slot 5; changed beside it (row, slot, column):", rows[:3], slots[:3], columns[:20], "; got", got[wrong][:2], "want", want[wrong][:2])
raise SystemExit(int(wrong.any()))
