"""sageattn of SageAttention 1.0.6 with a single key: O is V / 64 instead of V; of 65 keys that are equal it is 65 / 128 of it."""
import torch
from sageattention import sageattn

got = {}
for keys in (1, 65, 128):
    q, k, v = (torch.ones(1, 1, n, 64, dtype=torch.float16, device="cuda") for n in (1, keys, keys))
    got[keys] = sageattn(q, k, v)[0, 0, 0, 0].item()
print("O of values of 1, by number of keys:", got, "want 1")
raise SystemExit(int(abs(got[1] - 1) > 0.1 or abs(got[65] - 1) > 0.1))
