"""Adapters: attention kernels of other libraries, ready to be judged.

    fa-verify run --backend py:torch_cpu --cases cases/causal.json
    python -m fa_verify.adapters            # which there are, and which can run here

Each module holds one `KERNEL`, made of an :class:`fa_verify.adapters._adapter.Adapter`, and imports its library only
when it runs. docs/guide/adapters.md has the table of what each takes; a test holds it against the modules."""

from __future__ import annotations

import importlib

from fa_verify.adapters._adapter import AdapterKernel

#: All adapters, those that need no GPU first.
NAMES = (
    "numpy_reference",
    "torch_cpu",
    "torch_math",
    "torch_flex_eager",
    "transformers_eager",
    "jax_xla",
    "jax_xla_half",
    "jax_pallas",
    "jax_pallas_decode",
    "jax_pallas_paged",
    "ort_mha",
    "ort_gqa",
    "ort_attention",
    "mlx",
    "openvino",
    "openvino_static",
    "openvino_stateful",
    "ggml",
    "ggml_precise",
    "triton_example",
    "torch_flash",
    "torch_varlen",
    "torch_efficient",
    "torch_cudnn",
    "torch_flex",
    "torch_flex_decode",
    "jax_cudnn",
    "jax_mosaic",
    "flashinfer_single",
    "flashinfer_ragged",
    "flashinfer_paged",
    "flashinfer_decode",
    "cudnn_frontend",
    "cudnn_frontend_fp8",
    "sageattention",
    "flash_attn",
    "fa3_fwd",
    "fa3_jax",
)


def get(name: str) -> AdapterKernel:
    """The adapter of that name. KeyError: there is none."""
    if name not in NAMES:
        raise KeyError(f"there is no adapter {name!r}; there are {', '.join(NAMES)}")
    kernel: AdapterKernel = importlib.import_module(f"fa_verify.adapters.{name}").KERNEL
    return kernel
