"""What torch.onnx.ops calls: operators of the namespaces `onnx`, which compute what the standard of
ONNX says, and `onnx_symbolic`, which only stand for a node of a model."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence

import torch
from torch import Tensor

__all__ = ["attention", "rotary_embedding", "symbolic"]

# ONNX's numbers for element types.
_DTYPES = {
    1: torch.float32,
    2: torch.uint8,
    3: torch.int8,
    4: torch.uint16,
    5: torch.int16,
    6: torch.int32,
    7: torch.int64,
    9: torch.bool,
    10: torch.float16,
    11: torch.float64,
    12: torch.uint32,
    13: torch.uint64,
    14: torch.complex64,
    15: torch.complex128,
    16: torch.bfloat16,
}

_library = torch.library.Library("onnx", "DEF")
_library.define(
    "RotaryEmbedding.opset23(Tensor X, Tensor cos_cache, Tensor sin_cache, "
    "Tensor? position_ids=None, *, bool interleaved=False, int num_heads=0, "
    "int rotary_embedding_dim=0) -> Tensor"
)
_library.define(
    "Attention.opset23(Tensor Q, Tensor K, Tensor V, Tensor? attn_mask=None, "
    "Tensor? past_key=None, Tensor? past_value=None, *, bool is_causal=False, "
    "int kv_num_heads=0, int q_num_heads=0, int qk_matmul_output_mode=0, float? scale=None, "
    "float softcap=0.0, int? softmax_precision=None) -> (Tensor, Tensor, Tensor, Tensor)"
)
_nodes = torch.library.Library("onnx_symbolic", "DEF")
_nodes.define(
    "_symbolic_multi_out(Tensor?[] inputs, str name, str attributes, str version, str metadata, "
    "*, SymInt[] sizes, int[] ranks, int[] dtypes) -> Tensor[]"
)


def _heads(x: Tensor, count: int) -> Tensor:
    """(batch, length, heads * size) -> (batch, heads, length, size)"""
    batch, length, width = x.shape
    return x.reshape(batch, length, count, width // count).transpose(1, 2)


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
    """RotaryEmbedding: pairs of numbers turned by angles."""
    flat = X.dim() == 3
    torch._check(flat or X.dim() == 4, lambda: f"X must have 3 or 4 dimensions, got {X.dim()}")
    torch._check(not flat or num_heads > 0, lambda: "num_heads must be given for 3 dimensions")
    x = _heads(X, num_heads) if flat else X
    width = rotary_embedding_dim or x.shape[-1]
    turned, rest = x[..., :width], x[..., width:]
    cos, sin = cos_cache, sin_cache
    if position_ids is not None:
        cos, sin = cos_cache[position_ids], sin_cache[position_ids]
    cos = cos[..., : width // 2].unsqueeze(1)
    sin = sin[..., : width // 2].unsqueeze(1)
    if interleaved:
        first, second = turned[..., 0::2], turned[..., 1::2]
    else:
        first, second = turned.chunk(2, dim=-1)
    real, imaginary = cos * first - sin * second, sin * first + cos * second
    if interleaved:
        turned = torch.stack((real, imaginary), dim=-1).flatten(-2)
    else:
        turned = torch.cat((real, imaginary), dim=-1)
    made = torch.cat((turned, rest), dim=-1)
    return made.transpose(1, 2).reshape(X.shape) if flat else made


def _masked(scores: Tensor, attn_mask: Tensor | None, is_causal: bool) -> Tensor:
    if is_causal:
        allowed = scores.new_ones(scores.shape[-2:], dtype=torch.bool).tril()
        scores = scores.masked_fill(~allowed, -math.inf)
    if attn_mask is None:
        return scores
    if attn_mask.dtype == torch.bool:
        return scores.masked_fill(~attn_mask, -math.inf)
    return scores + attn_mask


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
    """Attention: softmax(Q K^T * scale + mask) V, with keys and values of the past before K, V."""
    flat = Q.dim() == 3
    torch._check(flat or Q.dim() == 4, lambda: f"Q must have 3 or 4 dimensions, got {Q.dim()}")
    if flat:
        torch._check(
            q_num_heads > 0 and kv_num_heads > 0,
            lambda: "q_num_heads and kv_num_heads must be given for 3 dimensions",
        )
        Q, K, V = _heads(Q, q_num_heads), _heads(K, kv_num_heads), _heads(V, kv_num_heads)
    present_key = K.clone() if past_key is None else torch.cat((past_key, K), dim=2)
    present_value = V.clone() if past_value is None else torch.cat((past_value, V), dim=2)
    groups = Q.shape[1] // present_key.shape[1]
    keys = present_key.repeat_interleave(groups, dim=1)
    values = present_value.repeat_interleave(groups, dim=1)
    root = math.sqrt(1.0 / math.sqrt(Q.shape[-1]) if scale is None else scale)
    product = (Q * root) @ (keys * root).transpose(-1, -2)
    masked = _masked(product, attn_mask, is_causal)
    capped = softcap * torch.tanh(masked / softcap) if softcap > 0.0 else masked
    wide = capped.dtype if softmax_precision is None else _DTYPES[softmax_precision]
    weights = capped.to(wide).softmax(-1).to(capped.dtype)
    shown = {0: product, 1: masked, 2: capped, 3: weights}
    torch._check_value(
        qk_matmul_output_mode in shown,
        lambda: f"qk_matmul_output_mode must be 0 to 3, got {qk_matmul_output_mode}",
    )
    result = weights @ values
    if flat:
        result = result.transpose(1, 2).flatten(2)
    return result, present_key, present_value, shown[qk_matmul_output_mode].clone()


_library.impl("RotaryEmbedding.opset23", rotary_embedding, "CompositeExplicitAutograd")
_library.impl("Attention.opset23", attention, "CompositeExplicitAutograd")


def _zeros_of_node(
    inputs: Sequence[Tensor | None],
    name: str,
    attributes: str,
    version: str,
    metadata: str,
    *,
    sizes: Sequence[int],
    ranks: Sequence[int],
    dtypes: Sequence[int],
) -> list[Tensor]:
    found, place = [], 0
    for rank, dtype in zip(ranks, dtypes, strict=True):
        found.append(torch.zeros(list(sizes[place : place + rank]), dtype=_DTYPES[dtype]))
        place += rank
    return found


_nodes.impl("_symbolic_multi_out", _zeros_of_node, "CompositeExplicitAutograd")


def symbolic(
    domain_op: str,
    inputs: Sequence[Tensor | None],
    attrs: dict[str, object],
    dtypes: Sequence[torch.dtype | int],
    shapes: Sequence[Sequence[int | torch.SymInt]],
    version: int | None,
    metadata: dict[str, str],
) -> Sequence[Tensor]:
    """Results of the given types and sizes; a trace keeps the operator with its attributes."""
    if domain_op.count("::") != 1:
        raise ValueError(f"the operator is named as 'domain::name', got {domain_op!r}")
    numbers = {dtype: number for number, dtype in _DTYPES.items()}
    for key, value in attrs.items():
        parts = value if isinstance(value, (list, tuple)) else [value]
        if not all(isinstance(p, (bool, int, float, str)) for p in parts):
            raise TypeError(f"Unsupported attribute type for '{key}': {type(value)}")
    return torch.ops.onnx_symbolic._symbolic_multi_out.default(
        list(inputs),
        domain_op,
        json.dumps(attrs),
        "" if version is None else str(version),
        json.dumps(metadata),
        sizes=[size for shape in shapes for size in shape],
        ranks=[len(shape) for shape in shapes],
        dtypes=[d if isinstance(d, int) else numbers[d] for d in dtypes],
    )
