"""FlashInfer's prefill of packed sequences (fa2), 200 queries and 100 keys, causal: rows 0 to 127 see keys 0 to 63, whatever the mask says."""
import flashinfer
import torch

torch.manual_seed(0)
q, k, v = (torch.randn(n, 1, 64, dtype=torch.bfloat16, device="cuda") for n in (200, 100, 100))
ends_q, ends_k = (torch.tensor(x, dtype=torch.int32, device="cuda") for x in ([0, 200], [0, 100]))
work = torch.zeros(128 << 20, dtype=torch.uint8, device="cuda")
wrapper = flashinfer.BatchPrefillWithRaggedKVCacheWrapper(work, "NHD", backend="fa2")
wrapper.plan(ends_q, ends_k, 1, 1, 64, q_data_type=q.dtype, kv_data_type=k.dtype, causal=True)
o, lse = wrapper.run(q, k, v, return_lse=True)
hidden = torch.arange(100, device="cuda") > torch.arange(200, device="cuda")[:, None] - 100
s = (q[:, 0].double() @ k[:, 0].double().T / 8).masked_fill(hidden, -float("inf"))
got, want = o[:, 0].float().cpu().numpy(), (s.softmax(1).nan_to_num() @ v[:, 0].double()).cpu().numpy()
wrong = ~(abs(got - want).max(1) < 0.05)
rows = wrong.nonzero()[0]
print(len(rows), "rows are wrong:", rows[:1], "to", rows[-1:], "; row 100, which sees key 0 alone: O", got[100, :2], "want", want[100, :2], "; LSE of row 0:", lse[0, 0].item())
raise SystemExit(int(wrong.any()))
