"""flex_attention of PyTorch without torch.compile, forward only: every score at once, in the way that its users debug."""

from __future__ import annotations

from typing import Any

from fa_verify.adapters import _flex
from fa_verify.adapters._adapter import Adapter
from fa_verify.adapters._problem import Problem


def _refuses(p: Problem, backward: bool) -> str:
    if p.has_blocks and p.json["block_sparse"].get("from") != "mask_mod":
        return "without torch.compile it goes by mask_mod alone, not by block lists"
    if p.batch * p.heads_q * p.seqlen_q * p.seqlen_k > 1 << 28:
        return "too many scores to hold them all"
    return _flex.refuses(p, backward)


def _run(call: Any) -> Any:
    import torch.nn.attention.flex_attention as module

    module._FLEX_ATTENTION_DISABLE_COMPILE_DEBUG = True  # its own switch for running every line as it stands
    return _flex.run(call, module.flex_attention, False)


KERNEL = Adapter(
    name="torch_flex_eager",
    what="PyTorch flex_attention without compilation, forward",
    library="torch",
    modules=("torch",),
    run=_run,
    families=("flash", "memeff", "flex"),
    features=(*_flex.FEATURES, *_flex.BUFFERS),
    outputs=("o", "lse"),
    lse={"base": "e", "scaled": True, "layout": "as_call", "dtype": "f32", "empty": "-inf", "alibi": "distance"},
    arithmetic={"name": "torch-eager"},
    refuses=_refuses,
    arrays="torch",
).kernel()
