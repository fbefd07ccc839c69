"""Tables of embeddings whose rows have levels of 8, 4 or 2 bits. A packed row is its levels, then
its scale and its least value (float32 for bytes, float16 for smaller levels)."""

import torch
from torch import Tensor
from torch._C import ScriptObject
from torch._quantized_ops.registry import defined

_PACKED = "__torch__.torch.classes.quantized.EmbeddingPackedParamsBase weight"
_BAG = (
    "Tensor indices, Tensor? offsets=None, bool scale_grad_by_freq=False, int mode=0, "
    "bool pruned_weights=False, Tensor? per_sample_weights=None, "
    "Tensor? compressed_indices_mapping=None, bool include_last_offset=False) -> Tensor"
)


def _split_row_levels(levels: Tensor, bits: int) -> Tensor:
    """Bytes of several levels each, from levels in bytes of their own."""
    count = 8 // bits
    padded = torch.nn.functional.pad(levels, (0, -levels.size(-1) % count))
    groups = padded.view(*padded.shape[:-1], -1, count).to(torch.int32)
    shifts = torch.arange(0, 8, bits, dtype=torch.int32)
    return (groups << shifts).sum(-1).to(torch.uint8)


def _joined_row_levels(packed: Tensor, bits: int) -> Tensor:
    shifts = torch.arange(0, 8, bits, dtype=torch.int32)
    levels = (packed.to(torch.int32).unsqueeze(-1) >> shifts) & ((1 << bits) - 1)
    return levels.flatten(-2)


def _as_bytes(numbers: Tensor) -> Tensor:
    return numbers.contiguous().view(torch.uint8)


def _pack(weight: Tensor, bits: int, bounds: Tensor | None, optimized: bool) -> Tensor:
    if weight.dim() < 2:
        raise RuntimeError("embedding_bag prepack: expected a weight of at least 2 dimensions")
    if optimized:
        raise NotImplementedError(
            f"embedding_bag prepack: optimized_qparams is not implemented for {bits} bits on cpu"
        )
    rows = weight.float()
    if bounds is None:
        low, high = rows.amin(-1, keepdim=True), rows.amax(-1, keepdim=True)
    else:
        low, high = bounds[..., :1].float(), bounds[..., 1:2].float()
    if bits == 8:
        return _pack_bytes(rows, low, high)
    top = (1 << bits) - 1
    low = low.half().float()
    scale = ((high - low) / top).half().float()
    scale = torch.where(scale == 0, 1.0, scale)
    inverse = 1 / scale
    bad = torch.isinf(inverse)
    scale, inverse = torch.where(bad, 1.0, scale), torch.where(bad, 1.0, inverse)
    levels = torch.round((rows - low) * inverse).clamp(0, top).to(torch.uint8)
    packed = _split_row_levels(levels, bits)
    return torch.cat([packed, _as_bytes(scale.half()), _as_bytes(low.half())], -1)


def _pack_bytes(rows: Tensor, low: Tensor, high: Tensor) -> Tensor:
    span = high - low
    inverse = 255.0 / (span + 1e-8)
    levels = torch.round((rows - low) * inverse).clamp(0, 255).to(torch.uint8)
    return torch.cat([levels, _as_bytes(span / 255.0), _as_bytes(low)], -1)


def _unpack(packed: Tensor, bits: int) -> Tensor:
    number = torch.float32 if bits == 8 else torch.float16
    tail = 2 * number.itemsize
    levels, numbers = packed[..., :-tail], packed[..., -tail:].contiguous().view(number).float()
    wide = levels if bits == 8 else _joined_row_levels(levels, bits)
    return wide.float() * numbers[..., :1] + numbers[..., 1:]


