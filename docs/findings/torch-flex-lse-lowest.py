"""flex_attention without torch.compile: a score of float32's lowest number, as masks often have it, gives an LSE of -inf."""
import warnings

import torch
import torch.nn.attention.flex_attention as flex

warnings.simplefilter("ignore")  # that it is not compiled
q = k = v = torch.ones(1, 1, 2, 8)
lowest = torch.finfo(torch.float32).min
_, aux = flex.flex_attention(q, k, v, score_mod=lambda s, b, h, i, j: s * 0 + lowest, return_aux=flex.AuxRequest(lse=True))
got = aux.lse.numpy()
want = torch.full((1, 1, 2, 2), lowest, dtype=torch.float64).logsumexp(-1).numpy()
print("LSE: got", got[0, 0, 0], "want", want[0, 0, 0])
raise SystemExit(int(abs(got[0, 0, 0]) == float("inf")))
