"""Operators over windows of images: samples and channels are independent, places stay whole."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch.distributed.tensor._rules import rule
from torch.distributed.tensor._signature import Letters, Signature

if TYPE_CHECKING:
    from torch.distributed.tensor._dispatch import Call

_POOLS = "max_pool2d_with_indices max_pool3d_with_indices avg_pool2d avg_pool3d"
_RESIZED = "upsample_nearest2d upsample_bilinear2d upsample_bicubic2d"


@rule(
    f"{_POOLS} {_RESIZED} avg_pool2d_backward avg_pool3d_backward "
    "max_pool2d_with_indices_backward max_pool3d_with_indices_backward"
)
def over_windows(call: Call) -> Signature:
    """The dimensions before those of places may be cut, in all tensors alike."""
    letters = Letters()
    places = 3 if "3d" in call.op._schema.name else 2
    first = call.tensors[0].shape
    outer = letters.dims(first[: len(first) - places])
    free = set(letters.sizes)
    inputs = {
        i: (*outer, *letters.dims(spec.shape[len(outer) :])) for i, spec in enumerate(call.tensors)
    }
    outputs = {
        o: (*outer, *letters.dims(meta.shape[len(outer) :])) for o, meta in enumerate(call.results)
    }
    return Signature(inputs, outputs, letters.sizes, frozen=set(letters.sizes) - free)


@rule(" ".join(f"{name}_backward" for name in _RESIZED.split()))
def resized_backward(call: Call) -> Signature:
    """The gradient has the shape that an argument says, which on parts is the part's."""
    made = over_windows(call)
    made.sizes = {"input_size": 0}
    return made
