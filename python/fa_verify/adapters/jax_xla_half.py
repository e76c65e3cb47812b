"""jax.nn.dot_product_attention as XLA compiles it, f16 and bf16. Its LSE is rounded to the keys' type."""

from __future__ import annotations

from fa_verify.adapters import _jax, jax_xla
from fa_verify.adapters._adapter import Adapter
from fa_verify.adapters._problem import Problem


def _refuses(p: Problem, backward: bool) -> str:
    if p.dtype == "f16" and _jax.gpu_missing():
        return "JAX asks for products of f16 that XLA has not on a processor"
    return jax_xla.refuses(p, backward)


KERNEL = Adapter(
    name="jax_xla_half",
    what="jax.nn.dot_product_attention by XLA, f16 and bf16",
    library="jax",
    modules=("jax",),
    run=jax_xla.run,
    dtypes=("f16", "bf16"),
    features=jax_xla.FEATURES,
    passes=("forward", "backward"),
    outputs=("o", "lse", "dq", "dk", "dv", "dbias"),
    lse={"base": "e", "scaled": True, "layout": "tokens_heads", "dtype": "io", "empty": "any"},
    empty_o="mean_v",
    arithmetic={"name": "torch-eager", "scores": "f32", "accumulator": "mma", "mma_block": 8, "mma_extra_bits": 1},
    refuses=_refuses,
    arrays="jax",
).kernel()
