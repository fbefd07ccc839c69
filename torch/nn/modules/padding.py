"""Padding as modules. All are made from one table: the kind of padding, its mode of F.pad, and the
number of dimensions it pads."""

from __future__ import annotations

import torch
from torch.nn import functional as F
from torch.nn.modules.module import Module
from torch.nn.modules.utils import _ntuple

__all__ = []


class _PadNd(Module):
    """Pads the last `_dims` dimensions; padding lists (before, after) from the last backwards."""

    __constants__ = ["padding"]
    _mode = "constant"
    _dims = 1

    def __init__(self, padding) -> None:
        super().__init__()
        self.padding = _ntuple(2 * self._dims)(padding)

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        return F.pad(input, self.padding, self._mode)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class _ReflectionPadNd(_PadNd):
    _mode = "reflect"


class _ReplicationPadNd(_PadNd):
    _mode = "replicate"


class _CircularPadNd(_PadNd):
    """The only kind that does not take inputs of any rank the operator takes."""

    _mode = "circular"

    def _check_input_dim(self, input) -> None:
        low, high = self._dims + 1, self._dims + 2
        if input.dim() not in (low, high):
            raise ValueError(f"expected {low}D or {high}D input (got {input.dim()}D input)")

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        self._check_input_dim(input)
        return F.pad(input, self.padding, self._mode)


class _ConstantPadNd(_PadNd):
    __constants__ = ["padding", "value"]

    def __init__(self, padding, value) -> None:
        super().__init__(padding)
        self.value = value

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class _ZeroPadNd(_ConstantPadNd):
    def __init__(self, padding) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


_KINDS = {
    "ReflectionPad": (_ReflectionPadNd, "the values mirrored at the edge"),
    "ReplicationPad": (_ReplicationPadNd, "the value at the edge"),
    "ZeroPad": (_ZeroPadNd, "zeros"),
    "ConstantPad": (_ConstantPadNd, "one value"),
    "CircularPad": (_CircularPadNd, "the values from the other end"),
}

for _kind, (_base, _filler) in _KINDS.items():
    for _dims in (1, 2, 3):
        _name = f"{_kind}{_dims}d"
        globals()[_name] = type(
            _name,
            (_base,),
            {
                "__doc__": f"Pads the last {_dims} dimension(s) with {_filler}.",
                "__module__": __name__,
                "_dims": _dims,
            },
        )
        __all__.append(_name)
