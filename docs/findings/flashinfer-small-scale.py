"""FlashInfer's single prefill (fa2) of 3 keys: with a scale of 0 or 1e-8 keys behind the end take part, and a negative scale is NaN."""
import flashinfer
import numpy as np
import torch

torch.manual_seed(0)
q, k, v = (torch.randn(n, 1, 64, dtype=torch.bfloat16, device="cuda") for n in (16, 3, 3))
scores = q[:, 0].double() @ k[:, 0].double().T
got, want, sums = [], [], []
for scale in (0.0, 1e-8, -0.125):
    o, lse = flashinfer.single_prefill_with_kv_cache(q, k, v, sm_scale=scale, backend="fa2", return_lse=True)
    got.append(o[:, 0].float().cpu().numpy())
    want.append(((scores * scale).softmax(1) @ v[:, 0].double()).cpu().numpy())
    sums.append(round(lse[0, 0].double().exp2().item(), 2))
got, want = np.stack(got), np.stack(want)
print("scales 0, 1e-8, -0.125: O[0]", got[:, 0, 0], "want", want[:, 0, 0], "; sums of exponentials", sums, "of 3 keys")
wrong = ~(abs(got - want).max((1, 2)) < 0.05)
raise SystemExit(int(wrong.any()))
