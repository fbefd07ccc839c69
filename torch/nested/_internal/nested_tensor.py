"""The class of jagged nested tensors and the functions beneath torch.nested's, under the names by
which packages that build on them know them."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch.nested import nested_tensor_from_jagged
from torch.nested._jagged import NestedTensor, from_components
from torch.nested._structure import Structure

__all__ = [
    "NestedTensor",
    "buffer_from_jagged",
    "get_tensor_symint",
    "jagged_from_list",
    "jagged_from_tensor_and_lengths",
    "nested_from_padded",
    "nested_view_from_values_offsets",
    "nested_view_from_values_offsets_lengths",
]


def jagged_from_list(
    tensors: Sequence[torch.Tensor],
    offsets: torch.Tensor | None = None,
    dtype: torch.dtype | None = None,
    device: torch.device | None = None,
) -> tuple[NestedTensor, torch.Tensor]:
    """(the components as a nested tensor, its offsets); with given offsets the ragged size is the
    one of other tensors with them."""
    made = [tensor.to(dtype=dtype, device=device) for tensor in tensors]
    nested = from_components(made)
    if offsets is not None:
        given = Structure.of(offsets)
        if given.seqlens != nested._structure.seqlens:
            raise RuntimeError(
                "jagged_from_list(): specified offsets do not match the given tensor list."
            )
        nested = NestedTensor(nested._values, given, nested._ragged_idx)
    return nested, nested.offsets()


def jagged_from_tensor_and_lengths(
    tensor: torch.Tensor, starts: torch.Tensor, lengths: torch.Tensor
) -> tuple[NestedTensor, torch.Tensor, torch.Tensor | None]:
    """(the ranges starts[b] : starts[b] + lengths[b] of the rows, offsets, lengths)."""
    nested = torch.nested.narrow(tensor, 1, starts, lengths, layout=torch.jagged)
    return nested, nested.offsets(), nested.lengths()


def nested_view_from_values_offsets(
    values: torch.Tensor,
    offsets: torch.Tensor,
    ragged_idx: int = 1,
    min_seqlen: int | None = None,
    max_seqlen: int | None = None,
) -> NestedTensor:
    """A nested tensor on given values."""
    return nested_tensor_from_jagged(
        values, offsets, None, ragged_idx, min_seqlen=min_seqlen, max_seqlen=max_seqlen
    )


def nested_view_from_values_offsets_lengths(
    values: torch.Tensor,
    offsets: torch.Tensor,
    lengths: torch.Tensor,
    ragged_idx: int = 1,
    min_seqlen: int | None = None,
    max_seqlen: int | None = None,
) -> NestedTensor:
    """A nested tensor on given values, with rows between the components."""
    return nested_tensor_from_jagged(
        values, offsets, lengths, ragged_idx, min_seqlen=min_seqlen, max_seqlen=max_seqlen
    )


def nested_from_padded(
    padded: torch.Tensor, offsets: torch.Tensor, ragged_idx: int = 1, **bounds: int | None
) -> NestedTensor:
    """The components of a padded tensor, as long as the offsets say."""
    if ragged_idx != 1:
        padded = padded.transpose(ragged_idx, 1)
    structure = Structure.of(offsets)
    rows = [row[:length] for row, length in zip(padded, structure.seqlens, strict=True)]
    nested = NestedTensor(torch.cat(rows), structure)
    return nested if ragged_idx == 1 else nested.transpose(ragged_idx, 1)


def buffer_from_jagged(jagged: NestedTensor) -> torch.Tensor:
    """The values."""
    return jagged.values()


def get_tensor_symint(tensor: torch.Tensor, *, coeff: int = 1) -> torch.SymInt:
    """The size that stands for the lengths between these offsets, times a number."""
    return Structure.of(tensor).symbol * coeff