def _define_packing(bits: int, name: str) -> None:
    extra = ", bool optimized_qparams=False, int nbins=200, float ratio=0.16" if bits < 8 else ""

    @defined(f"embedding_bag_{name}_prepack(Tensor weight{extra}) -> Tensor")
    def pack(
        weight: Tensor, optimized_qparams: bool = False, nbins: int = 200, ratio: float = 0.16
    ) -> Tensor:
        return _pack(weight, bits, None, optimized_qparams)

    @defined(
        f"embedding_bag_{name}_prepack_with_rowwise_min_max(Tensor weight, Tensor "
        f"rowwise_min_max{extra}) -> Tensor"
    )
    def pack_bounded(
        weight: Tensor, rowwise_min_max: Tensor, optimized_qparams: bool = False, *rest: object
    ) -> Tensor:
        return _pack(weight, bits, rowwise_min_max, optimized_qparams)

    @defined(f"embedding_bag_{name}_unpack(Tensor weight) -> Tensor")
    def unpack(weight: Tensor) -> Tensor:
        return _unpack(weight, bits)

    @defined(f"embedding_bag_{name}_rowwise_offsets(Tensor weight, {_BAG}")
    def rows(weight: Tensor, indices: Tensor, *rest: object) -> Tensor:
        return _bag(_unpack(weight, bits), indices, *rest)


for _bits, _name in ((8, "byte"), (4, "4bit"), (2, "2bit")):
    _define_packing(_bits, _name)


def _bag(
    table: Tensor,
    indices: Tensor,
    offsets: Tensor | None = None,
    scale_grad_by_freq: bool = False,
    mode: int = 0,
    pruned_weights: bool = False,
    per_sample_weights: Tensor | None = None,
    compressed_indices_mapping: Tensor | None = None,
    include_last_offset: bool = False,
) -> Tensor:
    if indices.dtype not in (torch.int32, torch.int64):
        raise RuntimeError("Expect 32 or 64 bit indices")
    if pruned_weights and compressed_indices_mapping is not None:
        return _pruned_bag(
            table,
            indices,
            offsets,
            per_sample_weights,
            compressed_indices_mapping,
            include_last_offset,
        )
    if indices.dim() == 2:
        offsets = torch.arange(0, indices.numel(), indices.size(1), dtype=indices.dtype)
        indices, include_last_offset = indices.reshape(-1), False
        if per_sample_weights is not None:
            per_sample_weights = per_sample_weights.reshape(-1)
    elif offsets is None:
        raise RuntimeError("embedding_bag: expected offsets to be set for 1D indices")
    return torch.nn.functional.embedding_bag(
        indices.long(),
        table,
        offsets.long(),
        mode="sum",
        per_sample_weights=per_sample_weights,
        include_last_offset=include_last_offset,
    )


def _pruned_bag(
    table: Tensor,
    indices: Tensor,
    offsets: Tensor | None,
    weights: Tensor | None,
    mapping: Tensor,
    include_last_offset: bool,
) -> Tensor:
    """Rows that were cut from the table count as zeros."""
    if mapping.numel() == 1:  # nothing was cut
        return _bag(table, indices, offsets, False, 0, False, weights, None, include_last_offset)
    mapped = mapping.long()[indices.long()]
    kept = (mapped >= 0).to(table.dtype)
    factors = kept if weights is None else kept * weights
    return _bag(
        table, mapped.clamp_min(0), offsets, False, 0, False, factors, None, include_last_offset
    )


@defined(f"embedding_bag_byte({_PACKED}, {_BAG}", f"embedding_bag_4bit({_PACKED}, {_BAG}")
def _packed_bag(weight: ScriptObject, indices: Tensor, *rest: object) -> Tensor:
    return _bag(weight.unpack().dequantize(), indices, *rest)


@defined(
    f"embedding_byte({_PACKED}, Tensor indices, bool pruned_weights=False) -> Tensor",
    f"embedding_4bit({_PACKED}, Tensor indices, bool pruned_weights=False) -> Tensor",
)
def _packed_embedding(
    weight: ScriptObject, indices: Tensor, pruned_weights: bool = False
) -> Tensor:
    return torch.nn.functional.embedding(indices.long(), weight.unpack().dequantize())
