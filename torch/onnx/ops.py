"""Operators of ONNX as functions of torch: they compute what their standard says, and become the
operators themselves in an exported model."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

__all__ = [
    "aten_decompositions",
    "attention",
    "rotary_embedding",
    "symbolic",
    "symbolic_multi_out",
]

_Attribute = int | float | str | bool | Sequence[int] | Sequence[float] | Sequence[str]


def aten_decompositions() -> dict[torch._ops.OpOverload, Callable[..., object]]:
    """What operators of this module are made of, for ExportedProgram.run_decompositions."""
    from torch.onnx import _operators

    return {
        torch.ops.onnx.Attention.opset23: _operators.attention,
        torch.ops.onnx.RotaryEmbedding.opset23: _operators.rotary_embedding,
    }


def symbolic(
    domain_op: str,
    /,
    inputs: Sequence[Tensor | None],
    attrs: dict[str, _Attribute] | None = None,
    *,
    dtype: torch.dtype | int,
    shape: Sequence[int | torch.SymInt],
    version: int | None = None,
    metadata_props: dict[str, str] | None = None,
) -> Tensor:
    """An operator of ONNX by its name, with one result of the given type and sizes. It cannot be
    computed here: a call returns zeros, and a model gets the operator."""
    (result,) = symbolic_multi_out(
        domain_op,
        inputs,
        attrs,
        dtypes=(dtype,),
        shapes=(shape,),
        version=version,
        metadata_props=metadata_props,
    )
    return result


def symbolic_multi_out(
    domain_op: str,
    /,
    inputs: Sequence[Tensor | None],
    attrs: dict[str, _Attribute] | None = None,
    *,
    dtypes: Sequence[torch.dtype | int],
    shapes: Sequence[Sequence[int | torch.SymInt]],
    version: int | None = None,
    metadata_props: dict[str, str] | None = None,
) -> Sequence[Tensor]:
    """As `symbolic`, with several results."""
    from torch.onnx import _operators

    if len(shapes) != len(dtypes):
        raise ValueError(
            f"Number of shapes ({len(shapes)}) must match number of dtypes ({len(dtypes)})"
        )
    return _operators.symbolic(
        domain_op, inputs, attrs or {}, dtypes, shapes, version, metadata_props or {}
    )


def rotary_embedding(
    X: Tensor,
    cos_cache: Tensor,
    sin_cache: Tensor,
    position_ids: Tensor | None = None,
    *,
    interleaved: bool = False,
    num_heads: int = 0,
    rotary_embedding_dim: int = 0,
) -> Tensor:
    """RotaryEmbedding of ONNX: pairs of X's last dimension turned by angles whose cosines and sines
    are given, by position or, without position_ids, for each place."""
    from torch.onnx import _operators as _operators  # defines the operator

    return torch.ops.onnx.RotaryEmbedding.opset23(
        X,
        cos_cache,
        sin_cache,
        position_ids,
        interleaved=interleaved,
        num_heads=num_heads,
        rotary_embedding_dim=rotary_embedding_dim,
    )


def attention(
    Q: Tensor,
    K: Tensor,
    V: Tensor,
    attn_mask: Tensor | None = None,
    past_key: Tensor | None = None,
    past_value: Tensor | None = None,
    *,
    is_causal: bool = False,
    kv_num_heads: int = 0,
    q_num_heads: int = 0,
    qk_matmul_output_mode: int = 0,
    scale: float | None = None,
    softcap: float = 0.0,
    softmax_precision: int | None = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Attention of ONNX: (result, keys and values with those of the past, scores)."""
    from torch.onnx import _operators as _operators  # defines the operator

    return torch.ops.onnx.Attention.opset23(
        Q,
        K,
        V,
        attn_mask,
        past_key,
        past_value,
        is_causal=is_causal,
        kv_num_heads=kv_num_heads,
        q_num_heads=q_num_heads,
        qk_matmul_output_mode=qk_matmul_output_mode,
        scale=scale,
        softcap=softcap,
        softmax_precision=softmax_precision,
    )
