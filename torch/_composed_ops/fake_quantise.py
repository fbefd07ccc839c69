"""Rounding to the numbers of a quantised type whose scale and zero point are learned.

Inside of the range the gradient passes, as if nothing had been rounded, and the scale gets the
error of rounding; outside of it the value is a bound, which moves with scale and zero point."""

import torch
from torch import Tensor
from torch._composed_ops.registry import composed
from torch.overrides import handle_torch_function, has_torch_function

_RANGE = "int quant_min, int quant_max, float grad_factor=1."


def _slices(parameter: Tensor, like: Tensor, axis: int | None) -> Tensor:
    """A parameter for each slice along an axis, or one for all, in a shape that broadcasts."""
    if axis is None:
        return parameter.reshape(())
    shape = [1] * like.dim()
    shape[axis] = -1
    return parameter.reshape(shape)


def _quantised(
    self: Tensor, scale: Tensor, zero_point: Tensor, axis: int | None, low: int, high: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Scale and zero point to compute with, and the rounded numbers before they are clamped."""
    scale = _slices(scale, self, axis)
    zero = _slices(zero_point, self, axis).round().clamp(low, high)
    return scale, zero, (self / scale).round() + zero


def _gradients(
    grad: Tensor,
    self: Tensor,
    scale: Tensor,
    zero_point: Tensor,
    axis: int | None,
    low: int,
    high: int,
    factor: float,
) -> tuple[Tensor, Tensor, Tensor]:
    step, zero, number = _quantised(self, scale, zero_point, axis, low, high)
    bounded = number.clamp(low, high)
    inside = number == bounded
    per_step = bounded - zero
    per_step = torch.where(inside, per_step - self / step, per_step)
    others = [d for d in range(self.dim()) if axis is None or d != axis % self.dim()]

    def total(values: Tensor, like: Tensor) -> Tensor:
        values = values * factor
        return (values.sum(others) if others else values).reshape_as(like).to(like.dtype)

    to_zero = torch.where(inside, 0.0, -grad * step)
    return grad * inside, total(grad * per_step, scale), total(to_zero, zero_point)


class _Learnable(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: object,
        self: Tensor,
        scale: Tensor,
        zero_point: Tensor,
        axis: int | None,
        low: int,
        high: int,
        factor: float,
    ) -> Tensor:
        ctx.save_for_backward(self, scale, zero_point)
        ctx.rest = (axis, low, high, factor)
        step, zero, number = _quantised(self, scale, zero_point, axis, low, high)
        return (number.clamp(low, high) - zero) * step

    @staticmethod
    def backward(ctx: object, grad: Tensor) -> tuple[Tensor | None, ...]:
        return *_gradients(grad, *ctx.saved_tensors, *ctx.rest), None, None, None, None


@composed(
    f"_fake_quantize_learnable_per_tensor_affine(Tensor self, Tensor scale, Tensor zero_point, "
    f"{_RANGE}) -> Tensor",
    out="out",
)
def _fake_quantize_learnable_per_tensor_affine(
    self: Tensor,
    scale: Tensor,
    zero_point: Tensor,
    quant_min: int,
    quant_max: int,
    grad_factor: float = 1.0,
) -> Tensor:
    return _Learnable.apply(self, scale, zero_point, None, quant_min, quant_max, grad_factor)


@composed(
    f"_fake_quantize_learnable_per_tensor_affine_backward(Tensor grad, Tensor self, Tensor scale, "
    f"Tensor zero_point, {_RANGE}) -> (Tensor, Tensor, Tensor)"
)
def _fake_quantize_learnable_per_tensor_affine_backward(
    grad: Tensor,
    self: Tensor,
    scale: Tensor,
    zero_point: Tensor,
    quant_min: int,
    quant_max: int,
    grad_factor: float = 1.0,
) -> tuple[Tensor, Tensor, Tensor]:
    return _gradients(grad, self, scale, zero_point, None, quant_min, quant_max, grad_factor)


@composed(
    f"_fake_quantize_learnable_per_channel_affine(Tensor self, Tensor scale, Tensor zero_point, "
    f"int axis, {_RANGE}) -> Tensor",
    out="out",
)
def _fake_quantize_learnable_per_channel_affine(
    self: Tensor,
    scale: Tensor,
    zero_point: Tensor,
    axis: int,
    quant_min: int,
    quant_max: int,
    grad_factor: float = 1.0,
) -> Tensor:
    return _Learnable.apply(self, scale, zero_point, axis, quant_min, quant_max, grad_factor)


@composed(
    f"_fake_quantize_learnable_per_channel_affine_backward(Tensor grad, Tensor self, "
    f"Tensor scale, Tensor zero_point, int axis, {_RANGE}) -> (Tensor, Tensor, Tensor)"
)
def _fake_quantize_learnable_per_channel_affine_backward(
    grad: Tensor,
    self: Tensor,
    scale: Tensor,
    zero_point: Tensor,
    axis: int,
    quant_min: int,
    quant_max: int,
    grad_factor: float = 1.0,
) -> tuple[Tensor, Tensor, Tensor]:
    return _gradients(grad, self, scale, zero_point, axis, quant_min, quant_max, grad_factor)


@composed(
    "fake_quantize_per_tensor_affine_cachemask_backward(Tensor grad, Tensor mask) -> Tensor",
    "fake_quantize_per_channel_affine_cachemask_backward(Tensor grad, Tensor mask) -> Tensor",
)
def cachemask_backward(grad: Tensor, mask: Tensor) -> Tensor:
    return grad * mask


def _observe(values: Tensor, low: Tensor, high: Tensor, averaging: float, axis: int | None) -> None:
    """Moves the extremes towards those of new values; extremes that were never set are taken."""
    if axis is None:
        new_low, new_high = torch.aminmax(values)
    else:
        new_low, new_high = torch.aminmax(values.movedim(axis, 0).flatten(1), dim=1)
    for kept, new in ((low, new_low), (high, new_high)):
        if kept.numel() != new.numel():
            kept.resize_(new.shape).fill_(float("inf"))
        new = new.reshape(kept.shape)
        moved = kept + averaging * (new - kept)
        kept.copy_(torch.where(torch.isinf(kept), new, moved))


# Levels closer than this lose their meaning in float32, and ranges of nothing get this grid.
_SMALLEST_STEP = 6.1e-5
_STEP_OF_NOTHING = 0.1


def _grid(
    low: Tensor, high: Tensor, limits: tuple[int, int], symmetric: bool
) -> tuple[Tensor, Tensor]:
    """Scale and zero point of the grid that covers each range and zero, computed in float64. A
    symmetric grid has one more level below the middle than above; a range on one side of zero is
    not made symmetric."""
    quant_min, quant_max = limits
    below, above = low.double(), high.double()
    steps = float(quant_max - quant_min)
    straddles = (below < 0) & (above > 0)
    if symmetric:
        half = (quant_max - quant_min) // 2
        span = torch.maximum(-below / (half + 1), above / half)
        below = torch.where(straddles, -span * (half + 1), below)
        above = torch.where(straddles, span * half, above)
    below, above = below.clamp(max=0.0), above.clamp(min=0.0)
    step = (above - below) / steps
    nothing = (step.float() == 0) | torch.isinf(1 / step.float())
    step = torch.where(nothing, _STEP_OF_NOTHING, step)
    grown = torch.where(step < _SMALLEST_STEP, _SMALLEST_STEP / step, 1.0)
    step, below, above = (step * grown).float().double(), below * grown, above * grown
    # Both ends give a zero point; that of the end with the smaller rounding error is taken.
    from_low, from_high = quant_min - below / step, quant_max - above / step
    low_error = abs(quant_min) + (below / step).abs()
    high_error = abs(quant_max) + (above / step).abs()
    zero = torch.where(low_error < high_error, from_low, from_high)
    if symmetric:
        zero = torch.where(straddles, (quant_min + quant_max) / 2, zero)
    return step, zero.round().clamp(quant_min, quant_max)


def _take_grid(
    low: Tensor,
    high: Tensor,
    scale: Tensor,
    zero_point: Tensor,
    limits: tuple[int, int],
    symmetric: bool,
) -> None:
    """Writes the grid that covers a range with zero."""
    for kept, new in zip((scale, zero_point), _grid(low, high, limits, symmetric), strict=True):
        if kept.numel() != new.numel():
            kept.resize_(new.shape)
        kept.copy_(new.reshape(kept.shape))


@composed(
    "fused_moving_avg_obs_fake_quant(Tensor self, Tensor observer_on, Tensor fake_quant_on, "
    "Tensor(a!) running_min, Tensor(b!) running_max, Tensor(c!) scale, Tensor(d!) zero_point, "
    "float averaging_const, int quant_min, int quant_max, int ch_axis, "
    "bool per_row_fake_quant=False, bool symmetric_quant=False) -> Tensor"
)
def fused_moving_avg_obs_fake_quant(
    self: Tensor,
    observer_on: Tensor,
    fake_quant_on: Tensor,
    running_min: Tensor,
    running_max: Tensor,
    scale: Tensor,
    zero_point: Tensor,
    averaging_const: float,
    quant_min: int,
    quant_max: int,
    ch_axis: int,
    per_row_fake_quant: bool = False,
    symmetric_quant: bool = False,
) -> Tensor:
    """Observes values by a moving average of their extremes, then rounds them to the grid."""
    tensors = (self, observer_on, fake_quant_on, running_min, running_max, scale, zero_point)
    if has_torch_function(tensors):
        return handle_torch_function(
            torch.fused_moving_avg_obs_fake_quant, tensors, *tensors, averaging_const, quant_min,
            quant_max, ch_axis, per_row_fake_quant, symmetric_quant,
        )  # fmt: skip
    if ch_axis >= self.dim():
        raise RuntimeError(
            "Error in fused_moving_avg_obs_fake_quant_cpu: ch_axis must be < self.dim()"
        )
    axis = ch_axis if per_row_fake_quant else None
    if int(observer_on) and self.numel():
        with torch.no_grad():
            _observe(self.detach().float(), running_min, running_max, averaging_const, axis)
            limits = (quant_min, quant_max)
            _take_grid(running_min, running_max, scale, zero_point, limits, symmetric_quant)
    if not int(fake_quant_on):
        return self
    if axis is None:
        return torch.fake_quantize_per_tensor_affine(self, scale, zero_point, quant_min, quant_max)
    return torch.fake_quantize_per_channel_affine(
        self, scale, zero_point, axis, quant_min, quant_max
    )
