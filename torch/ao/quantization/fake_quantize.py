"""Modules that round values to levels and back while a model trains, so that it learns with the
error that quantization will make. Each has an observer that proposes the grid."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.ao.quantization import observer as obs
from torch.ao.quantization.observer import _with_args


class FakeQuantizeBase(nn.Module):
    """Two switches: whether values are rounded, whether they are observed."""

    def __init__(self) -> None:
        super().__init__()
        for switch in ("fake_quant_enabled", "observer_enabled"):
            self.register_buffer(switch, torch.ones(1, dtype=torch.uint8))

    def calculate_qparams(self, **kwargs: object) -> tuple[Tensor, Tensor]:
        """Scale and zero point."""
        raise NotImplementedError(f"{type(self).__name__}.calculate_qparams")

    def enable_fake_quant(self, enabled: bool = True) -> None:
        self.fake_quant_enabled[0] = 1 if enabled else 0

    def disable_fake_quant(self) -> None:
        self.enable_fake_quant(False)

    def enable_observer(self, enabled: bool = True) -> None:
        self.observer_enabled[0] = 1 if enabled else 0

    def disable_observer(self) -> None:
        self.enable_observer(False)

    with_args = classmethod(_with_args)


class FakeQuantize(FakeQuantizeBase):
    """Rounds to the grid that its observer proposes."""

    def __init__(
        self,
        observer: type[obs.ObserverBase] = obs.MovingAverageMinMaxObserver,
        quant_min: int | None = None,
        quant_max: int | None = None,
        is_dynamic: bool = False,
        **observer_kwargs: object,
    ) -> None:
        super().__init__()
        if quant_min is not None and quant_max is not None:
            if quant_min > quant_max:
                raise AssertionError("quant_min must be less than or equal to quant_max")
            observer_kwargs.update(quant_min=quant_min, quant_max=quant_max)
        observer_kwargs["is_dynamic"] = is_dynamic
        self.activation_post_process = observer(**observer_kwargs)
        watcher = self.activation_post_process
        self.quant_min, self.quant_max = watcher.quant_min, watcher.quant_max
        self.is_dynamic = is_dynamic
        self.register_buffer("scale", torch.tensor([1.0]))
        real = watcher.qscheme is torch.per_channel_affine_float_qparams
        kind = torch.float if real else torch.int
        self.register_buffer("zero_point", torch.tensor([0], dtype=kind))
        self.dtype, self.qscheme = watcher.dtype, watcher.qscheme
        self.ch_axis = getattr(watcher, "ch_axis", -1)
        self.is_per_channel = self.qscheme in obs._PER_CHANNEL

    def calculate_qparams(self) -> tuple[Tensor, Tensor]:
        return self.activation_post_process.calculate_qparams()

    def _take_grid(self) -> None:
        scale, zero_point = self.calculate_qparams()
        self.scale.resize_(scale.shape).copy_(scale)
        self.zero_point.resize_(zero_point.shape).copy_(zero_point)

    def forward(self, x: Tensor) -> Tensor:
        if self.observer_enabled[0] == 1:
            self.activation_post_process(x.detach())
            self._take_grid()
        if self.fake_quant_enabled[0] != 1:
            return x
        if self.is_per_channel:
            return torch.fake_quantize_per_channel_affine(
                x, self.scale, self.zero_point, self.ch_axis, self.quant_min, self.quant_max
            )
        return torch.fake_quantize_per_tensor_affine(
            x, self.scale, self.zero_point, self.quant_min, self.quant_max
        )

    def extra_repr(self) -> str:
        return (
            f"fake_quant_enabled={self.fake_quant_enabled}, "
            f"observer_enabled={self.observer_enabled}, quant_min={self.quant_min}, "
            f"quant_max={self.quant_max}, dtype={self.dtype}, qscheme={self.qscheme}, "
            f"ch_axis={self.ch_axis}, scale={self.scale}, zero_point={self.zero_point}"
        )

    def _load_from_state_dict(
        self, state_dict: dict[str, Tensor], prefix: str, *rest: object
    ) -> None:
        # A grid per channel has as many numbers as the layer it was learned for.
        for name in ("scale", "zero_point"):
            if prefix + name in state_dict:
                getattr(self, name).resize_(state_dict[prefix + name].shape)
        super()._load_from_state_dict(state_dict, prefix, *rest)


class FixedQParamsFakeQuantize(FakeQuantize):
    """Rounds to a grid that was given."""

    def __init__(self, observer: type[obs.ObserverBase]) -> None:
        super().__init__(observer=observer)
        if not isinstance(self.activation_post_process, obs.FixedQParamsObserver):
            raise AssertionError("FixedQParamsFakeQuantize needs a FixedQParamsObserver")
        self._take_grid()

    def calculate_qparams(self) -> tuple[Tensor, Tensor]:
        watcher = self.activation_post_process
        return watcher.scale, watcher.zero_point


class FusedMovingAvgObsFakeQuantize(FakeQuantize):
    """FakeQuantize with a moving average of extremes. The name says that PyTorch runs observing and
    rounding as one kernel."""


def _is_fake_quant(module: nn.Module) -> bool:
    return isinstance(module, FakeQuantizeBase)


def disable_fake_quant(mod: nn.Module) -> None:
    """For Module.apply: values pass unrounded."""
    if _is_fake_quant(mod):
        mod.disable_fake_quant()


def enable_fake_quant(mod: nn.Module) -> None:
    """For Module.apply: values are rounded."""
    if _is_fake_quant(mod):
        mod.enable_fake_quant()


def disable_observer(mod: nn.Module) -> None:
    """For Module.apply: grids stay as they are."""
    if _is_fake_quant(mod):
        mod.disable_observer()


def enable_observer(mod: nn.Module) -> None:
    """For Module.apply: grids follow the values."""
    if _is_fake_quant(mod):
        mod.enable_observer()


_ACTIVATION = {"quant_min": 0, "quant_max": 255, "dtype": torch.quint8}
_SYMMETRIC_WEIGHT = {"quant_min": -128, "quant_max": 127, "dtype": torch.qint8}
_AFFINE = torch.per_tensor_affine

default_fake_quant = FakeQuantize.with_args(
    observer=obs.MovingAverageMinMaxObserver, qscheme=_AFFINE, reduce_range=True, **_ACTIVATION
)
default_weight_fake_quant = FakeQuantize.with_args(
    observer=obs.MovingAverageMinMaxObserver,
    qscheme=torch.per_tensor_symmetric,
    reduce_range=False,
    **_SYMMETRIC_WEIGHT,
)
default_dynamic_fake_quant = FakeQuantize.with_args(
    observer=obs.MovingAverageMinMaxObserver,
    is_dynamic=True,
    averaging_constant=1,
    **_ACTIVATION,
)
default_per_channel_weight_fake_quant = FakeQuantize.with_args(
    observer=obs.MovingAveragePerChannelMinMaxObserver,
    qscheme=torch.per_channel_symmetric,
    reduce_range=False,
    ch_axis=0,
    **_SYMMETRIC_WEIGHT,
)
default_fused_act_fake_quant = FusedMovingAvgObsFakeQuantize.with_args(
    observer=obs.MovingAverageMinMaxObserver, **_ACTIVATION
)
default_fused_wt_fake_quant = FusedMovingAvgObsFakeQuantize.with_args(
    observer=obs.MovingAverageMinMaxObserver,
    qscheme=torch.per_tensor_symmetric,
    **_SYMMETRIC_WEIGHT,
)
default_fused_per_channel_wt_fake_quant = FusedMovingAvgObsFakeQuantize.with_args(
    observer=obs.MovingAveragePerChannelMinMaxObserver,
    qscheme=torch.per_channel_symmetric,
    **_SYMMETRIC_WEIGHT,
)
_EVEN = {"quant_min": -127, "quant_max": 127, "dtype": torch.qint8}
fused_wt_fake_quant_range_neg_127_to_127 = FusedMovingAvgObsFakeQuantize.with_args(
    observer=obs.MovingAverageMinMaxObserver,
    qscheme=torch.per_tensor_symmetric,
    eps=2**-12,
    **_EVEN,
)
fused_per_channel_wt_fake_quant_range_neg_127_to_127 = FusedMovingAvgObsFakeQuantize.with_args(
    observer=obs.MovingAveragePerChannelMinMaxObserver,
    qscheme=torch.per_channel_symmetric,
    eps=2**-12,
    **_EVEN,
)
_ROWS = {
    "observer": obs.MovingAveragePerChannelMinMaxObserver,
    "qscheme": torch.per_channel_affine_float_qparams,
    "ch_axis": 0,
    "averaging_constant": 1,
}
default_embedding_fake_quant = FakeQuantize.with_args(**_ACTIVATION, **_ROWS)
default_embedding_fake_quant_4bit = FakeQuantize.with_args(dtype=torch.quint4x2, **_ROWS)
default_histogram_fake_quant = FakeQuantize.with_args(
    observer=obs.HistogramObserver, qscheme=_AFFINE, reduce_range=True, **_ACTIVATION
)
default_fixed_qparams_range_neg1to1_fake_quant = FixedQParamsFakeQuantize.with_args(
    observer=obs.default_fixed_qparams_range_neg1to1_observer
)
default_fixed_qparams_range_0to1_fake_quant = FixedQParamsFakeQuantize.with_args(
    observer=obs.default_fixed_qparams_range_0to1_observer
)
default_symmetric_fixed_qparams_fake_quant = default_fixed_qparams_range_neg1to1_fake_quant
default_affine_fixed_qparams_fake_quant = default_fixed_qparams_range_0to1_fake_quant
