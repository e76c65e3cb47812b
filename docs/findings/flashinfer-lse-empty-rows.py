"""FlashInfer's prefill over pages (fa2), 17 queries and 13 keys, causal: the LSE of rows 0 to 3, which see no key, is finite."""
import flashinfer
import torch

work = torch.zeros(128 << 20, dtype=torch.uint8, device="cuda")
ints = [torch.tensor(x, dtype=torch.int32, device="cuda") for x in ([0, 17], [0, 1], [0], [13])]
q = torch.randn(17, 1, 64, dtype=torch.bfloat16, device="cuda")
pages = tuple(torch.randn(1, 16, 1, 64, dtype=torch.bfloat16, device="cuda") for _ in range(2))
wrapper = flashinfer.BatchPrefillWithPagedKVCacheWrapper(work, "NHD", backend="fa2")
wrapper.plan(*ints, 1, 1, 64, 16, q_data_type=q.dtype, kv_data_type=q.dtype, causal=True)
o, lse = wrapper.run(q, pages, return_lse=True)
got = lse[:4, 0].float().cpu().numpy()
want = got * 0 - float("inf")
print("LSE of rows without a key:", got, "want -inf; O:", o[:4].abs().max().item())
raise SystemExit(int((abs(got) < 1e30).any()))
