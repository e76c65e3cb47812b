"""FlashAttention 2 in PyTorch, packed: two sequences, one without a query, two query heads on one KV head: an error about a shape."""
import torch

q, k, v = (torch.ones(n, h, 64, dtype=torch.float16, device="cuda") for n, h in ((1, 2), (2, 1), (2, 1)))
ends_q, ends_k = (torch.tensor(x, dtype=torch.int32, device="cuda") for x in ([0, 0, 1], [0, 1, 2]))
try:
    out = torch.ops.aten._flash_attention_forward(q, k, v, ends_q, ends_k, 1, 1, 0.0, False, False)[0]
    said = ""
except RuntimeError as e:
    said = str(e).splitlines()[0]
print("one query, the other sequence has none:", said or f"O is {out[0, 0, 0].item()}, as it should be")
raise SystemExit(int(bool(said)))
