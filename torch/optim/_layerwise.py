"""LARS and LAMB: steps whose length follows each parameter's own size, for very large batches.

Both turn a direction into a step as long as a fraction of the parameter's norm, parameter by
parameter, so that no layer moves much faster than the others. Where a norm is zero, as for a bias
at the start, the direction is taken as it is.
"""

from __future__ import annotations

import typing

import torch
from torch.optim._stepwise import (
    Stepwise,
    check_betas,
    check_lr,
    check_not_negative,
    descent,
    reals,
    settings,
    step_counter,
    update_moments_,
    zeros,
)

if typing.TYPE_CHECKING:
    from torch.optim.optimizer import ParamsT

__all__ = ["LAMB", "LARS"]


def _trust_ratios(params, directions, coefficient=1.0, decay=0.0, eps=0.0) -> list[torch.Tensor]:
    """coefficient * |p| / (|d| + decay * |p| + eps) per parameter, as 0-d tensors, or 1."""
    ratios = []
    norms = zip(torch._foreach_norm(params), torch._foreach_norm(directions), strict=True)
    for size, length in norms:
        scaled = coefficient * size / (length + decay * size + eps)
        ratios.append(torch.where((size > 0) & (length > 0), scaled, 1.0))
    return ratios


class LARS(Stepwise):
    """Layer-wise adaptive rate scaling (You, Gitman and Ginsburg, 2017): momentum over gradients
    scaled to trust_coefficient * |p| / (|g| + weight_decay * |p|)."""

    def __init__(
        self,
        params: ParamsT,
        lr: float | torch.Tensor = 1e-3,
        momentum: float = 0.9,
        weight_decay: float = 0.0,
        trust_coefficient: float = 1e-3,
        eps: float = 1e-8,
        nesterov: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_lr(lr)
        check_not_negative(
            momentum=momentum,
            weight_decay=weight_decay,
            trust_coefficient=trust_coefficient,
            epsilon=eps,
        )
        if nesterov and momentum == 0:
            raise ValueError("Nesterov momentum requires a momentum")
        names = (
            "lr momentum weight_decay trust_coefficient eps nesterov foreach maximize "
            "differentiable"
        )
        super().__init__(params, settings(locals(), names))

    def _new_state(self, param, group) -> dict[str, torch.Tensor]:
        return {"momentum_buffer": zeros(param)}

    def _update(self, group) -> None:
        params, grads, states = self._collect(group)
        if not params:
            return
        buffers = [state["momentum_buffer"] for state in states]
        params, grads, buffers = reals(params, grads, buffers)
        lr, momentum, decay = float(group["lr"]), group["momentum"], group["weight_decay"]
        grads = descent(grads, params, 0, group["maximize"])
        ratios = _trust_ratios(params, grads, group["trust_coefficient"], decay, group["eps"])
        for param, grad, buffer, ratio in zip(params, grads, buffers, ratios, strict=True):
            change = (grad + decay * param) * (ratio * lr)
            buffer.mul_(momentum).add_(change)
            param.sub_(change + momentum * buffer if group["nesterov"] else buffer)


class LAMB(Stepwise):
    """Layer-wise Adam (You et al., 2020): Adam's direction plus weight decay, scaled to |p|."""

    def __init__(
        self,
        params: ParamsT,
        lr: float | torch.Tensor = 1e-3,
        betas: tuple[float | torch.Tensor, float | torch.Tensor] = (0.9, 0.999),
        eps: float = 1e-6,
        weight_decay: float = 0.0,
        *,
        bias_correction: bool = True,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_lr(lr)
        check_betas(betas)
        check_not_negative(epsilon=eps, weight_decay=weight_decay)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "bias_correction": bias_correction,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def _new_state(self, param, group) -> dict[str, torch.Tensor]:
        return {"step": step_counter(), "exp_avg": zeros(param), "exp_avg_sq": zeros(param)}

    def _update(self, group) -> None:
        params, grads, states = self._collect(group)
        if not params:
            return
        means = [state["exp_avg"] for state in states]
        squares = [state["exp_avg_sq"] for state in states]
        steps = [state["step"] for state in states]
        params, grads, means, squares = reals(params, grads, means, squares)
        beta1, beta2 = group["betas"]
        torch._foreach_add_(steps, 1)
        counts = [step.item() for step in steps]
        grads = descent(grads, params, 0, group["maximize"])
        update_moments_(means, squares, grads, beta1, beta2)
        rising, spread = means, squares
        if group["bias_correction"]:
            rising = torch._foreach_div(means, [1 - beta1**n for n in counts])
            spread = torch._foreach_div(squares, [1 - beta2**n for n in counts])
        roots = torch._foreach_add(torch._foreach_sqrt(spread), group["eps"])
        directions = torch._foreach_div(rising, roots)
        if group["weight_decay"] != 0:
            directions = torch._foreach_add(directions, params, alpha=group["weight_decay"])
        ratios = _trust_ratios(params, directions)
        for param, direction, ratio in zip(params, directions, ratios, strict=True):
            param.sub_(direction * (ratio * float(group["lr"])))
