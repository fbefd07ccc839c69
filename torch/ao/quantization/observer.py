"""Modules that watch the values that pass through them and propose a grid of levels for them.

An observer keeps a range (of the whole tensor, or of each slice along an axis), and
`calculate_qparams` turns it into scales and zero points. The classes differ in how they keep the
range: its extremes, a moving average of them, or a histogram from which the range with the smallest
error of rounding is taken."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn
from torch.ao.quantization._granularity import (  # noqa: F401
    AffineQuantizedObserverBase,
    Granularity,
    MappingType,
    PerAxis,
    PerBlock,
    PerGroup,
    PerRow,
    PerTensor,
    PerToken,
    TorchAODType,
    ZeroPointDomain,
    get_block_size,
)

_SYMMETRIC = (torch.per_tensor_symmetric, torch.per_channel_symmetric)
_PER_CHANNEL = (
    torch.per_channel_affine,
    torch.per_channel_symmetric,
    torch.per_channel_affine_float_qparams,
)
# The levels of each dtype, and those of a range that leaves the highest bit unused.
_LEVELS = {
    torch.qint8: ((-128, 127), (-64, 63)),
    torch.int8: ((-128, 127), (-64, 63)),
    torch.quint8: ((0, 255), (0, 127)),
    torch.uint8: ((0, 255), (0, 127)),
    torch.qint32: ((-(2**31), 2**31 - 1), (-(2**30), 2**30 - 1)),
    torch.int32: ((-(2**31), 2**31 - 1), (-(2**30), 2**30 - 1)),
    torch.int16: ((-(2**15), 2**15 - 1), (-(2**14), 2**14 - 1)),
    torch.uint16: ((0, 2**16 - 1), (0, 2**15 - 1)),
    torch.quint4x2: ((0, 15), (0, 15)),
}


class _Maker:
    """A class with some of its arguments given; `with_args` gives more."""

    def __init__(self, p: partial) -> None:
        self.p = p
        self.callable_args: dict[str, Callable[[], object]] = {}

    def __call__(self, *args: object, **keywords: object) -> object:
        made = {name: f() for name, f in self.callable_args.items() if name not in keywords}
        return self.p(*args, **made, **keywords)

    def __repr__(self) -> str:
        return repr(self.p) + repr(self.callable_args)

    def with_args(self, **kwargs: object) -> _Maker:
        made = _Maker(partial(self.p, **kwargs))
        made.callable_args = dict(self.callable_args)
        return made

    def with_callable_args(self, **kwargs: Callable[[], object]) -> _Maker:
        made = self.with_args()
        made.callable_args.update(kwargs)
        return made


def _with_args(cls_or_self: type | _Maker, **kwargs: object) -> _Maker:
    """A maker of the class with these arguments, for configurations."""
    return _Maker(partial(cls_or_self, **kwargs))


def _with_callable_args(cls_or_self: type, **kwargs: Callable[[], object]) -> _Maker:
    """The same with arguments that are computed each time."""
    return _Maker(partial(cls_or_self)).with_callable_args(**kwargs)


_PartialWrapper = _Maker


class ObserverBase(ABC, nn.Module):
    """What observers share: the dtype they propose levels for."""

    def __init__(self, dtype: torch.dtype, is_dynamic: bool = False) -> None:
        super().__init__()
        self.dtype = dtype
        self.is_dynamic = is_dynamic

    @abstractmethod
    def forward(self, x: Tensor) -> Tensor:
        """Notes the values and returns them."""

    @abstractmethod
    def calculate_qparams(self, **kwargs: object) -> tuple[Tensor, Tensor]:
        """Scale and zero point for what was seen."""

    with_args = classmethod(_with_args)
    with_callable_args = classmethod(_with_callable_args)


class UniformQuantizationObserverBase(ObserverBase):
    """An observer of a range, and the grid of equal steps that covers it."""

    def __init__(
        self,
        dtype: torch.dtype = torch.quint8,
        qscheme: torch.qscheme = torch.per_tensor_affine,
        reduce_range: bool = False,
        quant_min: int | None = None,
        quant_max: int | None = None,
        factory_kwargs: dict[str, object] | None = None,
        eps: float = torch.finfo(torch.float32).eps,
        is_dynamic: bool = False,
        **kwargs: object,
    ) -> None:
        super().__init__(dtype=dtype, is_dynamic=is_dynamic)
        if dtype not in _LEVELS and dtype not in (torch.float8_e5m2, torch.float8_e4m3fn):
            raise AssertionError(
                f"Default Observer only works for quantized dtypes with integer levels, got {dtype}"
            )
        self.qscheme = qscheme
        self.reduce_range = reduce_range
        self.register_buffer("eps", torch.tensor([eps]))
        self.has_customized_qrange = quant_min is not None and quant_max is not None
        if self.has_customized_qrange:
            if quant_min > quant_max:
                raise AssertionError("quant_min must be less than or equal to quant_max")
            self.quant_min, self.quant_max = quant_min, quant_max
            if reduce_range:
                self.quant_min, self.quant_max = quant_min // 2, quant_max // 2
        else:
            self.quant_min, self.quant_max = _LEVELS.get(dtype, ((-128, 127),) * 2)[reduce_range]

    def _calculate_qparams(self, min_val: Tensor, max_val: Tensor) -> tuple[Tensor, Tensor]:
        if min_val.numel() == 0 or max_val.numel() == 0 or not bool(torch.isfinite(min_val).any()):
            return torch.tensor([1.0]), torch.tensor([0])
        if bool((min_val > max_val).any()):
            raise AssertionError(f"min {min_val} should be less than max {max_val}")
        low = torch.clamp(min_val, max=0)
        high = torch.clamp(max_val, min=0)
        steps = float(self.quant_max - self.quant_min)
        if self.qscheme in _SYMMETRIC:
            scale = torch.maximum(torch.maximum(-low, high) / (steps / 2), self.eps)
            return scale, torch.full_like(scale, self._middle(), dtype=torch.int64)
        if self.qscheme is torch.per_channel_affine_float_qparams:
            scale = (max_val - min_val) / steps
            scale = torch.where(scale > self.eps, scale, torch.ones_like(scale))
            return scale, -min_val / scale
        scale = torch.maximum((high - low) / steps, self.eps)
        zero = self.quant_min - torch.round(low / scale).to(torch.int64)
        return scale, zero.clamp(self.quant_min, self.quant_max)

    def _middle(self) -> int:
        if self.dtype not in (torch.quint8, torch.uint8):
            return 0
        return (self.quant_min + self.quant_max) // 2 if self.has_customized_qrange else 128

    def reset_min_max_vals(self) -> None:
        """Forgets what was seen."""
        raise NotImplementedError("Cannot reset min/max values in the given observer.")


class MinMaxObserver(UniformQuantizationObserverBase):
    """Keeps the extremes of all values seen."""

    def __init__(
        self,
        dtype: torch.dtype = torch.quint8,
        qscheme: torch.qscheme = torch.per_tensor_affine,
        **options: object,
    ) -> None:
        if qscheme not in (torch.per_tensor_affine, torch.per_tensor_symmetric):
            raise NotImplementedError(f"{type(self).__name__}'s qscheme only supports per tensor")
        super().__init__(dtype=dtype, qscheme=qscheme, **options)
        self._forget()

    def _forget(self) -> None:
        self.register_buffer("min_val", torch.tensor(float("inf")))
        self.register_buffer("max_val", torch.tensor(float("-inf")))

    def forward(self, x_orig: Tensor) -> Tensor:
        if x_orig.numel() > 0:
            low, high = torch.aminmax(x_orig.detach().to(self.min_val.dtype))
            self._note(low, high)
        return x_orig

    def _note(self, low: Tensor, high: Tensor) -> None:
        self.min_val.copy_(torch.minimum(low, self.min_val))
        self.max_val.copy_(torch.maximum(high, self.max_val))

    def calculate_qparams(self) -> tuple[Tensor, Tensor]:
        scale, zero = self._calculate_qparams(self.min_val, self.max_val)
        return scale.reshape(-1), zero.reshape(-1)

    def extra_repr(self) -> str:
        return f"min_val={self.min_val}, max_val={self.max_val}"

    def reset_min_max_vals(self) -> None:
        self.min_val.fill_(float("inf"))
        self.max_val.fill_(float("-inf"))


class MovingAverageMinMaxObserver(MinMaxObserver):
    """Moves the extremes a little towards those of each new tensor."""

    def __init__(self, averaging_constant: float = 0.01, **kwargs: object) -> None:
        self.averaging_constant = averaging_constant
        super().__init__(**kwargs)
        self.averaging_constant = averaging_constant

    def _note(self, low: Tensor, high: Tensor) -> None:
        if not bool(torch.isfinite(self.min_val).all()):
            return super()._note(low, high)
        self.min_val.add_(self.averaging_constant * (low - self.min_val))
        self.max_val.add_(self.averaging_constant * (high - self.max_val))


class PerChannelMinMaxObserver(UniformQuantizationObserverBase):
    """Keeps the extremes of each slice along an axis."""

    def __init__(
        self,
        ch_axis: int = 0,
        dtype: torch.dtype = torch.quint8,
        qscheme: torch.qscheme = torch.per_channel_affine,
        **options: object,
    ) -> None:
        if qscheme not in _PER_CHANNEL:
            raise NotImplementedError(f"{type(self).__name__}'s qscheme only supports per channel")
        super().__init__(dtype=dtype, qscheme=qscheme, **options)
        self.ch_axis = ch_axis
        self.register_buffer("min_val", torch.tensor([]))
        self.register_buffer("max_val", torch.tensor([]))

    def forward(self, x_orig: Tensor) -> Tensor:
        if x_orig.numel() > 0:
            slices = x_orig.detach().float().movedim(self.ch_axis, 0).flatten(1)
            low, high = torch.aminmax(slices, dim=1)
            if self.min_val.numel() == 0:
                self.min_val.resize_(low.shape).copy_(low)
                self.max_val.resize_(high.shape).copy_(high)
            else:
                self._note(low, high)
        return x_orig

    def _note(self, low: Tensor, high: Tensor) -> None:
        self.min_val.copy_(torch.minimum(low, self.min_val))
        self.max_val.copy_(torch.maximum(high, self.max_val))

    def calculate_qparams(self) -> tuple[Tensor, Tensor]:
        return self._calculate_qparams(self.min_val, self.max_val)

    def extra_repr(self) -> str:
        return f"min_val={self.min_val}, max_val={self.max_val}"

    def reset_min_max_vals(self) -> None:
        self.min_val, self.max_val = torch.tensor([]), torch.tensor([])

    def _load_from_state_dict(
        self, state_dict: dict[str, Tensor], prefix: str, *rest: object
    ) -> None:
        for name in ("min_val", "max_val"):
            if f"{prefix}{name}s" in state_dict:  # as older versions named them
                state_dict[prefix + name] = state_dict.pop(f"{prefix}{name}s")
            if prefix + name in state_dict:
                getattr(self, name).resize_(state_dict[prefix + name].shape)
        super()._load_from_state_dict(state_dict, prefix, *rest)


class MovingAveragePerChannelMinMaxObserver(PerChannelMinMaxObserver):
    """The moving average of the extremes of each slice."""

    def __init__(
        self, averaging_constant: float = 0.01, ch_axis: int = 0, **kwargs: object
    ) -> None:
        super().__init__(ch_axis, **kwargs)
        self.averaging_constant = averaging_constant

    def _note(self, low: Tensor, high: Tensor) -> None:
        self.min_val.add_(self.averaging_constant * (low - self.min_val))
        self.max_val.add_(self.averaging_constant * (high - self.max_val))


_PARTS = 16  # of a bin whose count moves to other bins


class HistogramObserver(UniformQuantizationObserverBase):
    """Counts values in equal bins and proposes the part of the range whose rounding to levels has
    the smallest expected square error, cut-off values included."""

    def __init__(
        self,
        bins: int = 2048,
        dtype: torch.dtype = torch.quint8,
        qscheme: torch.qscheme = torch.per_tensor_affine,
        **options: object,
    ) -> None:
        if qscheme not in (torch.per_tensor_affine, torch.per_tensor_symmetric):
            raise NotImplementedError("HistogramObserver's qscheme only supports per tensor")
        super().__init__(dtype=dtype, qscheme=qscheme, **options)
        self.bins = bins
        self.register_buffer("histogram", torch.zeros(bins))
        self.register_buffer("min_val", torch.tensor(float("inf")))
        self.register_buffer("max_val", torch.tensor(float("-inf")))
        self.dst_nbins = self.quant_max - self.quant_min + 1

    def forward(self, x_orig: Tensor) -> Tensor:
        values = x_orig.detach().float()
        values = values[torch.isfinite(values)] if values.numel() else values
        if values.numel() == 0:
            return x_orig
        low, high = (float(v) for v in torch.aminmax(values))
        if bool(torch.isfinite(self.min_val)):
            low, high = min(low, float(self.min_val)), max(high, float(self.max_val))
            old = self._spread(low, high)
        else:
            old = torch.zeros_like(self.histogram)
        self.histogram.copy_(old + torch.histc(values, self.bins, min=low, max=high))
        self.min_val.fill_(low)
        self.max_val.fill_(high)
        return x_orig

    def _spread(self, low: float, high: float) -> Tensor:
        """The counts so far in bins of a range that contains theirs: each bin is cut into parts
        with an equal share of its count, which are counted at their centres."""
        if low == float(self.min_val) and high == float(self.max_val):
            return self.histogram.clone()
        width = (self.max_val - self.min_val) / (self.bins * _PARTS)
        centres = self.min_val + width * (torch.arange(self.bins * _PARTS) + 0.5)
        span = high - low
        place = (centres - low) / span * self.bins if span > 0 else torch.zeros_like(centres)
        index = place.long().clamp(0, self.bins - 1)
        shares = (self.histogram / _PARTS).repeat_interleave(_PARTS)
        return torch.zeros_like(self.histogram).index_add_(0, index, shares)

    def _errors(self, first: int, last: int) -> float:
        """The expected square error where bins first...last are covered by levels."""
        width = float(self.max_val - self.min_val) / self.bins
        step = width * (last - first + 1) / self.dst_nbins
        if step == 0:
            return 0.0
        start = first * width
        centres = (torch.arange(self.bins) + 0.5) * width
        level = torch.clamp(torch.floor((centres - start) / step), 0, self.dst_nbins - 1)
        distance = centres - (start + (level + 0.5) * step)
        inside = width * width / 12
        return float((self.histogram * (distance * distance + inside)).sum())

    def _best_range(self) -> tuple[Tensor, Tensor]:
        total = self.histogram.sum()
        share = torch.cumsum(self.histogram, 0) / total
        best, chosen = float("inf"), (0, self.bins - 1)
        first, last, alpha, beta = 0, self.bins - 1, 0.0, 1.0
        while alpha < beta:
            # The side whose next step gives up more bins is cut.
            left = int(torch.searchsorted(share, alpha + 1e-5))
            right = int(torch.searchsorted(share, beta - 1e-5, right=True)) - 1
            if left - first > last - right:
                first, alpha = left, alpha + 1e-5
            else:
                last, beta = min(right, self.bins - 1), beta - 1e-5
            if last <= first:
                break
            if (first, last) == chosen:
                continue
            error = self._errors(first, last)
            if error > best:
                break
            best, chosen = error, (first, last)
        width = (self.max_val - self.min_val) / self.bins
        return self.min_val + width * chosen[0], self.min_val + width * (chosen[1] + 1)

    def calculate_qparams(self) -> tuple[Tensor, Tensor]:
        if not bool(torch.isfinite(self.min_val)):
            return torch.tensor([1.0]), torch.tensor([0])
        low, high = self._best_range()
        scale, zero = self._calculate_qparams(low, high)
        return scale.reshape(-1), zero.reshape(-1)

    def extra_repr(self) -> str:
        return f"min_val={self.min_val}, max_val={self.max_val}"

    def reset_histogram(self) -> None:
        """Forgets what was counted."""
        self.histogram.zero_()
        self.min_val.fill_(float("inf"))
        self.max_val.fill_(float("-inf"))

    reset_min_max_vals = reset_histogram


class FixedQParamsObserver(ObserverBase):
    """Proposes the scale and zero point it was made with."""

    def __init__(
        self,
        scale: float,
        zero_point: int,
        dtype: torch.dtype = torch.quint8,
        qscheme: torch.qscheme = torch.per_tensor_affine,
        quant_min: int = 0,
        quant_max: int = 255,
        is_dynamic: bool = False,
        **kwargs: object,
    ) -> None:
        super().__init__(dtype, is_dynamic)
        self.qscheme = qscheme
        self.quant_min, self.quant_max = quant_min, quant_max
        for name, value in (("scale", float(scale)), ("zero_point", int(zero_point))):
            kind = torch.float32 if name == "scale" else torch.int32
            self.register_buffer(name, torch.tensor([value], dtype=kind))

    def forward(self, x: Tensor) -> Tensor:
        return x

    def calculate_qparams(self) -> tuple[Tensor, Tensor]:
        return self.scale, self.zero_point


class PlaceholderObserver(ObserverBase):
    """Says a dtype and notes nothing: for values whose grid is found at run time, or that are
    converted to another floating dtype."""

    def __init__(
        self,
        dtype: torch.dtype = torch.float32,
        custom_op_name: str = "",
        compute_dtype: torch.dtype | None = None,
        quant_min: int | None = None,
        quant_max: int | None = None,
        qscheme: torch.qscheme | None = None,
        eps: float | None = None,
        is_dynamic: bool = False,
    ) -> None:
        super().__init__(dtype=dtype, is_dynamic=is_dynamic or compute_dtype is not None)
        self.qscheme = torch.per_tensor_affine if qscheme is None else qscheme
        self.quant_min, self.quant_max, self.eps = quant_min, quant_max, eps
        self.custom_op = custom_op_name

    def forward(self, x: Tensor) -> Tensor:
        return x

    def extra_repr(self) -> str:
        return f"dtype={self.dtype}, is_dynamic={self.is_dynamic}"

    def calculate_qparams(self) -> tuple[Tensor, Tensor]:
        raise RuntimeError("calculate_qparams should not be called for PlaceholderObserver")


class NoopObserver(ObserverBase):
    """Notes nothing."""

    def __init__(self, dtype: torch.dtype = torch.float16, custom_op_name: str = "") -> None:
        super().__init__(dtype=dtype)
        self.custom_op = custom_op_name

    def forward(self, x: Tensor) -> Tensor:
        return x

    def calculate_qparams(self) -> tuple[Tensor, Tensor]:
        raise RuntimeError("calculate_qparams should not be called for NoopObserver")


class ReuseInputObserver(ObserverBase):
    """Stands for the observer of the input: the output of an operator that only moves values."""

    def __init__(self) -> None:
        super().__init__(torch.quint8, is_dynamic=False)

    def forward(self, x: Tensor) -> Tensor:
        return x

    def calculate_qparams(self) -> tuple[Tensor, Tensor]:
        raise RuntimeError("calculate_qparams should not be called for ReuseInputObserver")


class RecordingObserver(ObserverBase):
    """Keeps a copy of every tensor."""

    def __init__(self, dtype: torch.dtype = torch.quint8) -> None:
        super().__init__(dtype=dtype)
        self.tensor_val: list[Tensor] = []

    def forward(self, x: Tensor) -> Tensor:
        self.tensor_val.append(x.clone())
        return x

    def calculate_qparams(self) -> tuple[Tensor, Tensor]:
        raise RuntimeError("calculate_qparams should not be called for RecordingObserver")

    def get_tensor_value(self) -> list[Tensor]:
        """What was seen, in order."""
        return self.tensor_val


# ---- makers by name: what each watches, and how
_NARROW = {"quant_min": 0, "quant_max": 127}
_WEIGHT = {"dtype": torch.qint8, "qscheme": torch.per_tensor_symmetric}
_CHANNELS = {"dtype": torch.qint8, "qscheme": torch.per_channel_symmetric}
_EVEN = {"quant_min": -127, "quant_max": 127, "eps": 2**-12}
_REAL = {"qscheme": torch.per_channel_affine_float_qparams, "ch_axis": 0}

default_observer = _with_args(MinMaxObserver, **_NARROW)
default_histogram_observer = _with_args(HistogramObserver, **_NARROW)
default_weight_observer = _with_args(MinMaxObserver, **_WEIGHT)
weight_observer_range_neg_127_to_127 = default_weight_observer.with_args(**_EVEN)
default_per_channel_weight_observer = _with_args(PerChannelMinMaxObserver, **_CHANNELS)
per_channel_weight_observer_range_neg_127_to_127 = default_per_channel_weight_observer.with_args(
    **_EVEN
)
default_float_qparams_observer = _with_args(PerChannelMinMaxObserver, dtype=torch.quint8, **_REAL)
default_float_qparams_observer_4bit = default_float_qparams_observer.with_args(dtype=torch.quint4x2)
default_dynamic_quant_observer = _with_args(
    PlaceholderObserver, dtype=torch.quint8, quant_min=0, quant_max=255, is_dynamic=True
)
_BYTES = {"dtype": torch.quint8, "quant_min": 0, "quant_max": 255}
default_fixed_qparams_range_neg1to1_observer = _with_args(
    FixedQParamsObserver, scale=2 / 256, zero_point=128, **_BYTES
)
default_fixed_qparams_range_0to1_observer = _with_args(
    FixedQParamsObserver, scale=1 / 256, zero_point=0, **_BYTES
)
default_symmetric_fixed_qparams_observer = default_fixed_qparams_range_neg1to1_observer
default_affine_fixed_qparams_observer = default_fixed_qparams_range_0to1_observer
default_reuse_input_observer = ReuseInputObserver
default_placeholder_observer = PlaceholderObserver
default_debug_observer = RecordingObserver


# ---- observers of a whole model
def _is_activation_post_process(module: object) -> bool:
    """Whether a module, or a scripted one, is an observer or a fake quantizer."""
    from torch.ao.quantization.fake_quantize import FakeQuantizeBase

    kinds = (ObserverBase, FakeQuantizeBase, AffineQuantizedObserverBase)
    return isinstance(module, kinds) or _is_observer_script_module(module, "")


def _is_observer_script_module(mod: object, obs_type_name: str) -> bool:
    if not isinstance(mod, torch.jit.RecursiveScriptModule):
        return False
    # The qualified name tells a scripted observer; a fresh class may carry a number.
    name = str(getattr(mod, "_c", mod)._type()) if hasattr(mod, "_c") else ""
    return "torch.ao.quantization.observer" in name or "torch.ao.quantization.fake_quantize" in name


def _in_observer(key: str) -> bool:
    return "observer" in key or "activation_post_process" in key


def get_observer_state_dict(mod: nn.Module) -> dict[str, Tensor]:
    """What the observers of a model have seen: the entries of its state that belong to them."""
    return type(mod.state_dict())(
        (key, value) for key, value in mod.state_dict().items() if _in_observer(key)
    )


def load_observer_state_dict(mod: nn.Module, obs_dict: dict[str, Tensor]) -> None:
    """Gives the observers of a model what others have seen. Every observer needs its entries."""
    missing: list[str] = []
    unexpected: list[str] = []
    for name, module in mod.named_modules():
        prefix = name + "."
        if _is_activation_post_process(module):
            module._load_from_state_dict(obs_dict, prefix, {}, False, missing, unexpected, [])
    for key in missing:
        if _in_observer(key):
            raise Exception(f"Missing keys for observer {key} in state_dict")
    for key in unexpected:
        if _in_observer(key):
            raise Exception(f"Unexpected keys for observer {key} in state_dict")
