"""FlashInfer's single prefill (fa2), bf16, V of 2^-130 throughout: O is 0."""
import flashinfer
import torch

q, k = (torch.zeros(64, 1, 64, dtype=torch.bfloat16, device="cuda") for _ in range(2))
v = torch.full((64, 1, 64), 2.0**-130, dtype=torch.bfloat16, device="cuda")
o = flashinfer.single_prefill_with_kv_cache(q, k, v, backend="fa2")
got, want = o[0, 0, :1].float().cpu().numpy(), v[0, 0, :1].float().cpu().numpy()
print("O of equal values: got", got[0], "want", want[0])
raise SystemExit(int(got[0] != want[0]))
