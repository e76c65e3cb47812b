"""The eager attention of transformers' models: Llama's, and Gemma 2's where there is a softcap.

Scores are rounded to the element type before they are scaled, and again after each step up to the softmax, which
runs in float32. A hidden key gets the type's lowest number, as the models' own masks have it, so that a row without
keys becomes the mean of all values. Attention sinks, which other models pass to the same function, are left out until
cases have them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from fa_verify.adapters._adapter import Adapter
from fa_verify.adapters._problem import Problem
from fa_verify.adapters._torch import swap, visible, with_gradients


def _refuses(p: Problem, backward: bool) -> str:
    if p.nothing_there:
        return "no rows or no keys"
    return ""


def _mask(torch: Any, p: Problem, bias: Any, like: Any) -> Any:
    """An additive mask of the element type, or None."""
    shown, lowest = visible(torch, p, like.device), torch.finfo(like.dtype).min
    if bias is not None:
        # As models have it; -inf would leave hidden keys above the others. (clamp has no gradient at the lowest number itself.)
        bias = bias.masked_fill(bias == float("-inf"), lowest)
    if shown is None:
        return bias
    if bias is None:
        return torch.zeros(shown.shape, dtype=like.dtype, device=like.device).masked_fill(~shown, lowest)[None, None]
    return bias.masked_fill(~shown, lowest)


def _run(call: Any) -> Any:
    import torch
    from transformers.models.gemma2.modeling_gemma2 import eager_attention_forward as with_softcap
    from transformers.models.llama.modeling_llama import eager_attention_forward as plain

    p = Problem(call.json)
    module = SimpleNamespace(num_key_value_groups=p.group, training=False, is_causal=p.causal, head_dim=p.head_dim)

    def forward(inputs: dict[str, Any]) -> Any:
        q, k, v = (swap(inputs[name]) for name in "qkv")
        mask = _mask(torch, p, inputs.get("bias", call.bias), call.q)
        more = {"softcap": p.softcap} if p.softcap else {}
        o, _ = (with_softcap if p.softcap else plain)(module, q, k, v, mask, scaling=p.scale, dropout=0.0, **more)
        return o, None

    return with_gradients(call, ("q", "k", "v", "bias") if p.has_bias_grad else ("q", "k", "v"), forward)


KERNEL = Adapter(
    name="transformers_eager",
    what="eager attention of transformers' Llama and Gemma 2",
    library="transformers",
    modules=("torch", "transformers"),
    run=_run,
    features=("causal", "window", "top_left", "bottom_right", "gqa", "head_dim_v", "softcap", "bias", "bias_grad", "empty_lse"),
    passes=("forward", "backward"),
    outputs=("o", "dq", "dk", "dv", "dbias"),
    empty_o="mean_v",
    arithmetic={"name": "torch-eager", "accumulator": "mma", "mma_block": 8, "mma_extra_bits": 1, "gqa_partials_rounded": True},
    refuses=_refuses,
    arrays="torch",
    device="auto",
).kernel()
