"""How CUDA computes matrix products and attention."""

from __future__ import annotations

import contextlib
from typing import Any

import torch
from torch import _C
from torch.backends import _fp32

__all__ = [
    "allow_fp16_bf16_reduction_math_sdp",
    "cudnn_sdp_enabled",
    "enable_cudnn_sdp",
    "enable_flash_sdp",
    "enable_math_sdp",
    "enable_mem_efficient_sdp",
    "flash_sdp_enabled",
    "fp16_bf16_reduction_math_sdp_allowed",
    "is_built",
    "is_flash_attention_available",
    "math_sdp_enabled",
    "matmul",
    "mem_efficient_sdp_enabled",
    "preferred_blas_library",
    "preferred_linalg_library",
    "sdp_kernel",
]


def is_built() -> bool:
    """Whether this is a build with CUDA on this machine: see torch/version.py."""
    return torch.has_cuda


class cuBLASModule:
    """torch.backends.cuda.matmul. `allow_tf32` is another view of
    torch.set_float32_matmul_precision."""

    _SWITCHES = {
        "allow_fp16_reduced_precision_reduction": True,
        "allow_bf16_reduced_precision_reduction": True,
        "allow_fp16_accumulation": False,
    }

    def __init__(self) -> None:
        self.__dict__.update(self._SWITCHES)

    @property
    def allow_tf32(self):
        return torch.get_float32_matmul_precision() != "highest"

    @property
    def fp32_precision(self) -> str:
        return _fp32.effective("cuda.matmul")

    def __setattr__(self, name, value) -> None:
        if name == "allow_tf32":
            _fp32.set_own("cuda.matmul", "tf32" if value else "ieee")
        elif name == "fp32_precision":
            _fp32.set_own("cuda.matmul", value)
        elif name in self._SWITCHES:
            self.__dict__[name] = value
        else:
            raise AttributeError("Unknown attribute " + name)

    def __getattr__(self, name) -> Any:
        raise AttributeError("Unknown attribute " + name)


matmul = cuBLASModule()


def preferred_blas_library(backend=None) -> str:
    """Which library computes matrix products: always cuBLASLt."""
    if backend not in (None, "default", "cublaslt"):
        raise NotImplementedError(f"preferred_blas_library: {backend!r} is not used, only cublaslt")
    return "cublaslt"


def preferred_linalg_library(backend=None) -> str:
    """Which library computes decompositions: always cuSOLVER."""
    if backend not in (None, "default", "cusolver"):
        raise NotImplementedError(
            f"preferred_linalg_library: {backend!r} is not used, only cusolver"
        )
    return "cusolver"


# ---- attention

_sdp = {
    "math": True,
    "flash": True,
    "mem_efficient": True,
    "cudnn": True,
    "overrideable": True,
    "reduction": False,
}
# In the order of the bits that the operator reads.
_SDP_BITS = ("math", "flash", "mem_efficient", "cudnn", "overrideable")


def _set_sdp(**switches) -> None:
    """Changes some switches, here and for the operator."""
    _sdp.update({name: bool(value) for name, value in switches.items()})
    _C._set_sdp_backends(sum(1 << bit for bit, name in enumerate(_SDP_BITS) if _sdp[name]))


def flash_sdp_enabled() -> bool:
    """Whether flash attention may be used."""
    return _sdp["flash"]


def enable_flash_sdp(enabled) -> None:
    """Lets flash attention be used, or not."""
    _set_sdp(flash=enabled)


def mem_efficient_sdp_enabled() -> bool:
    """Whether memory-efficient attention may be used."""
    return _sdp["mem_efficient"]


def enable_mem_efficient_sdp(enabled) -> None:
    """Lets memory-efficient attention be used, or not."""
    _set_sdp(mem_efficient=enabled)


def math_sdp_enabled() -> bool:
    """Whether attention may be composed from products."""
    return _sdp["math"]


def enable_math_sdp(enabled) -> None:
    """Lets attention be composed from products, or not."""
    _set_sdp(math=enabled)


def cudnn_sdp_enabled() -> bool:
    """Whether cuDNN's attention may be used."""
    return _sdp["cudnn"]


def enable_cudnn_sdp(enabled) -> None:
    """Lets cuDNN's attention be used, or not."""
    _set_sdp(cudnn=enabled)


def fp16_bf16_reduction_math_sdp_allowed() -> bool:
    """Whether composed attention may sum in half precision."""
    return _sdp["reduction"]


def allow_fp16_bf16_reduction_math_sdp(enabled) -> None:
    """Lets composed attention sum in half precision, or not."""
    _set_sdp(reduction=enabled)


def is_flash_attention_available() -> bool:
    """Whether there is a flash attention kernel."""
    return False


@contextlib.contextmanager
def sdp_kernel(
    enable_flash=True, enable_math=True, enable_mem_efficient=True, enable_cudnn=True
) -> Any:
    """Chooses the kinds of attention for the with statement's body."""
    saved = dict(_sdp)
    _set_sdp(
        flash=enable_flash, math=enable_math, mem_efficient=enable_mem_efficient, cudnn=enable_cudnn
    )
    try:
        yield {}
    finally:
        _set_sdp(**saved)


class SDPAParams:
    """The arguments of an attention, to ask which kernels would take it."""

    def __init__(self, query, key, value, attn_mask, dropout, is_causal, enable_gqa) -> None:
        self.query, self.key, self.value = query, key, value
        self.attn_mask, self.dropout = attn_mask, dropout
        self.is_causal, self.enable_gqa = is_causal, enable_gqa


def _refused(debug, reason) -> bool:
    if debug:
        import warnings

        warnings.warn(reason, stacklevel=3)
    return False


def can_use_flash_attention(params, debug=False) -> bool:
    """Whether the fused attention takes these arguments."""
    query = params.query
    if not query.is_cuda:
        return _refused(debug, f"the tensors are on {query.device}, not on a GPU")
    if params.attn_mask is not None or params.dropout > 0 or params.enable_gqa:
        return _refused(debug, "the fused attention takes no mask, dropout or grouped heads")
    return query.dim() == 4


def can_use_efficient_attention(params, debug=False) -> bool:
    """Whether the fused attention takes these arguments."""
    return can_use_flash_attention(params, debug)


def can_use_cudnn_attention(params, debug=False) -> bool:
    """Whether cuDNN's attention takes these arguments; it is not used."""
    return _refused(debug, "cuDNN is not used")


def is_ck_sdpa_available() -> bool:
    """Whether AMD's attention can be used; it cannot."""
    return False


def __getattr__(name) -> Any:
    if name == "SDPBackend":
        from torch.nn.attention import SDPBackend

        return SDPBackend
    raise AttributeError(f"module 'torch.backends.cuda' has no attribute '{name}'")
