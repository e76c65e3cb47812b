"""jax.nn.dot_product_attention as XLA compiles it, float32. Matrix products run in full precision, which is not JAX's
default on a GPU."""

from __future__ import annotations

from typing import Any

from fa_verify.adapters import _jax
from fa_verify.adapters._adapter import Adapter
from fa_verify.adapters._problem import Problem

FEATURES = ("causal", "window", "top_left", "bottom_right", "gqa", "bias", "bias_grad", "empty_lse")


def refuses(p: Problem, backward: bool) -> str:
    if p.nothing_there:
        return "no rows or no keys"
    return ""


def mask_of(p: Problem) -> dict[str, Any]:
    """The built-in mask as arguments: its own causal mask and window where they mean the same, else every pair."""
    own = p.top_left or p.square
    if not p.masked:
        return {}
    if p.causal and own:
        return {"is_causal": True}
    if own and p.left >= 0 and p.right >= 0:
        return {"local_window_size": (p.left, p.right)}
    return {"mask": _jax.visible(p)[None, None]}


def run(call: Any, implementation: str = "xla") -> Any:
    import jax

    p = Problem(call.json)
    arguments = mask_of(p)

    def forward(inputs: dict[str, Any]) -> Any:
        bias = inputs.get("bias", call.bias)
        return jax.nn.dot_product_attention(
            inputs["q"], inputs["k"], inputs["v"], bias=bias, scale=p.scale, implementation=implementation, return_residual=True, **arguments
        )

    names = ("q", "k", "v", "bias") if p.has_bias_grad else ("q", "k", "v")
    with jax.default_matmul_precision("highest"):
        return _jax.with_gradients(call, names, forward, compiled=p.dtype != "f16" or not _jax.gpu_missing())


KERNEL = Adapter(
    name="jax_xla",
    what="jax.nn.dot_product_attention by XLA, f32",
    library="jax",
    modules=("jax",),
    run=run,
    dtypes=("f32",),
    features=FEATURES,
    passes=("forward", "backward"),
    outputs=("o", "lse", "dq", "dk", "dv", "dbias"),
    lse={"base": "e", "scaled": True, "layout": "tokens_heads", "dtype": "f32", "empty": "any"},
    empty_o="mean_v",
    arithmetic={"name": "numpy-f32", "delta": "sum_p_dp", "p_kept": True},
    refuses=refuses,
    arrays="jax",
).kernel()
