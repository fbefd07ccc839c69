"""Batch normalisation in parts: statistics, their union over processes, the affine map, and the
sums its gradient needs. Channels are the second dimension."""

import torch
from torch import Tensor
from torch._composed_ops.registry import composed


def _others(input: Tensor) -> list[int]:
    return [d for d in range(input.dim()) if d != 1]


def _per_channel(values: Tensor, input: Tensor) -> Tensor:
    return values.reshape(1, -1, *[1] * (input.dim() - 2))


def _wide(input: Tensor) -> Tensor:
    return input.float() if input.dtype in (torch.float16, torch.bfloat16) else input


@composed("batch_norm_stats(Tensor input, float eps) -> (Tensor, Tensor)", out="out")
def batch_norm_stats(input: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    variance, mean = torch.var_mean(_wide(input), _others(input), correction=0)
    return mean, (variance + eps).rsqrt()


@composed(
    "batch_norm_update_stats(Tensor input, Tensor? running_mean, Tensor? running_var, "
    "float momentum) -> (Tensor, Tensor)",
    out="out",
)
def batch_norm_update_stats(
    input: Tensor, running_mean: Tensor | None, running_var: Tensor | None, momentum: float
) -> tuple[Tensor, Tensor]:
    variance, mean = torch.var_mean(_wide(input), _others(input), correction=0)
    _move(running_mean, running_var, mean, variance, momentum, input.numel() // input.size(1))
    return mean, variance


def _move(
    running_mean: Tensor | None,
    running_var: Tensor | None,
    mean: Tensor,
    variance: Tensor,
    momentum: float,
    count: Tensor | int,
) -> None:
    if running_mean is not None:
        running_mean.lerp_(mean.to(running_mean.dtype), momentum)
    if running_var is not None:
        unbiased = variance * (count / (count - 1))
        running_var.lerp_(unbiased.to(running_var.dtype), momentum)


@composed(
    "batch_norm_gather_stats_with_counts(Tensor input, Tensor mean, Tensor invstd, "
    "Tensor? running_mean, Tensor? running_var, float momentum, float eps, Tensor counts) "
    "-> (Tensor, Tensor)",
    out="out",
)
def batch_norm_gather_stats_with_counts(
    input: Tensor,
    mean: Tensor,
    invstd: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    momentum: float,
    eps: float,
    counts: Tensor,
) -> tuple[Tensor, Tensor]:
    """One row of mean and invstd for each part. Variances about the common mean add up."""
    counts = counts.to(mean.dtype).reshape(-1, 1)
    total = counts.sum()
    common = (mean * counts).sum(0) / total
    variance = ((invstd.pow(-2) - eps + (mean - common).square()) * counts).sum(0) / total
    _move(running_mean, running_var, common, variance, momentum, total)
    return common, (variance + eps).rsqrt()


@composed(
    "batch_norm_gather_stats(Tensor input, Tensor mean, Tensor invstd, Tensor? running_mean, "
    "Tensor? running_var, float momentum, float eps, int count) -> (Tensor, Tensor)",
    out="out",
)
def batch_norm_gather_stats(
    input: Tensor,
    mean: Tensor,
    invstd: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    momentum: float,
    eps: float,
    count: int,
) -> tuple[Tensor, Tensor]:
    counts = mean.new_full((mean.size(0),), count)
    return batch_norm_gather_stats_with_counts(
        input, mean, invstd, running_mean, running_var, momentum, eps, counts
    )


@composed(
    "batch_norm_elemt(Tensor input, Tensor? weight, Tensor? bias, Tensor mean, Tensor invstd, "
    "float eps) -> Tensor",
    out="out",
)
def batch_norm_elemt(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    mean: Tensor,
    invstd: Tensor,
    eps: float,
) -> Tensor:
    scale = invstd if weight is None else invstd * weight
    shifted = (_wide(input) - _per_channel(mean, input)) * _per_channel(scale, input)
    if bias is not None:
        shifted = shifted + _per_channel(bias, input)
    return shifted.to(input.dtype)


@composed(
    "batch_norm_backward_reduce(Tensor grad_out, Tensor input, Tensor mean, Tensor invstd, "
    "Tensor? weight, bool input_g, bool weight_g, bool bias_g) -> (Tensor, Tensor, Tensor, Tensor)",
    out="out",
)
def batch_norm_backward_reduce(
    grad_out: Tensor,
    input: Tensor,
    mean: Tensor,
    invstd: Tensor,
    weight: Tensor | None,
    input_g: bool,
    weight_g: bool,
    bias_g: bool,
) -> tuple[Tensor | None, Tensor | None, Tensor | None, Tensor | None]:
    grad = _wide(grad_out)
    others = _others(input)
    total = grad.sum(others)
    against = (grad * (_wide(input) - _per_channel(mean, input))).sum(others)
    dtype = input.dtype if weight is None else weight.dtype
    return (
        total if input_g else None,
        against if input_g else None,
        (against * invstd).to(dtype) if weight_g else None,
        total.to(dtype) if bias_g else None,
    )


@composed(
    "batch_norm_backward_elemt(Tensor grad_out, Tensor input, Tensor mean, Tensor invstd, "
    "Tensor? weight, Tensor sum_dy, Tensor sum_dy_xmu, Tensor count) -> Tensor",
    out="out",
)
def batch_norm_backward_elemt(
    grad_out: Tensor,
    input: Tensor,
    mean: Tensor,
    invstd: Tensor,
    weight: Tensor | None,
    sum_dy: Tensor,
    sum_dy_xmu: Tensor,
    count: Tensor,
) -> Tensor:
    total = count.sum().to(mean.dtype)
    scale = invstd if weight is None else invstd * weight
    slope = _per_channel(sum_dy_xmu / total * invstd.square(), input)
    centred = _wide(input) - _per_channel(mean, input)
    grad = _wide(grad_out) - _per_channel(sum_dy / total, input) - centred * slope
    return (grad * _per_channel(scale, input)).to(input.dtype)


@composed(
    "_batch_norm_with_update(Tensor input, Tensor? weight, Tensor? bias, "
    "Tensor(a!) running_mean, Tensor(b!) running_var, float momentum, float eps) "
    "-> (Tensor, Tensor, Tensor, Tensor)"
)
def _batch_norm_with_update(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor,
    running_var: Tensor,
    momentum: float,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    parts = torch.native_batch_norm(
        input, weight, bias, running_mean, running_var, True, momentum, eps
    )
    return *parts, _no_reserve(input)


def _no_reserve(input: Tensor) -> Tensor:
    """What an engine would keep for the backward pass: ours keeps nothing."""
    return torch.empty(0, dtype=torch.uint8, device=input.device)


@composed(
    "_batch_norm_with_update_functional(Tensor input, Tensor? weight, Tensor? bias, "
    "Tensor running_mean, Tensor running_var, float momentum, float eps) -> (Tensor, Tensor, "
    "Tensor, Tensor, Tensor running_mean_out, Tensor running_var_out)"
)
def _batch_norm_with_update_functional(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor,
    running_var: Tensor,
    momentum: float,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    mean, variance = running_mean.clone(), running_var.clone()
    parts = _batch_norm_with_update(input, weight, bias, mean, variance, momentum, eps)
    return *parts, mean, variance


@composed(
    "_batch_norm_no_update(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, "
    "Tensor? running_var, float momentum, float eps) -> (Tensor, Tensor, Tensor, Tensor)",
    out="out",
)
def _batch_norm_no_update(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    momentum: float,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    training = running_mean is None or running_var is None
    parts = torch.native_batch_norm(
        input, weight, bias, running_mean, running_var, training, momentum, eps
    )
    return *parts, _no_reserve(input)


@composed(
    "batch_norm_backward(Tensor grad_out, Tensor input, Tensor weight, Tensor? running_mean, "
    "Tensor? running_var, Tensor? save_mean, Tensor? save_var, bool update, float eps, "
    "bool[3] output_mask, Tensor reserve) -> (Tensor, Tensor, Tensor)"
)
def batch_norm_backward(
    grad_out: Tensor,
    input: Tensor,
    weight: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    save_mean: Tensor | None,
    save_var: Tensor | None,
    update: bool,
    eps: float,
    output_mask: list[bool],
    reserve: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:
    return torch.ops.aten.native_batch_norm_backward(
        grad_out,
        input,
        weight,
        running_mean,
        running_var,
        save_mean,
        save_var,
        update,
        eps,
        output_mask,
    )


@composed("_weight_norm_interface(Tensor v, Tensor g, int dim=0) -> (Tensor, Tensor)", out="out")
def _weight_norm_interface(v: Tensor, g: Tensor, dim: int = 0) -> tuple[Tensor, Tensor]:
    norms = torch.norm_except_dim(_wide(v), 2, dim)
    return (v * (g / norms)).to(v.dtype), norms


def _weight_norm_gradients(
    grad_w: Tensor, saved_v: Tensor, saved_g: Tensor, saved_norms: Tensor, dim: int
) -> tuple[Tensor, Tensor]:
    """w = g v / |v|: along v only g changes w, across it only v does."""
    others = [d for d in range(saved_v.dim()) if d != dim % saved_v.dim()]
    along = (grad_w * saved_v).sum(others, keepdim=True)
    to_g = (along / saved_norms).reshape_as(saved_g)
    scale = saved_g / saved_norms
    return scale * (grad_w - saved_v * (along / saved_norms.square())), to_g


composed(
    "_weight_norm_interface_backward(Tensor grad_w, Tensor saved_v, Tensor saved_g, "
    "Tensor saved_norms, int dim) -> (Tensor, Tensor)",
    out="out",
)(_weight_norm_gradients)
composed(
    "_weight_norm_differentiable_backward(Tensor grad_w, Tensor saved_v, Tensor saved_g, "
    "Tensor saved_norms, int dim) -> (Tensor, Tensor)"
)(_weight_norm_gradients)
