"""Pooling layers."""

from __future__ import annotations

import torch
from torch.nn import functional as F
from torch.nn.modules.module import Module

__all__ = [
    "AdaptiveAvgPool1d",
    "AdaptiveAvgPool2d",
    "AdaptiveAvgPool3d",
    "AdaptiveMaxPool1d",
    "AdaptiveMaxPool2d",
    "AdaptiveMaxPool3d",
    "AvgPool1d",
    "AvgPool2d",
    "AvgPool3d",
    "FractionalMaxPool2d",
    "FractionalMaxPool3d",
    "LPPool1d",
    "LPPool2d",
    "LPPool3d",
    "MaxPool1d",
    "MaxPool2d",
    "MaxPool3d",
    "MaxUnpool1d",
    "MaxUnpool2d",
    "MaxUnpool3d",
]


def _layer(base, dims, name, doc):
    """The layer over so many dimensions: it differs from the others by the function it calls."""
    return type(name, (base,), {"_dims": dims, "__doc__": doc, "__module__": __name__})


class _MaxPoolNd(Module):
    """The largest element of each window, and where it stands when asked."""

    __constants__ = ["kernel_size", "stride", "padding", "dilation", "return_indices", "ceil_mode"]
    return_indices: bool
    ceil_mode: bool

    def __init__(
        self,
        kernel_size,
        stride=None,
        padding=0,
        dilation=1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = stride if stride is not None else kernel_size
        self.padding = padding
        self.dilation = dilation
        self.return_indices = return_indices
        self.ceil_mode = ceil_mode

    def forward(self, input: torch.Tensor):
        function = (F.max_pool1d, F.max_pool2d, F.max_pool3d)[self._dims - 1]
        return function(
            input, self.kernel_size, self.stride, self.padding, self.dilation,
            ceil_mode=self.ceil_mode, return_indices=self.return_indices,
        )  # fmt: skip

    def extra_repr(self) -> str:
        return (
            f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, "
            f"dilation={self.dilation}, ceil_mode={self.ceil_mode}"
        )


class _AvgPoolNd(Module):
    """The mean of each window."""

    __constants__ = ["kernel_size", "stride", "padding", "ceil_mode", "count_include_pad"]

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class AvgPool1d(_AvgPoolNd):
    """The mean of each window over one dimension."""

    def __init__(
        self,
        kernel_size,
        stride=None,
        padding=0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:
        super().__init__()
        single = lambda value: (value,) if isinstance(value, int) else tuple(value)
        self.kernel_size = single(kernel_size)
        self.stride = single(stride if stride is not None else kernel_size)
        self.padding = single(padding)
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad

    def forward(self, input: torch.Tensor):
        return F.avg_pool1d(
            input, self.kernel_size, self.stride, self.padding, self.ceil_mode,
            self.count_include_pad,
        )  # fmt: skip


class _AvgPoolPlanes(_AvgPoolNd):
    """The mean of each window, or its sum divided by a number of one's own."""

    __constants__ = [*_AvgPoolNd.__constants__, "divisor_override"]

    def __init__(
        self,
        kernel_size,
        stride=None,
        padding=0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override=None,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = stride if stride is not None else kernel_size
        self.padding = padding
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad
        self.divisor_override = divisor_override

    def forward(self, input: torch.Tensor):
        function = F.avg_pool2d if self._dims == 2 else F.avg_pool3d
        return function(
            input, self.kernel_size, self.stride, self.padding, self.ceil_mode,
            self.count_include_pad, self.divisor_override,
        )  # fmt: skip


class _AdaptiveAvgPoolNd(Module):
    """The means of as many windows as asked for."""

    __constants__ = ["output_size"]

    def __init__(self, output_size) -> None:
        super().__init__()
        self.output_size = output_size

    def forward(self, input: torch.Tensor):
        functions = (F.adaptive_avg_pool1d, F.adaptive_avg_pool2d, F.adaptive_avg_pool3d)
        return functions[self._dims - 1](input, self.output_size)

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class _AdaptiveMaxPoolNd(Module):
    """The maxima of as many windows as asked for."""

    __constants__ = ["output_size", "return_indices"]

    def __init__(self, output_size, return_indices: bool = False) -> None:
        super().__init__()
        self.output_size = output_size
        self.return_indices = return_indices

    def forward(self, input: torch.Tensor):
        functions = (F.adaptive_max_pool1d, F.adaptive_max_pool2d, F.adaptive_max_pool3d)
        return functions[self._dims - 1](
            input, self.output_size, return_indices=self.return_indices
        )

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class _LPPoolNd(Module):
    """The p-norm of each window."""

    __constants__ = ["norm_type", "kernel_size", "stride", "ceil_mode"]

    def __init__(self, norm_type, kernel_size, stride=None, ceil_mode: bool = False) -> None:
        super().__init__()
        self.norm_type = norm_type
        self.kernel_size = kernel_size
        self.stride = stride
        self.ceil_mode = ceil_mode

    def forward(self, input: torch.Tensor):
        function = (F.lp_pool1d, F.lp_pool2d, F.lp_pool3d)[self._dims - 1]
        return function(input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode)

    def extra_repr(self) -> str:
        return (
            f"norm_type={self.norm_type}, kernel_size={self.kernel_size}, stride={self.stride}, "
            f"ceil_mode={self.ceil_mode}"
        )


class _FractionalMaxPoolNd(Module):
    """The maxima of windows at random places."""

    __constants__ = ["kernel_size", "return_indices", "output_size", "output_ratio"]

    def __init__(
        self,
        kernel_size,
        output_size=None,
        output_ratio=None,
        return_indices: bool = False,
        _random_samples=None,
    ) -> None:
        super().__init__()
        name = type(self).__name__
        spread = lambda v: (v,) * self._dims if isinstance(v, int | float) else v
        self.kernel_size = spread(kernel_size)
        self.return_indices = return_indices
        self.register_buffer("_random_samples", _random_samples)
        self.output_size = None if output_size is None else spread(output_size)
        self.output_ratio = None if output_ratio is None else spread(output_ratio)
        if output_size is None and output_ratio is None:
            raise ValueError(
                f"{name} requires specifying either an output size, or a pooling ratio"
            )
        if output_size is not None and output_ratio is not None:
            raise ValueError("only one of output_size and output_ratio may be specified")
        if self.output_ratio is not None and not all(0 < r < 1 for r in self.output_ratio):
            raise ValueError(f"output_ratio must be between 0 and 1 (got {output_ratio})")

    def forward(self, input: torch.Tensor):
        function = F.fractional_max_pool2d if self._dims == 2 else F.fractional_max_pool3d
        return function(
            input, self.kernel_size, self.output_size, self.output_ratio, self.return_indices,
            _random_samples=self._random_samples,
        )  # fmt: skip


class _MaxUnpoolNd(Module):
    """Puts values back to the places their maxima came from."""

    def __init__(self, kernel_size, stride=None, padding=0) -> None:
        super().__init__()
        spread = lambda v: (v,) * self._dims if isinstance(v, int) else tuple(v)
        self.kernel_size = spread(kernel_size)
        self.stride = spread(stride if stride is not None else kernel_size)
        self.padding = spread(padding)

    def forward(self, input: torch.Tensor, indices, output_size=None):
        function = (F.max_unpool1d, F.max_unpool2d, F.max_unpool3d)[self._dims - 1]
        return function(input, indices, self.kernel_size, self.stride, self.padding, output_size)

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


MaxPool1d = _layer(_MaxPoolNd, 1, "MaxPool1d", "The largest element of each window of a line.")
MaxPool2d = _layer(_MaxPoolNd, 2, "MaxPool2d", "The largest element of each window of a plane.")
MaxPool3d = _layer(_MaxPoolNd, 3, "MaxPool3d", "The largest element of each window of a volume.")
AvgPool2d = _layer(_AvgPoolPlanes, 2, "AvgPool2d", "The mean of each window of a plane.")
AvgPool3d = _layer(_AvgPoolPlanes, 3, "AvgPool3d", "The mean of each window of a volume.")
AdaptiveAvgPool1d = _layer(_AdaptiveAvgPoolNd, 1, "AdaptiveAvgPool1d", "So many means of a line.")
AdaptiveAvgPool2d = _layer(_AdaptiveAvgPoolNd, 2, "AdaptiveAvgPool2d", "So many means of a plane.")
AdaptiveAvgPool3d = _layer(_AdaptiveAvgPoolNd, 3, "AdaptiveAvgPool3d", "So many means of a volume.")
AdaptiveMaxPool1d = _layer(_AdaptiveMaxPoolNd, 1, "AdaptiveMaxPool1d", "So many maxima of a line.")
AdaptiveMaxPool2d = _layer(_AdaptiveMaxPoolNd, 2, "AdaptiveMaxPool2d", "So many maxima of a plane.")
AdaptiveMaxPool3d = _layer(_AdaptiveMaxPoolNd, 3, "AdaptiveMaxPool3d", "So many maxima of a space.")
LPPool1d = _layer(_LPPoolNd, 1, "LPPool1d", "The p-norm of each window of a line.")
LPPool2d = _layer(_LPPoolNd, 2, "LPPool2d", "The p-norm of each window of a plane.")
LPPool3d = _layer(_LPPoolNd, 3, "LPPool3d", "The p-norm of each window of a volume.")
MaxUnpool1d = _layer(_MaxUnpoolNd, 1, "MaxUnpool1d", "Undoes MaxPool1d, with zeros elsewhere.")
MaxUnpool2d = _layer(_MaxUnpoolNd, 2, "MaxUnpool2d", "Undoes MaxPool2d, with zeros elsewhere.")
MaxUnpool3d = _layer(_MaxUnpoolNd, 3, "MaxUnpool3d", "Undoes MaxPool3d, with zeros elsewhere.")
FractionalMaxPool2d = _layer(_FractionalMaxPoolNd, 2, "FractionalMaxPool2d", "Random maxima.")
FractionalMaxPool3d = _layer(_FractionalMaxPoolNd, 3, "FractionalMaxPool3d", "Random maxima.")
