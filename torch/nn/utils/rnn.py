"""Sequences of different lengths: padded to one tensor, or packed without the padding.

Packed data holds the first elements of all sequences, then the second ones, and so on, longest
sequence first; `batch_sizes` says how many sequences still run at each place.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import _VF, Tensor

__all__ = [
    "PackedSequence",
    "invert_permutation",
    "pack_padded_sequence",
    "pack_sequence",
    "pad_packed_sequence",
    "pad_sequence",
    "unpack_sequence",
    "unpad_sequence",
]


class _Fields(NamedTuple):
    data: Tensor
    batch_sizes: Tensor
    sorted_indices: Tensor | None
    unsorted_indices: Tensor | None


def invert_permutation(permutation: Tensor | None) -> Tensor | None:
    """The permutation that undoes another; None for None."""
    if permutation is None:
        return None
    places = torch.arange(permutation.numel(), device=permutation.device)
    return torch.empty_like(permutation).scatter_(0, permutation, places)


class PackedSequence(_Fields):
    """Packed data with what it takes to unpack it; made by the pack functions."""

    __slots__ = ()

    def __new__(
        cls, data, batch_sizes=None, sorted_indices=None, unsorted_indices=None
    ) -> PackedSequence:
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        if batch_sizes is None:
            data, batch_sizes = data
        if batch_sizes.device.type != "cpu":
            raise ValueError(
                "batch_sizes should always be on CPU. Instances of PackedSequence should never be "
                "created manually. They should be instantiated by functions like "
                "pack_sequence and pack_padded_sequences in nn.utils.rnn. "
                "https://pytorch.org/docs/stable/nn.html#torch.nn.utils.rnn.pack_sequence"
            )
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def __getnewargs__(self) -> tuple[object, ...]:
        return tuple(self)

    def to(self, *args, **kwargs) -> PackedSequence:
        """The same sequences with data of another dtype or on another device."""
        data = self.data.to(*args, **kwargs)
        if data is self.data:
            return self
        indices = [
            None if index is None else index.to(data.device)
            for index in (self.sorted_indices, self.unsorted_indices)
        ]
        return type(self)(data, self.batch_sizes, *indices)

    def cpu(self, *args, **kwargs) -> PackedSequence:
        """The same sequences on the CPU."""
        return self.to(*args, device="cpu", **kwargs)

    def cuda(self, *args, **kwargs) -> PackedSequence:
        """The same sequences on a GPU."""
        return self.to("cuda" if not args else args[0], **kwargs)

    def double(self) -> PackedSequence:
        """The same sequences in float64."""
        return self.to(dtype=torch.double)

    def float(self) -> PackedSequence:
        """The same sequences in float32."""
        return self.to(dtype=torch.float)

    def half(self) -> PackedSequence:
        """The same sequences in float16."""
        return self.to(dtype=torch.half)

    def long(self) -> PackedSequence:
        """The same sequences in int64."""
        return self.to(dtype=torch.long)

    def int(self) -> PackedSequence:
        """The same sequences in int32."""
        return self.to(dtype=torch.int)

    def short(self) -> PackedSequence:
        """The same sequences in int16."""
        return self.to(dtype=torch.short)

    def char(self) -> PackedSequence:
        """The same sequences in int8."""
        return self.to(dtype=torch.int8)

    def byte(self) -> PackedSequence:
        """The same sequences in uint8."""
        return self.to(dtype=torch.uint8)

    def pin_memory(self) -> PackedSequence:
        """The same sequences in page-locked memory."""
        return type(self)(self.data.pin_memory(), *self[1:])

    @property
    def is_cuda(self):
        """Whether the data is on a GPU."""
        return self.data.is_cuda

    def is_pinned(self) -> bool:
        """Whether the data is in page-locked memory."""
        return self.data.is_pinned()


def pack_padded_sequence(
    input, lengths, batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """Packs a padded batch of sequences with the given lengths."""
    lengths = torch.as_tensor(lengths, dtype=torch.int64, device="cpu")
    order: torch.Tensor | None = None
    if not enforce_sorted:
        lengths, order = torch.sort(lengths, descending=True)
        order = order.to(input.device)
        input = input.index_select(0 if batch_first else 1, order)
    data, sizes = _VF._pack_padded_sequence(input, lengths, batch_first)
    return PackedSequence(data, sizes, order, invert_permutation(order))


def pad_packed_sequence(
    sequence, batch_first: bool = False, padding_value=0.0, total_length=None
) -> tuple[Tensor, Tensor]:
    """The padded batch and the lengths of a packed one."""
    longest = sequence.batch_sizes.size(0)
    if total_length is not None and total_length < longest:
        raise ValueError(
            "Expected total_length to be at least the length of the longest sequence in "
            f"input, but got total_length={total_length} and max sequence length being "
            f"{longest}"
        )
    wanted = longest if total_length is None else total_length
    padded, lengths = _VF._pad_packed_sequence(
        sequence.data, sequence.batch_sizes, batch_first, padding_value, wanted
    )
    order = sequence.unsorted_indices
    if order is not None:
        padded = padded.index_select(0 if batch_first else 1, order)
        lengths = lengths[order.cpu()]
    return padded, lengths


def pad_sequence(
    sequences, batch_first: bool = False, padding_value=0.0, padding_side: str = "right"
) -> Tensor:
    """Sequences stacked into one tensor, the shorter ones filled up."""
    if padding_side not in ("left", "right"):
        raise RuntimeError(
            f"Expected padding_side to be one of left or right, but got {padding_side}."
        )
    if isinstance(sequences, Tensor):
        sequences = sequences.unbind(0)
    elif not hasattr(sequences, "__iter__"):
        raise RuntimeError(
            "pad_sequence: Expected iterable for input sequences, but got arg of type: "
            f"{type(sequences)}"
        )
    sequences = list(sequences)
    if not sequences:
        raise RuntimeError("received an empty list of sequences")
    longest = max(sequence.size(0) for sequence in sequences)
    rows = []
    for sequence in sequences:
        gap = longest - sequence.size(0)
        if gap:
            fill = sequence.new_full((gap, *sequence.shape[1:]), padding_value)
            parts = [fill, sequence] if padding_side == "left" else [sequence, fill]
            sequence = torch.cat(parts)
        rows.append(sequence)
    return torch.stack(rows, 0 if batch_first else 1)


def unpad_sequence(padded_sequences, lengths, batch_first: bool = False) -> list[Tensor]:
    """The sequences of a padded batch."""
    if not batch_first:
        padded_sequences = padded_sequences.transpose(0, 1)
    return [row[:length] for row, length in zip(padded_sequences, lengths.tolist(), strict=False)]


def pack_sequence(sequences, enforce_sorted: bool = True) -> PackedSequence:
    """Packs a list of sequences."""
    lengths = [sequence.size(0) for sequence in sequences]
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences) -> list[Tensor]:
    """The sequences of a packed batch."""
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)
