"""FlashAttention 2 in PyTorch, backward of 8300 sequences of one row, 16 heads of 128 columns: its sums of dQ, by whole tiles, have more than 2^31 elements."""
import torch

torch.manual_seed(0)
ops = torch.ops.aten
q, k, v, do = (torch.randn(8300, 1, 16, 128, dtype=torch.bfloat16, device="cuda") for _ in range(4))
o, lse, rng, unused, _ = ops._flash_attention_forward(q, k, v, None, None, 1, 1, 0.0, False, False)
try:
    dv = ops._flash_attention_backward(do, q, k, v, o, lse, None, None, 1, 1, 0.0, False, rng, unused)[2]
    wrong = bool((dv != do).any())
    said = "dV is not dO" if wrong else "right"
except RuntimeError as e:
    wrong, said = "CUDA error" in str(e) and "out of memory" not in str(e), str(e).splitlines()[0]
print("gradients of a single key:", said)
raise SystemExit(int(wrong))
