"""FlashInfer's single prefill (fa2) with a view of K that begins two bytes late: no check, then CUDA error: misaligned address."""
import flashinfer
import torch

q, k, v = (torch.randn(64, 1, 64, dtype=torch.bfloat16, device="cuda") for _ in range(3))
odd = torch.empty(k.numel() + 1, dtype=k.dtype, device="cuda")[1:].view(k.shape).copy_(k)
want = flashinfer.single_prefill_with_kv_cache(q, k, v, backend="fa2").float().cpu().numpy()
try:
    got = flashinfer.single_prefill_with_kv_cache(q, odd, v, backend="fa2").float().cpu().numpy()
    wrong = abs(got - want).max() > 0.05
    said = "O is wrong" if wrong else "right"
except Exception as e:
    said = next((line for line in str(e).splitlines() if "misaligned" in line), str(e)[:200])
    try:
        torch.zeros(1, device="cuda").cpu()
        wrong = "misaligned address" in said
    except Exception:
        wrong, said = True, said + "; no later call succeeds"
print("K two bytes on:", said)
raise SystemExit(int(wrong))
