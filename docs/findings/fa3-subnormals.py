"""FlashAttention 3, bf16, V of 7e-40: O is 0."""
import fa3_fwd_interface as fa3
import torch

q, k = (torch.zeros(1, 64, 1, 64, dtype=torch.bfloat16, device="cuda") for _ in range(2))
v = torch.full((1, 64, 1, 64), 2.0**-130, dtype=torch.bfloat16, device="cuda")
got, want = fa3.flash_attn_func(q, k, v)[0, 0, 0, :1].float().cpu().numpy(), v[0, 0, 0, :1].float().cpu().numpy()
print("O of equal values: got", got[0], "want", want[0])
raise SystemExit(int(got[0] != want[0]))
