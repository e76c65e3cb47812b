"""Llama's eager attention, causal, with a first key that is padding: row 0 sees later keys as well as its own."""
from types import SimpleNamespace

import numpy as np
import torch
from transformers.models.llama.modeling_llama import eager_attention_forward

q, k, v = torch.from_numpy(np.random.default_rng(0).standard_normal((3, 1, 1, 4, 8), np.float32))
lowest = torch.finfo(torch.float32).min
mask = torch.full((1, 1, 4, 4), lowest).triu(1)  # causal, as the models make it
mask[..., 0] = lowest  # and the first token is padding
module = SimpleNamespace(num_key_value_groups=1, training=False)
got = eager_attention_forward(module, q, k, v, mask, scaling=8**-0.5, dropout=0.0)[0][0, 0, 0].numpy()
want = v[0, 0, 0].numpy()  # its only key; or 0
every = v[0, 0].mean(0).numpy()
print("row 0: got", got[:3], "mean of all keys, later ones too", every[:3], "want", want[:3])
raise SystemExit(int(abs(got - every).max() < 1e-5))
