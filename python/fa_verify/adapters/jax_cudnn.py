"""cuDNN attention under JAX, by the function that jax.nn.dot_product_attention calls: only it returns the LSE in float32."""

from __future__ import annotations

from typing import Any

from fa_verify.adapters import _jax
from fa_verify.adapters._adapter import Adapter, result
from fa_verify.adapters._problem import Problem


def _refuses(p: Problem, backward: bool) -> str:
    if p.nothing_there:
        return "no rows or no keys"
    if p.mask == "window" and (p.right != 0 or p.left < 0):
        return "its window ends at the diagonal and has a left edge"
    if p.has_bias and (p.seqlen_q % 2 or p.seqlen_k % 2):
        return "a bias goes with even lengths"
    if p.has_bias and (p.bias_spec["shape"][2] == 1 or p.masked):
        return "a bias has a row for every query, and no mask beside it"
    return ""


def _run(call: Any) -> Any:
    import jax
    from jax._src.cudnn.fused_attention_stablehlo import MaskType, dot_product_attention

    p = Problem(call.json)
    kind = MaskType.CAUSAL if p.right == 0 else MaskType.NO_MASK
    edge = p.left + 1 if p.left >= 0 else None  # it counts the row's own key

    def forward(q: Any, k: Any, v: Any, bias: Any, residual: bool = False) -> Any:
        return dot_product_attention(q, k, v, bias, scale=p.scale, mask_type=kind, sliding_window_length=edge, return_residual=residual)

    if not call.wants_gradients:
        o, lse = jax.jit(lambda *x: forward(*x, residual=True))(call.q, call.k, call.v, call.bias)
        return result(o=o, lse=lse)
    inputs = (call.q, call.k, call.v) + ((call.bias,) if p.has_bias_grad else ())
    both = jax.jit(lambda x, do: jax.vjp(lambda *y: forward(*y, *((call.bias,) if len(y) == 3 else ()), residual=True)[0], *x)[1](do))
    o, lse = jax.jit(lambda *x: forward(*x, residual=True))(call.q, call.k, call.v, call.bias)
    grads = both(inputs, call.do)
    return result(o=o, lse=lse, **{f"d{name}": g for name, g in zip(("q", "k", "v", "bias"), grads)})


KERNEL = Adapter(
    name="jax_cudnn",
    what="cuDNN attention under JAX",
    library="jax",
    modules=("jax", "jax._src.cudnn.fused_attention_stablehlo"),
    run=_run,
    dtypes=("f16", "bf16"),
    features=("causal", "window", "top_left", "gqa", "bias", "bias_grad", "empty_lse"),
    passes=("forward", "backward"),
    outputs=("o", "lse", "dq", "dk", "dv", "dbias"),
    lse={"base": "e", "scaled": True, "layout": "as_call", "dtype": "f32", "empty": "any"},
    empty_o="any",
    limits={"head_dim": {"max": 256, "multiple_of": 8}, "seqlen_k": {"min": 2}},
    arithmetic={"name": "wgmma-sm90", "delta": "stored_o", "ds_scaled": True, "dq_atomic": True, "dkv_atomic": True, "dbias_atomic": True, "gqa_partials_rounded": True},
    refuses=_refuses,
    missing=_jax.gpu_missing,
    arrays="jax",
).kernel()
