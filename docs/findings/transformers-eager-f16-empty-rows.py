"""Llama's eager attention in f16: a row hidden by the lowest number, as the models' own masks have it, is neither 0 nor a mean."""
from types import SimpleNamespace

import torch
from transformers.models.llama.modeling_llama import eager_attention_forward

q = torch.ones(1, 1, 1, 64).half()
k = torch.tensor([-8.0, 8.0]).half()[:, None].expand(1, 1, 2, 64)  # scores of -64 and 64
v = torch.tensor([0.0, 1.0]).half()[:, None].expand(1, 1, 2, 64)
mask = torch.full((1, 1, 1, 2), torch.finfo(torch.float16).min).half()
module = SimpleNamespace(num_key_value_groups=1, training=False)
got = eager_attention_forward(module, q, k, v, mask, scaling=0.125, dropout=0.0)[0][0, 0, 0].float().numpy()
want = torch.full((64,), 0.5).double().numpy()
low = eager_attention_forward(module, q, -abs(k), v, mask, scaling=0.125, dropout=0.0)[0][0, 0, 0, 0].item()  # both scores are -64
print("mean of 0 and 1: got", got[0], "and with low scores", low, "want", want[0])
raise SystemExit(int(not abs(got - want).max() < 1e-2))
