"""jax.nn.dot_product_attention as XLA compiles it, f16 and bf16. Its LSE is rounded to the keys' type.
On a processor f16 runs without jax.jit, under which JAX asks XLA for products that it has not there."""

from __future__ import annotations

from fa_verify.adapters import jax_xla
from fa_verify.adapters._adapter import Adapter


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
    refuses=jax_xla.refuses,
    arrays="jax",
).kernel()
