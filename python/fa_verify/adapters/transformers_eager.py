"""The eager attention of transformers' models: Llama's, Gemma 2's where there is a softcap, and gpt-oss's where there are sinks.

Scores are rounded to the element type before they are scaled, and again after each step up to the softmax, which
runs in float32. A hidden key gets the type's lowest number, as the models' own masks have it, so that a row without
keys becomes the mean of all values. Sinks stay float32, and the softmax over them and the scores too."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from fa_verify.adapters._adapter import Adapter
from fa_verify.adapters._problem import Problem
from fa_verify.adapters._torch import swap, visible, with_gradients


def _refuses(p: Problem, backward: bool) -> str:
    if p.nothing_there:
        return "no rows or no keys"
    if p.has_sinks and p.some_row_is_empty:
        return "with sinks, a row without keys is its sink's or the mean of all values, whichever is larger"
    if p.has_sinks and p.softcap:
        return "the model with sinks has no softcap"
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
    from transformers.models.gpt_oss.modeling_gpt_oss import eager_attention_forward as with_sinks
    from transformers.models.llama.modeling_llama import eager_attention_forward as plain

    p = Problem(call.json)
    module = SimpleNamespace(num_key_value_groups=p.group, training=False, is_causal=p.causal, head_dim=p.head_dim)

    def forward(inputs: dict[str, Any]) -> Any:
        q, k, v = (swap(inputs[name]) for name in "qkv")
        mask = _mask(torch, p, inputs.get("bias", call.bias), call.q)
        more = {"softcap": p.softcap} if p.softcap else {}
        module.sinks = inputs.get("sinks", call.sinks)
        attend = with_sinks if p.has_sinks else with_softcap if p.softcap else plain
        o, _ = attend(module, q, k, v, mask, scaling=p.scale, dropout=0.0, **more)
        return o, None

    learnt = ("q", "k", "v") + ("bias",) * p.has_bias_grad + ("sinks",) * p.has_sinks_grad
    return with_gradients(call, learnt, forward)


KERNEL = Adapter(
    name="transformers_eager",
    what="eager attention of transformers' Llama, Gemma 2 and gpt-oss",
    library="transformers",
    modules=("torch", "transformers"),
    run=_run,
    features=(
        *("causal", "window", "top_left", "bottom_right", "gqa", "head_dim_v", "softcap", "bias", "bias_grad", "empty_lse"),
        *("sinks", "sinks_grad", "lse_without_sinks"),
    ),
    passes=("forward", "backward"),
    outputs=("o", "dq", "dk", "dv", "dbias", "dsinks"),
    empty_o="mean_v",
    arithmetic={"name": "torch-eager", "accumulator": "mma", "mma_block": 8, "mma_extra_bits": 1, "gqa_partials_rounded": True},
    refuses=_refuses,
    arrays="torch",
    device="auto",
).kernel()
