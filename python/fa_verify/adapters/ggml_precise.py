"""llama.cpp's flash attention on the processor, asked for float32 by ggml_flash_attn_ext_set_prec. Judged by what that says:
nothing is added up in f16."""

from __future__ import annotations

from typing import Any

from fa_verify.adapters import ggml
from fa_verify.adapters._adapter import Adapter

_PRECISION_F32 = 10  # ggml_prec


def _run(call: Any) -> Any:
    return ggml.run(call, precision=_PRECISION_F32)


KERNEL = Adapter(
    name="ggml_precise",
    what="llama.cpp's flash attention, asked for float32",
    library="xllamacpp",
    modules=("xllamacpp",),
    run=_run,
    dtypes=("f16",),
    features=ggml.FEATURES,
    limits=ggml.LIMITS,
    arithmetic={"name": "simt-f32"},
    refuses=ggml.refuses,
).kernel()
